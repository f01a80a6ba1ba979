"""How a table is encoded: the options of `prepare`, one per flag.

A binary column that is standardised has the same two values whatever increasing
numbers its categories carry, so the logarithm that some protocols take of a column
coded 1/2 needs no option of its own.
"""

import dataclasses
from typing import Any, Literal, get_args

from fljax.data.table import DataError

SplitRule = Literal["sklearn", "pandas", "per_column", "none"]
NumericRule = Literal["standardise", "log_standardise", "log1p_standardise", "raw"]
BinaryRule = Literal["standardise", "zero_one"]
CategoricalRule = Literal["codes", "dummies", "standardised_dummies"]
TargetRule = Literal["raw", "standardise", "standardise_numbers", "log_standardise"]


def _about(text: str, rule: Any = None) -> dict[str, Any]:
    return {"help": text, "choices": get_args(rule)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Options of `prepare`; every field's metadata holds its `help` and `choices`.

    Raises:
      DataError: a field is not one of its choices or is out of range.
    """

    split: SplitRule = dataclasses.field(
        default="sklearn", metadata=_about("how rows become test rows", SplitRule)
    )
    split_column: str = dataclasses.field(
        default="", metadata=_about("split=per_column: the column split by value")
    )
    test_fraction: float = dataclasses.field(
        default=0.1, metadata=_about("share of the rows kept for testing")
    )
    numeric: NumericRule = dataclasses.field(
        default="standardise",
        metadata=_about("scaling of numeric columns", NumericRule),
    )
    binary: BinaryRule = dataclasses.field(
        default="standardise", metadata=_about("scaling of binary columns", BinaryRule)
    )
    categorical: CategoricalRule = dataclasses.field(
        default="codes",
        metadata=_about(
            "categories as positions, or written out as columns", CategoricalRule
        ),
    )
    drop_first: bool = dataclasses.field(
        default=True, metadata=_about("leave the first category without a column")
    )
    unknown: str = dataclasses.field(
        default="",
        metadata=_about("category of unknown values, the one without a column"),
    )
    target: TargetRule = dataclasses.field(
        default="raw",
        metadata=_about(
            "scaling of a regression target; standardise_numbers: of classes none",
            TargetRule,
        ),
    )

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            choices, value = field.metadata["choices"], getattr(self, field.name)
            if choices and value not in choices:
                raise DataError(
                    f"{field.name}={value!r} is not one of {', '.join(choices)}"
                )
        if not 0 < self.test_fraction < 1:
            raise DataError(
                f"test_fraction={self.test_fraction} must lie between 0 and 1"
            )

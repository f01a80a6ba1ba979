"""What all ACS income tables share: cleaning, features and presets.

Protocol of Diana et al., "Attribute Inference Attacks for Federated Regression
Tasks", 2025: repeated rows are dropped, so is the place of birth (POBP); sex is
standardised like a number; income (PINCP) stays in dollars for neural networks. The
reduced features are for least squares: no occupation (OCCP), no relationship (RELP),
race and marital status with two values, class of worker with three.

For classification (their Figure 1) the label is whether the income lies strictly above
the median. The paper takes the median of its whole data, 39,000 dollars; here it is the
median of the rows of the table that is used, after cleaning and sampling, training and
test rows together. Such a table has a name of its own, for its results are those of
another task; the income in dollars stays in its frame, for partitions only.

The authors' current linear script scales the target a second time, which leaves it
almost constant; that step is not repeated here.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from fljax.data.options import Preprocessing
from fljax.data.table import DataError, FileRecord, Kind, Table

_NEURAL = Preprocessing(split="pandas")
_LINEAR = Preprocessing(
    split="pandas",
    numeric="log_standardise",
    categorical="dummies",
    drop_first=False,
    target="log_standardise",
)
_BY_STATE = {"split": "per_column", "split_column": "ST"}


def by_state(options: Preprocessing) -> Preprocessing:
    """The same options with every state split by itself, as for Income-A."""
    return Preprocessing(**{**vars(options), **_BY_STATE})


PRESETS = {
    "neural": _NEURAL,
    "linear": _LINEAR,
    "neural_by_state": by_state(_NEURAL),
    "linear_by_state": by_state(_LINEAR),
}

COLUMNS = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX") + (
    "RAC1P",
    "ST",
    "PINCP",
)
_INCOME = "PINCP"
_ABOVE = "PINCP_ABOVE_MEDIAN"
_ALL: dict[str, Kind] = {
    "AGEP": "numeric",
    "SCHL": "numeric",
    "WKHP": "numeric",
    "SEX": "binary",
    "COW": "categorical",
    "MAR": "categorical",
    "OCCP": "categorical",
    "RELP": "categorical",
    "RAC1P": "categorical",
}
_REDUCED: dict[str, Kind] = {
    "AGEP": "numeric",
    "SCHL": "numeric",
    "WKHP": "numeric",
    "SEX": "binary",
    "MAR": "binary",
    "RAC1P": "binary",
    "COW": "categorical",
}


class Coding(NamedTuple):
    """Which values mean what, as files write them.

    Attributes:
      married: value of MAR.
      white: value of RAC1P.
      private: values of COW that are an employee of a private employer.
      government: values of COW that are an employee of a government.
    """

    married: object
    white: object
    private: tuple[object, ...]
    government: tuple[object, ...]


CENSUS = Coding(married=1, white=1, private=(1, 2), government=(3, 4, 5))


def income_table(
    frame: pd.DataFrame,
    *,
    name: str,
    features: str,
    task: str,
    coding: Coding,
    files: tuple[FileRecord, ...],
    largest_state: int | None = None,
    sample_seed: int = 0,
) -> Table:
    """Cleans persons and picks their features and target.

    Args:
      frame: rows with the twelve `COLUMNS`.
      name: of the table.
      features: `all` or `reduced`.
      task: `regression`, or `binary` for incomes above the median.
      coding: how the frame writes categories.
      files: what was read.
      largest_state: rows to keep of the largest state, every state keeping the same
        proportion; None keeps all.
      sample_seed: seed of that sampling.

    Raises:
      DataError: a column is absent or an option is unknown.
    """
    check_options(name, features, task)
    if absent := [column for column in COLUMNS if column not in frame.columns]:
        raise DataError(f"{name}: no column {', '.join(absent)} in the file")
    frame = frame.loc[:, list(COLUMNS)].dropna().drop_duplicates()
    if largest_state is not None:
        frame = _sample_states(frame, largest_state, sample_seed)
    return persons_table(
        frame, name=name, features=features, task=task, coding=coding, files=files
    )


def persons_table(
    frame: pd.DataFrame,
    *,
    name: str,
    features: str,
    task: str,
    coding: Coding,
    files: tuple[FileRecord, ...] = (),
) -> Table:
    """Picks features and target of clean persons; arguments as in `income_table`."""
    check_options(name, features, task)
    if features == "reduced":
        frame = _reduce(frame, coding)
    if task == "binary":
        above = frame[_INCOME] > frame[_INCOME].median()
        frame = frame.assign(**{_ABOVE: above.astype(np.int64)})
    return Table(
        name=name if task == "regression" else f"{name}_above_median",
        frame=frame.drop(columns="POBP").reset_index(drop=True),
        target=_INCOME if task == "regression" else _ABOVE,
        kinds=_ALL if features == "all" else _REDUCED,
        sensitive="SEX",
        task="regression" if task == "regression" else "binary",
        files=files,
    )


def check_options(name: str, features: str, task: str) -> None:
    """Refuses unknown options before anything is read.

    Raises:
      DataError: naming the data set and the option.
    """
    if features not in ("all", "reduced"):
        raise DataError(f"{name}: {features=} is not one of all, reduced")
    if task not in ("regression", "binary"):
        raise DataError(f"{name}: {task=} is not one of regression, binary")


def _sample_states(frame: pd.DataFrame, largest: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    proportion = min(1.0, largest / frame["ST"].value_counts().max())
    chosen = [
        rng.choice(rows, int(proportion * len(rows)), replace=False)
        for _, rows in sorted(frame.groupby("ST").indices.items())
    ]
    return frame.iloc[np.concatenate(chosen)]


def _reduce(frame: pd.DataFrame, coding: Coding) -> pd.DataFrame:
    private = frame["COW"].isin(coding.private)
    government = frame["COW"].isin(coding.government)
    return frame.drop(columns=["OCCP", "RELP"]).assign(
        MAR=np.where(frame["MAR"] == coding.married, 1, 2),
        RAC1P=np.where(frame["RAC1P"] == coding.white, 1, 2),
        COW=np.where(private, 0, np.where(government, 1, 2)),
    )

"""Turns raw rows into numbers, the same way for training, test and new rows.

Order of the numeric columns: numeric, binary, dummies, each in the table's order,
and the sensitive block last. Categories that stay codes follow as positions.
"""

import dataclasses
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from fljax.data.table import DataError, get_column
from fljax.data.vocabulary import label, positions
from fljax.types import Features

_STEPS = 100  # of float32, at least, between the least and the largest number
Form = Literal["number", "log", "log1p", "binary", "dummies", "codes"]


class Column(NamedTuple):
    """How one raw column is written down.

    Attributes:
      name: raw column.
      form: number, its logarithm, position of the category, dummies or a code.
      scaled: whether the standard scaler is applied.
      values: vocabulary, empty for numbers.
      drop_first: whether the first category has no dummy and no code of its own.
    """

    name: str
    form: Form
    scaled: bool = False
    values: pd.Index = pd.Index([])
    drop_first: bool = True

    @property
    def width(self) -> int:
        """Number of inputs that the column takes."""
        if self.form not in ("dummies", "codes"):
            return 1
        return len(self.values) - self.drop_first

    @property
    def names(self) -> tuple[str, ...]:
        """Names of those inputs."""
        if self.form in ("dummies", "codes"):
            kept = self.values[int(self.drop_first) :]
            return tuple(f"{self.name}_{label(value)}" for value in kept)
        if self.form == "binary":
            return (f"{self.name}_{label(self.values[-1])}",)
        return (self.name,)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Encoder:
    """A fitted encoding: vocabularies of the whole table, scaler of training rows.

    Attributes:
      dense: columns that are written into `numeric`, the sensitive one last.
      coded: columns that are written into `codes`.
      mean: `[Dn]` float64, 0 where a column is not scaled.
      scale: `[Dn]` float64, 1 where a column is not scaled or is constant.
    """

    dense: tuple[Column, ...]
    coded: tuple[Column, ...]
    mean: np.ndarray
    scale: np.ndarray

    @property
    def num_onehot(self) -> int:
        """Width of the one-hot block, which is also the code for no one."""
        return sum(column.width for column in self.coded)

    @property
    def numeric_names(self) -> tuple[str, ...]:
        """Name of each numeric input, `Dn` of them."""
        return tuple(name for column in self.dense for name in column.names)

    def encode(self, frame: pd.DataFrame) -> Features:
        """Encodes raw rows: `numeric` `[N, Dn]` float32, `codes` `[N, Dc]` int32.

        Raises:
          DataError: a column is absent, or a category is not in the vocabulary.
        """
        raw = write(self.dense, frame)
        scaled = (raw - self.mean) / self.scale
        for name, *each in zip(self.numeric_names, scaled.T, raw.T, strict=True):
            check_steps(name, *each)
        numeric: Any = scaled.astype(np.float32)
        codes: Any = _codes(self.coded, frame, self.num_onehot)
        return Features(numeric=numeric, codes=codes)


def check_steps(name: str, values: np.ndarray, raw: np.ndarray) -> None:
    """Refuses numbers that float32 cannot tell apart.

    Args:
      name: their column.
      values: `[N]` as they are encoded.
      raw: `[N]` before they were scaled.

    Raises:
      DataError: naming the column, and one number where that one is to blame.
    """
    if not len(values):
        return
    most = np.abs(values).max()
    step = float(np.spacing(np.float32(most)))
    if 0 < np.ptp(values) < _STEPS * step:
        tiny = most < np.finfo(np.float32).tiny
        remedy = "multiply them by" if tiny else "subtract"
        raise DataError(
            f"column {name!r}: all numbers are within {np.ptp(values):.3g} of each other, "
            f"and those of their size are {step:.3g} apart in float32; {remedy} a "
            "constant"
        )
    far = raw[np.abs(values).argmax()]
    others = raw != far
    if _are_apart(raw[others]) and not _are_apart(values[others]):
        raise DataError(
            f"column {name!r} holds {far:g}, beside which float32 cannot tell the others "
            "apart; mend it or leave its row out"
        )


def _are_apart(values: np.ndarray) -> bool:
    """Whether float32 has many numbers between the least and the largest of these."""
    if not len(values):
        return False
    step = float(np.spacing(np.float32(np.abs(values).max())))
    return bool(np.ptp(values) >= _STEPS * step)


def fit_encoder(
    dense: tuple[Column, ...], coded: tuple[Column, ...], train: pd.DataFrame
) -> Encoder:
    """Fits the scaler of the `scaled` columns on the training rows."""
    from sklearn.preprocessing import StandardScaler  # slow import, needed only here

    written = write(dense, train)
    mean, scale = np.zeros(written.shape[1]), np.ones(written.shape[1])
    chosen = np.repeat([c.scaled for c in dense], [c.width for c in dense]).astype(bool)
    if chosen.any():
        scaler = StandardScaler().fit(written[:, chosen])
        mean[chosen], scale[chosen] = scaler.mean_, scaler.scale_
    return Encoder(dense=dense, coded=coded, mean=mean, scale=scale)


def write(columns: tuple[Column, ...], frame: pd.DataFrame) -> np.ndarray:
    """Unscaled inputs `[N, sum of widths]` float64."""
    blocks = [_write_column(column, _series(frame, column)) for column in columns]
    return np.concatenate(blocks, axis=1) if blocks else np.zeros((len(frame), 0))


def take_log(series: pd.Series, form: Literal["log", "log1p"]) -> np.ndarray:
    """Logarithm `[N]` float64 of a column that is large enough for it.

    Raises:
      DataError: a value is at or below 0 (`log`) or -1 (`log1p`).
    """
    raw = series.to_numpy(np.float64)
    bound = 0 if form == "log" else -1
    if (raw <= bound).any():
        raise DataError(
            f"column {series.name!r} holds {raw.min():g}, {form} needs values "
            f"above {bound}"
        )
    return np.log(raw) if form == "log" else np.log1p(raw)


def _series(frame: pd.DataFrame, column: Column) -> pd.Series:
    if column.name not in frame.columns:
        raise DataError(f"rows to encode lack the column {column.name!r}")
    return get_column(frame, column.name)


def _write_column(column: Column, series: pd.Series) -> np.ndarray:
    if column.form == "number":
        return series.to_numpy(np.float64)[:, None]
    if column.form == "log" or column.form == "log1p":
        return take_log(series, column.form)[:, None]
    found = positions(series, column.values)
    if column.form == "binary":
        return found[:, None].astype(np.float64)
    kept = np.arange(len(column.values))[int(column.drop_first) :]
    return (found[:, None] == kept).astype(np.float64)


def _codes(columns: tuple[Column, ...], frame: pd.DataFrame, no_one: int) -> np.ndarray:
    codes = np.zeros((len(frame), len(columns)), np.int32)
    offset = 0
    for i, column in enumerate(columns):
        found = positions(_series(frame, column), column.values) - column.drop_first
        codes[:, i] = np.where(found < 0, no_one, found + offset)
        offset += column.width
    return codes

"""Raw rows of one data set: what a loader returns and preprocessing reads."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

Kind = Literal["numeric", "binary", "categorical"]
Task = Literal["regression", "binary", "multiclass"]
MOST = 1e19
_CLASSES = 20  # that a target may have of however few rows


class DataError(ValueError):
    """One line that names the file, column or option and what was expected."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileRecord:
    """One file that was read, for the manifest of a run.

    Attributes:
      name: file name without folders.
      sha256: hash of the file as published; of the content where only the local copy
        is compressed.
      origin: `local`, an address, the package that ships the file, or `memory`.
    """

    name: str
    sha256: str
    origin: str


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """One data set before any encoding; checked at construction.

    Attributes:
      name: the name that results are reported under.
      frame: raw rows; may hold columns that only a partition uses.
      target: column to predict. Classes are the integers 0 to K - 1.
      kinds: kind of every feature column, target excluded, in order.
      sensitive: feature column that attribute attacks infer, or None.
      also_sensitive: columns that are inferred together with it.
      task: what the target is.
      files: what was read.
      classes: what the file calls the classes 0 to K - 1, where it holds texts.
      parameters: true parameters of generated data (`weights`, `bias`), else empty.

    Raises:
      DataError: a column is absent, repeated, of the wrong type or incomplete.
    """

    name: str
    frame: pd.DataFrame
    target: str
    kinds: Mapping[str, Kind]
    sensitive: str | None
    task: Task
    also_sensitive: tuple[str, ...] = ()
    files: tuple[FileRecord, ...] = ()
    classes: tuple[str, ...] = ()
    parameters: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_columns(self)
        for name in (self.target, *self.kinds):
            _check_complete(self.name, self.frame, name)
        _check_kinds(self)
        _check_target(self)
        for column in self.concealed:
            _check_sensitive(self, column)
        _check_together(self)

    @property
    def concealed(self) -> tuple[str, ...]:
        """All columns that attacks infer."""
        if self.sensitive is None:
            return ()
        return (self.sensitive, *self.also_sensitive)

    @property
    def inferred(self) -> str:
        """What attacks infer, for people."""
        return " and ".join(self.concealed)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Attribute:
    """The sensitive attribute as the adversary knows it: its possible values.

    Attributes:
      name: column of the table, or several that are inferred together.
      kind: `continuous` for a numeric column.
      categories: label of each candidate, () for continuous.
      candidates: `[K, W]` float32, each value as it stands in the sensitive block.
        Binary: K = 2, W = 1. Categorical: W = K - 1 dummies without the first
        category. Continuous: `[[min], [max]]` of the training rows. Several columns:
        each combination of their values, their blocks side by side.
      parts: column -> number of its value in each candidate `[K]`, of several columns.
    """

    name: str
    kind: Literal["binary", "categorical", "continuous"]
    categories: tuple[str, ...]
    candidates: np.ndarray
    parts: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def width(self) -> int:
        """Columns `W` of the sensitive block."""
        return self.candidates.shape[1]


def get_column(frame: pd.DataFrame, name: str) -> pd.Series:
    """One column; columns are unique in every table, so it is a Series."""
    return cast(pd.Series, frame[name])


def _check_columns(table: Table) -> None:
    columns = table.frame.columns
    if not columns.is_unique:
        repeated = columns[columns.duplicated()][0]
        raise DataError(f"{table.name}: column {repeated!r} appears more than once")
    if table.target in table.kinds:
        raise DataError(f"{table.name}: target {table.target!r} is also a feature")
    for column in (table.target, *table.kinds):
        if column not in columns:
            raise DataError(
                f"{table.name}: no column {column!r}, columns are {', '.join(columns)}"
            )
    if not table.kinds:
        raise DataError(f"{table.name}: no feature column besides the target")
    if not len(table.frame):
        raise DataError(f"{table.name}: no rows")


def _check_complete(name: str, frame: pd.DataFrame, column: str) -> None:
    missing = get_column(frame, column).isna().to_numpy()
    if missing.any():
        raise DataError(
            f"{name}: column {column!r} has {missing.sum()} missing values, "
            f"the first in row {int(missing.argmax())}"
        )


def _check_kinds(table: Table) -> None:
    for column, kind in table.kinds.items():
        series = get_column(table.frame, column)
        number = pd.api.types.is_numeric_dtype(series)
        if kind == "numeric" or kind == "binary" and number:
            check_numbers(table.name, "column", series)
        if kind == "binary" and series.nunique() > 2:
            raise DataError(
                f"{table.name}: binary column {column!r} has {series.nunique()} "
                "different values"
            )
        if kind not in ("numeric", "binary", "categorical"):
            raise DataError(f"{table.name}: column {column!r} has unknown {kind=}")


def first_text(series: pd.Series) -> str:
    """The first cell that is no number, as text; the first one where all are."""
    read: Any = pd.to_numeric(series.astype(str), errors="coerce")
    return str(series.iloc[int(np.isnan(read).argmax())])


def check_numbers(name: str, role: str, series: pd.Series) -> None:
    """Refuses what is no number, or none whose square float32 can hold.

    Raises:
      DataError: naming the column and the row, from 0.
    """
    if not pd.api.types.is_numeric_dtype(series):
        raise DataError(
            f"{name}: {role} {series.name!r} is not numeric, it holds "
            f"{first_text(series)!r}"
        )
    values = series.to_numpy(np.float64)
    fits = np.abs(values) < MOST
    if not fits.all():
        row = int(fits.argmin())
        raise DataError(
            f"{name}: {role} {series.name!r} holds {values[row]:g} in row {row}, "
            f"expected numbers below {MOST:g} in size"
        )


def _check_target(table: Table) -> None:
    series = get_column(table.frame, table.target)
    check_numbers(table.name, "target", series)
    if table.task == "regression":
        return
    classes = np.unique(series.to_numpy())
    too_many = table.task == "binary" and len(classes) > 2
    if too_many or not np.array_equal(classes, np.arange(len(classes))):
        expected = "0 and 1" if table.task == "binary" else "0 to K - 1"
        raise DataError(
            f"{table.name}: {table.task} target {table.target!r} must hold the "
            f"classes {expected}, found {', '.join(map(str, classes[:5]))}"
        )
    if len(classes) > max(_CLASSES, len(series) / 2):
        raise DataError(
            f"{table.name}: {table.task} target {table.target!r} has {len(classes)} "
            f"classes in {len(series)} rows: expected few, of a number task=regression"
        )


def _check_sensitive(table: Table, column: str) -> None:
    name = table.name
    if column == table.target:
        raise DataError(f"{name}: sensitive column {column!r} is the target")
    if column not in table.kinds:
        raise DataError(
            f"{name}: sensitive column {column!r} is not a feature, as a constant column is "
            f"not, features are {', '.join(table.kinds)}"
        )
    if get_column(table.frame, column).nunique() < 2:
        raise DataError(
            f"{name}: sensitive column {column!r} is constant, expected two values at least"
        )


def _check_together(table: Table) -> None:
    """Columns that are inferred together are different ones, of categories."""
    if not table.also_sensitive:
        return
    if table.sensitive is None:
        raise DataError(f"{table.name}: also_sensitive without a sensitive column")
    for column in table.concealed:
        if table.concealed.count(column) > 1:
            raise DataError(f"{table.name}: column {column!r} is sensitive twice")
        if table.kinds[column] == "numeric":
            raise DataError(
                f"{table.name}: column {column!r} is a number, and only categories are "
                "inferred together"
            )

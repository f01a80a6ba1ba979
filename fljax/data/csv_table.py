"""Any CSV file as a data set: kinds are inferred, doubts are errors.

Text, bool and two-valued columns are categories, other numbers are numbers. A column
of text that is different in most rows (a name, a date, an id), and one that is text
only because some of its cells are not numbers, are refused with a hint.
"""

import pathlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fljax.data.csv_reader import read_csv
from fljax.data.fetch import read_local
from fljax.data.missing import handle_missing
from fljax.data.options import Preprocessing
from fljax.data.table import DataError, Kind, Table, Task, get_column
from fljax.data.vocabulary import positions, vocabulary

PRESETS = {
    "neural": Preprocessing(),
    "linear": Preprocessing(categorical="dummies", target="raw"),
}

_FEW = 10  # so many categories are never taken for ids, however short the file


def load(
    *,
    data_dir: str | None = None,
    path: str,
    target: str,
    sensitive: str | None = None,
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str = "error",
    task: Task | None = None,
) -> Table:
    """Reads a CSV file with a header.

    Args:
      data_dir: folder that a relative `path` may also start from.
      path: the file, plain or `.gz`.
      target: column to predict; numbers are a regression unless they are two. Text
        needs a `task`: its values become classes, numbered in sorted order.
      sensitive: column that attribute attacks infer.
      numeric: columns to take as numbers.
      categorical: columns to take as categories.
      drop: columns to leave out.
      missing: `error`, `drop` rows, or `impute` features by median or most frequent
        value of the whole file (never the target or the sensitive column).
      task: overrides what the target is taken for.

    Raises:
      DataError: the file or an option does not make a usable table.
    """
    file = read_local(path, data_dir)
    name = file.record.name
    frame = read_csv(file.content, name)
    _check_named(name, frame, (target, *numeric, *categorical, *drop))
    if sensitive is not None:
        _check_named(name, frame, (sensitive,))
    frame = frame.drop(columns=list(drop))
    if not target or target not in frame.columns:
        raise DataError(f"{name}: target {target!r} is among the dropped columns")
    kept = tuple(column for column in (target, sensitive) if column)
    frame = handle_missing(frame, name, missing, never_imputed=kept)
    frame = _drop_constant(frame, name, kept)
    features = [column for column in frame.columns if column != target]
    kinds: dict[str, Kind] = {
        column: _kind(name, get_column(frame, column), numeric, categorical)
        for column in features
    }
    series, task = _classes(name, get_column(frame, target), task)
    return Table(
        name=pathlib.PurePath(name).name.split(".")[0],
        frame=frame.assign(**{target: series}),
        target=target,
        kinds=kinds,
        sensitive=sensitive,
        task=task,
        files=(file.record,),
    )


def _check_named(name: str, frame: pd.DataFrame, columns: Sequence[str]) -> None:
    for column in columns:
        if column not in frame.columns:
            raise DataError(
                f"{name}: no column {column!r}, columns are "
                f"{', '.join(map(str, frame.columns))}"
            )


def _drop_constant(
    frame: pd.DataFrame, name: str, kept: tuple[str, ...]
) -> pd.DataFrame:
    constant = [
        column
        for column in frame.columns
        if column not in kept and get_column(frame, column).nunique() < 2
    ]
    if constant:
        warnings.warn(
            f"{name}: constant columns left out: {', '.join(constant)}", stacklevel=3
        )
    return frame.drop(columns=constant)


def _kind(
    name: str, series: pd.Series, numeric: Sequence[str], categorical: Sequence[str]
) -> Kind:
    if series.name in numeric:
        return "numeric"
    distinct = series.nunique()
    if distinct <= 2:
        return "binary"
    if series.name in categorical:
        return "categorical"
    if pd.api.types.is_numeric_dtype(series):
        return "numeric"
    _check_not_numbers(name, series, "list it in categorical=")
    if distinct > max(_FEW, 0.5 * len(series)):
        raise DataError(
            f"{name}: column {series.name!r} has {distinct} different texts in "
            f"{len(series)} rows, as an id has; list it in drop= or categorical="
        )
    return "categorical"


def _check_not_numbers(name: str, series: pd.Series, remedy: str) -> None:
    """Text that is mostly numbers is a number column with broken cells."""
    numbers: Any = pd.to_numeric(series, errors="coerce")
    broken = np.isnan(np.asarray(numbers, np.float64))
    if broken.mean() < 0.5:
        row = int(broken.argmax())
        raise DataError(
            f"{name}: column {series.name!r} is not numeric, row {row} holds "
            f"{series.iloc[row]!r}; mend it or {remedy}"
        )


def _classes(name: str, series: pd.Series, task: Task | None) -> tuple[pd.Series, Task]:
    distinct = series.nunique()
    if not pd.api.types.is_numeric_dtype(series):
        _check_not_numbers(name, series, "predict another column")
        if task not in ("binary", "multiclass"):
            raise DataError(
                f"{name}: target {series.name!r} is not numeric, it holds "
                f"{series.iloc[0]!r}; for classes choose task=binary or multiclass"
            )
    if distinct < 2:
        raise DataError(f"{name}: target {series.name!r} is constant")
    task = task or ("binary" if distinct == 2 else "regression")
    if task == "regression":
        return series.astype(np.float64), task
    numbers = positions(series, vocabulary(series))
    return pd.Series(numbers, index=series.index, name=series.name), task

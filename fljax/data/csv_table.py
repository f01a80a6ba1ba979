"""Any CSV file as a data set: kinds are inferred, doubts are errors (`csv_kinds`).

Columns in `drop` are no inputs and may be empty; a partition may still read them.
"""

import difflib
import functools
import os
import pathlib
import warnings
from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np
import pandas as pd

from fljax import printable
from fljax.data import csv_kinds, csv_spellings
from fljax.data.csv_format import CsvFormat
from fljax.data.csv_reader import read_csv
from fljax.data.fetch import of_bytes, read_local
from fljax.data.missing import handle_missing, kept_rows
from fljax.data.options import Preprocessing
from fljax.data.table import DataError, Table, Task, first_text, get_column
from fljax.data.vocabulary import label, positions, vocabulary

_COPIES = 0.1  # of the rows
_FRAME = "frame.csv"  # name of one in memory
_ALSO = ". Also: "  # between what is wrong with several columns
PRESETS = {
    "neural": Preprocessing(target="standardise_numbers"),
    "linear": Preprocessing(categorical="dummies", target="standardise_numbers"),
}  # of whatever size a target is, one range of learning rates trains


def load(
    *,
    data_dir: str | None = None,
    path: str | os.PathLike | pd.DataFrame,
    target: str,
    sensitive: str | None = None,
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str = "error",
    missing_codes: Sequence[str] = (),
    separator: str = ",",
    decimal: str = ".",
    thousands: str = "",
    encoding: str = "utf-8",
    task: Task | None = None,
) -> Table:
    """Reads a CSV file with a header.

    Args:
      data_dir: folder that a relative `path` may also start from.
      path: the file, plain or `.gz`; or a frame, read as the file that it makes, without
        its index, with its columns of type `category` as categories.
      target: column to predict; numbers are a regression unless they are two. Text
        needs a `task`: its values become classes, numbered in sorted order.
      sensitive: column that attribute attacks infer.
      numeric: columns to take as numbers.
      categorical: columns to take as categories.
      drop: columns that are no inputs; they stay in the table's `frame`.
      missing: `error`; `drop` rows; or `impute` by median or most frequent value of the
        whole file, but drop rows without target or sensitive value. A warning says how
        many rows and cells that are.
      missing_codes: as are the four that follow, of `CsvFormat`.
      separator: between cells.
      decimal: mark of numbers.
      thousands: mark between groups of three digits.
      encoding: of the text.
      task: overrides what the target is taken for.

    Raises:
      DataError: the file or an option does not make a usable table.
    """
    for option, told in (
        ("numeric", numeric), ("categorical", categorical), ("drop", drop),
    ):  # fmt: skip
        if isinstance(told, str):
            raise DataError(f"{option}: expected a list of columns, got {told!r}")
    drop = list(dict.fromkeys(drop))
    if isinstance(path, pd.DataFrame):
        path = path.rename(columns=str)
        named = {target, *numeric, *categorical}
        kinds = path.select_dtypes("category").columns
        categorical = [*categorical, *(each for each in kinds if each not in named)]
        file = of_bytes(_FRAME, path.to_csv(index=False).encode())
        separator, decimal, thousands, encoding = ",", ".", "", "utf-8"
    elif isinstance(path, str | os.PathLike):
        file = read_local(os.fspath(path), data_dir)
    else:
        kind = type(path).__name__
        raise DataError(f"path: expected a path or a pandas DataFrame, got {kind}")
    name = file.record.name
    form = CsvFormat(
        separator=separator,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        missing_codes=missing_codes,
    )
    raw = read_csv(file.content, name, form=form)
    kept = (target,) if sensitive is None else (target, sensitive)
    named = {"target": kept[:1], "sensitive": kept[1:]}
    named |= {"numeric": numeric, "categorical": categorical, "drop": drop}
    _check_named(name, raw, named)
    _check_kept(name, target, sensitive, drop)
    _check_kinds(name, numeric, categorical, task)
    used = raw.drop(columns=drop)
    told = {"numeric": numeric, "categorical": categorical, "form": form}
    looked = functools.partial(csv_kinds.kinds, sensitive=sensitive, **told)
    try:
        frame = handle_missing(
            used, name, missing, never_imputed=kept, categorical=categorical
        )
    except DataError as error:
        _, wrong = looked(used, [c for c in used.columns if c != target])
        raise DataError(_ALSO.join([str(error), *wrong])) from error
    rows = kept_rows(used, missing, kept)
    left = used.iloc[rows]  # at their numbers in the file, and nothing filled in
    constant = _constant(frame, name, kept)
    features = [c for c in frame.columns if c != target and c not in constant]
    kinds, wrong = looked(left, features)
    numbers = [column for column, kind in kinds.items() if kind != "categorical"]
    wrong += filter(None, (csv_kinds.too_large(left[column]) for column in numbers))
    if wrong:
        raise DataError(f"{name}: {_ALSO.join(wrong)}")
    series, task, classes = _classes(name, get_column(left, target), task, **told)
    if task == "regression" and (said := csv_kinds.too_large(series)):
        raise DataError(f"{name}: {said}")
    aside = raw[drop].iloc[rows].reset_index(drop=True)
    categories = [column for column, kind in kinds.items() if kind != "numeric"]
    csv_spellings.warn_of_categories(frame, categories, name)
    found = [c for c in kinds if kinds[c] == "numeric" and c not in numeric]
    csv_spellings.warn_of_leading_zeros(file.content, found, name, form)
    measured = numbers + [target] * (task == "regression")
    csv_spellings.warn_of_thousands(file.content, used, measured, name, form)
    if sensitive is not None and kinds.get(sensitive) == "numeric":
        _suggest_categories(name, get_column(frame, sensitive))
    table = Table(
        name=pathlib.PurePath(name).name.split(".")[0],
        frame=pd.concat([frame.drop(columns=constant), aside], axis=1).assign(
            **{target: series.reset_index(drop=True)}
        ),
        target=target,
        kinds=kinds,
        sensitive=sensitive,
        task=task,
        files=(file.record,),
        classes=classes,
    )
    _warn_of_copies(name, frame)
    return table


def _warn_of_copies(name: str, frame: pd.DataFrame) -> None:
    """Of rows that are there more than once, as visits of one person are."""
    copies = int(frame.duplicated().sum())
    if copies > _COPIES * len(frame):
        warnings.warn(
            f"{name}: {copies} of {len(frame)} rows are copies of others. If those are one "
            "person's, imputation finds them among other people's, and strangers to the "
            "messages have them, so that what leaks passes for predictable: keep one row of "
            "each person",
            stacklevel=3,
        )


def _check_named(
    name: str, frame: pd.DataFrame, named: Mapping[str, Sequence[str]]
) -> None:
    """Raises unless there are the columns of every option."""
    for option, columns in named.items():
        for column in columns:
            if column not in frame.columns:
                there = list(map(str, frame.columns))
                near = difflib.get_close_matches(column, there, n=1)
                meant = f" (did you mean {near[0]!r}?)" if near else ""
                if all(part in there for part in column.split(",")):
                    meant = " (expected one column)"
                raise DataError(
                    f"{name}: no column {column!r} of {option}={meant}, columns are "
                    f"{', '.join(there)}"
                )


def _check_kept(
    name: str, target: str, sensitive: str | None, drop: Sequence[str]
) -> None:
    if target == sensitive:
        raise DataError(
            f"{name}: sensitive column {target!r} is the target; expected two columns"
        )
    for role, column in (("target", target), ("sensitive", sensitive)):
        if column in drop:
            raise DataError(
                f"{name}: {role} {column!r} is among the dropped columns, drop=; "
                "choose another column"
            )


def _check_kinds(
    name: str, numeric: Sequence[str], categorical: Sequence[str], task: str | None
) -> None:
    for column in numeric:
        if column in categorical:
            raise DataError(
                f"{name}: column {column!r} is in both numeric= and categorical=, "
                "expected one of them"
            )
    if task is not None and task not in get_args(Task):
        raise DataError(
            f"{name}: task={task!r} is not one of {', '.join(get_args(Task))}"
        )


def _constant(frame: pd.DataFrame, name: str, kept: tuple[str, ...]) -> list[str]:
    """Columns with one value, but for those to keep."""
    constant = [
        column
        for column in frame.columns
        if column not in kept and get_column(frame, column).nunique() < 2
    ]
    if constant:
        warnings.warn(
            f"{name}: constant columns left out: {', '.join(constant)}", stacklevel=3
        )
    return constant


def _suggest_categories(name: str, series: pd.Series) -> None:
    """Attacks are stronger on few values than on a number, which must be asked for."""
    if csv_kinds.is_ordinal(series):
        warnings.warn(
            f"{name}: sensitive column {series.name!r} is a number of "
            f"{series.nunique()} different values; categorical={series.name} takes "
            "them as categories",
            stacklevel=3,
        )


def _classes(
    name: str,
    series: pd.Series,
    task: Task | None,
    *,
    form: CsvFormat,
    numeric: Sequence[str],
    categorical: Sequence[str],
) -> tuple[pd.Series, Task, tuple[str, ...]]:
    """The target as a task has it, the task, and what texts the classes were."""
    distinct = series.nunique()
    if series.name not in numeric:
        csv_kinds.check_target(name, series, form)
    text = not pd.api.types.is_numeric_dtype(series)
    if text and task not in ("binary", "multiclass"):
        unit = csv_spellings.unit_of_numbers(series)
        way_out = f"write numbers without {unit!r}, or " if unit else ""
        raise DataError(
            f"{name}: target {series.name!r} is not numeric, it holds "
            f"{first_text(series)!r}; {way_out}for classes choose task=binary or multiclass"
        )
    if distinct < 2:
        raise DataError(
            f"{name}: target {series.name!r} is constant, expected two values at least; "
            "add rows that have another"
        )
    if task == "binary" and distinct > 2:
        raise DataError(
            f"{name}: target {series.name!r} has {distinct} different values, expected "
            "two; for more classes choose task=multiclass"
        )
    task = task or ("binary" if distinct == 2 else "regression")
    if task == "regression" and series.name in categorical:
        raise DataError(
            f"{name}: target {series.name!r} is in categorical=; for classes choose "
            "task=binary or multiclass"
        )
    if task == "regression":
        return series.astype(np.float64), task, ()
    values = vocabulary(series)
    numbers = positions(series, values)
    classes = tuple(map(printable.quoted, map(label, values))) if text else ()
    return pd.Series(numbers, index=series.index, name=series.name), task, classes

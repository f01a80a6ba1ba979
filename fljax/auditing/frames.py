"""Data frames as the CSV files that they make, without their index.

A file does not say which of its numbers are categories, as a frame does: it is told.
"""

import dataclasses
import os
import pathlib
import warnings
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from fljax.auditing.settings import FilesConfig, RowsConfig
from fljax.data.csv_format import MISSING, CsvFormat, numbers
from fljax.data.vocabulary import vocabulary
from fljax.driver.config import ConfigError

Rows = str | os.PathLike | pd.DataFrame


def path(rows: Rows, folder: str, argument: str) -> str:
    """Where the rows are: the path itself, or a file that is written.

    Args:
      rows: a CSV file or a data frame.
      folder: to write into.
      argument: that they are, for errors and the file's name.

    Raises:
      ConfigError: they are neither.
    """
    if isinstance(rows, str | os.PathLike):
        return os.fspath(rows)
    if not isinstance(rows, pd.DataFrame):
        raise ConfigError(
            f"{argument}: expected a path or a pandas DataFrame, got {type(rows).__name__}"
        )
    written = pathlib.Path(folder) / argument  # which errors name
    rows.to_csv(written, index=False)
    return str(written)


def columns(rows: Rows, files: FilesConfig, config: RowsConfig) -> RowsConfig:
    """How columns are read, with numbers that a frame has as `category` as categories.

    Args:
      rows: as in `path`; a file says nothing of this.
      files: the target and the column of clients are no inputs.
      config: what is named there is as it says.

    Raises:
      ConfigError: a column has lists, say; one that is not named has texts and all of
        them are numbers, or two such categories, but for 0 and 1; or the target has
        numbers as categories and no task.

    Texts that a file has for missing values are warned of.
    """
    if not isinstance(rows, pd.DataFrame):
        return config
    aside, found = (*config.drop, files.client_column), []
    for column, series in rows.items():
        name = str(column)
        if name in aside or pd.api.types.is_numeric_dtype(series):
            continue
        made = "codes" if name == files.target else "pandas.get_dummies"
        _warn_of_order(name, series, made)
        values = _different(name, series)
        _warn_of_missing(name, values)
        if name in (*config.numeric, *config.categorical):
            continue
        text = _number_as_text(values)
        if not (text or _are_categories(series)):
            continue
        if len(values) <= 2:  # one input, as it stands
            if name != files.target and not _are_bits(values):
                raise ConfigError(
                    f"rows: column {name!r} has two categories that are numbers, such as "
                    f"{values[0]!r}; make them numbers, or texts that are none"
                )
        elif text:
            lists = "numeric=" if name == files.target else "categorical= or numeric="
            raise ConfigError(
                f"rows: column {name!r} has texts that are numbers, such as {text!r}; "
                f"make them numbers, or list it in {lists}"
            )
        elif name != files.target:
            found.append(name)
        elif config.task is None:
            raise ConfigError(
                f"--task: target {name!r} has categories; expected multiclass or regression"
            )
    return dataclasses.replace(config, categorical=(*config.categorical, *found))


def _different(name: str, series: pd.Series) -> list[Any]:
    """Values of a column, each once.

    Raises:
      ConfigError: they are lists, say.
    """
    try:
        return list(series.dropna().unique())
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in series.dropna()})
        raise ConfigError(
            f"rows: column {name!r}: expected numbers or texts, got {', '.join(kinds)}"
        ) from error


def _are_categories(series: pd.Series) -> bool:
    """Whether they are numbers that a frame has as categories."""
    kind = series.dtype
    if not isinstance(kind, pd.CategoricalDtype):
        return False
    return pd.api.types.is_numeric_dtype(kind.categories)


def _are_bits(values: list[Any]) -> bool:
    return {float(value) for value in values} <= {0.0, 1.0}


def _warn_of_order(name: str, series: pd.Series, made: str) -> None:
    """Categories are sorted here, and those without a row have no input."""
    kind = series.dtype
    if not isinstance(kind, pd.CategoricalDtype):
        return
    declared = list(kind.categories)
    if declared != list(vocabulary(series.dropna().astype(object))):
        listed = ", ".join(map(str, declared))
        warnings.warn(
            f"rows: categories of {name!r} are taken in sorted order and without those "
            f"of no row, where {made} of it are in the order {listed}",
            stacklevel=4,
        )


def _warn_of_missing(name: str, values: list[Any]) -> None:
    """A file that is made of a frame cannot tell these texts from no value."""
    if texts := [value for value in values if value in MISSING]:
        warnings.warn(
            f"rows: column {name!r}: {', '.join(map(repr, texts))} is taken for a missing "
            "value; write it otherwise if it is one of the categories",
            stacklevel=4,
        )


def _number_as_text(values: list[Any]) -> str:
    """The first text, if all values are numbers and some are written as texts."""
    texts = [value for value in values if isinstance(value, str)]
    others = [value for value in values if not isinstance(value, Number | str)]
    if not texts or others or np.isnan(numbers(pd.Series(texts), CsvFormat())).any():
        return ""
    return texts[0]

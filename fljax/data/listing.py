"""What every column of a table becomes: the lines to read before a training."""

from typing import NamedTuple

import pandas as pd

from fljax import printable
from fljax.data.csv_kinds import is_ordinal
from fljax.data.encoder import Column
from fljax.data.preprocess import Dataset
from fljax.data.table import Table, get_column
from fljax.data.vocabulary import label, vocabulary

_SHOWN = 6  # categories


class Listed(NamedTuple):
    """One column of the raw rows.

    Attributes:
      name: of the column.
      role: `target`, `sensitive`, `input` or `left out`.
      values: what it holds, in words.
      inputs: of the model that it becomes.
      few: whether it is a number of so few values that they may be categories.
    """

    name: str
    role: str
    values: str
    inputs: int
    few: bool


def columns(dataset: Dataset) -> list[Listed]:
    """Every column, in the order of the table's frame."""
    table, encoder = dataset.table, dataset.encoder
    written = {column.name: column for column in (*encoder.dense, *encoder.coded)}
    found = []
    for name in table.frame.columns:
        series = get_column(table.frame, name)
        if name == table.target:
            regression = table.task == "regression"
            values = _range(series) if regression else _classes(table, series)
            found.append(Listed(name, "target", f"{table.task}, {values}", 0, False))
        elif name in table.kinds:
            role = "sensitive" if name in table.concealed else "input"
            found.append(_of_feature(role, written[name], series, table.kinds[name]))
        else:
            found.append(
                Listed(name, "left out", f"{series.nunique()} values", 0, False)
            )
    return found


def _of_feature(role: str, column: Column, series: pd.Series, kind: str) -> Listed:
    if kind != "numeric":
        return Listed(column.name, role, _labels(series), column.width, False)
    few = is_ordinal(series)
    values = _range(series) + (f", {series.nunique()} different" if few else "")
    return Listed(column.name, role, values, column.width, few)


def _range(series: pd.Series) -> str:
    return f"number from {series.min():g} to {series.max():g}"


def _classes(table: Table, series: pd.Series) -> str:
    """Classes with their numbers, where the file calls them otherwise."""
    if not table.classes:
        return _labels(series)
    named = [f"{text} ({number})" for number, text in enumerate(table.classes[:_SHOWN])]
    return _listed(len(table.classes), named)


def _listed(count: int, shown: list[str]) -> str:
    more = ", ..." if count > len(shown) else ""
    return f"{count} values: {', '.join(shown)}{more}"


def _labels(series: pd.Series) -> str:
    values = [printable.quoted(label(value)) for value in vocabulary(series)]
    return _listed(len(values), values[:_SHOWN])

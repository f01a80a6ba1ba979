"""What every column of a table becomes: the lines to read before a training."""

from typing import NamedTuple

import pandas as pd

from fljax.data.csv_kinds import is_ordinal
from fljax.data.encoder import Column
from fljax.data.preprocess import Dataset
from fljax.data.table import get_column
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
            values = "number" if table.task == "regression" else _labels(series)
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
    low, high, distinct = series.min(), series.max(), series.nunique()
    values = f"number from {low:g} to {high:g}"
    few = is_ordinal(series)
    values += f", {distinct} different" if few else ""
    return Listed(column.name, role, values, column.width, few)


def _labels(series: pd.Series) -> str:
    values = [label(value) for value in vocabulary(series)]
    more = ", ..." if len(values) > _SHOWN else ""
    return f"{len(values)} values: {', '.join(values[:_SHOWN])}{more}"

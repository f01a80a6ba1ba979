"""From a table to what the adversary knows and, apart from it, the truth.

    `--known` -> split -> (Columns, Known) to the attacks, Truth to `scoring` alone

The model reads one vector of inputs, in `--input_order`; attacks write the sensitive
block behind the public columns, and `Columns.order` leads from one to the other.

Columns are encoded as `fljax.data` does: numbers as they stand or standardised, two
texts as 0 and 1 in sorted order (or as more are), more texts as one 0/1 input per
category.
"""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from fljax import data
from fljax.auditing.settings import RowsConfig
from fljax.auditing.table import Owned
from fljax.auditing.truth import Truth
from fljax.data import Dataset, Preprocessing
from fljax.data.encoder import Column
from fljax.data.preprocess import Split
from fljax.data.table import Attribute, check_numbers, get_column
from fljax.data.vocabulary import positions
from fljax.types import Features, Known

_ORDER = ("numeric", "binary", "categorical")


class Columns(NamedTuple):
    """What is public about the inputs of the model.

    Attributes:
      order: `[D]` input i of the model is column `order[i]` of `[public | sensitive]`.
      names: of the inputs, in the model's order.
      candidates: `[K, W]` values that the sensitive block may take; for a continuous
        attribute `[2, 1]`, the range.
      continuous: whether it is a number.
      categories: label of each candidate, none for a continuous one.
      task: what the target is.
      classes: different targets, 1 for a regression.
    """

    order: np.ndarray
    names: tuple[str, ...]
    candidates: np.ndarray
    continuous: bool
    categories: tuple[str, ...]
    task: str
    classes: int


class Encoding(NamedTuple):
    """A fitted encoding, of the whole file.

    Attributes:
      dataset: of all rows.
      columns: what is public about it.
      labels: the classes of the target as the file writes them.
    """

    dataset: Dataset
    columns: Columns
    labels: pd.Index


def of_two_texts(read: Owned) -> list[str]:
    """Columns that `pandas.get_dummies` makes two inputs of."""
    table = read.table
    return [
        name
        for name, kind in table.kinds.items()
        if kind == "binary" and not pd.api.types.is_numeric_dtype(table.frame[name])
    ]


def encode(read: Owned, config: RowsConfig, two: bool = False) -> Encoding:
    """Fits the encoding on all rows of the file.

    Args:
      read: the rows.
      config: how columns are read.
      two: columns of two texts are two inputs.

    Raises:
      DataError: the flags do not fit the table.
    """
    table = read.table
    if two:
        kinds: dict[str, data.Kind] = dict.fromkeys(of_two_texts(read), "categorical")
        table = dataclasses.replace(table, kinds={**table.kinds, **kinds})
    as_told = table.kinds
    if not config.standardise:
        # Two numbers go in as they stand; only two texts become 0 and 1.
        kinds = {name: _unscaled(table, name) for name in as_told}
        table = dataclasses.replace(table, kinds=kinds)
    options = Preprocessing(
        split="none",
        numeric="standardise" if config.standardise else "raw",
        binary="standardise" if config.standardise else "zero_one",
        categorical="dummies",
        drop_first=config.drop_first,
        target="standardise" if config.standardise_target else "raw",
    )
    dataset = data.prepare(table, options, seed=0)
    attribute = _attribute(dataset)
    candidates = attribute.candidates
    values = dataset.encoder.dense[-1].values
    if attribute.kind == "categorical" and not config.drop_first:
        candidates = np.eye(len(candidates), dtype=np.float32)
    as_it_stands = attribute.kind == "binary" and not config.standardise
    if as_it_stands and pd.api.types.is_numeric_dtype(values):
        candidates = values.to_numpy(np.float32)[:, None]
    order, names = _order(dataset, as_told, candidates, config.input_order)
    regression = table.task == "regression"
    classes = 1 if regression else int(get_column(table.frame, table.target).max()) + 1
    return Encoding(
        dataset,
        Columns(
            order, names, candidates, attribute.kind == "continuous",
            attribute.categories, table.task, classes,
        ),
        read.labels,
    )  # fmt: skip


def everyone(encoding: Encoding, proxy: pd.DataFrame | None) -> Split:
    """All rows of the file and, behind them, the adversary's own.

    Raises:
      DataError: these are not rows like those of the file.
    """
    rows = encoding.dataset.train
    if proxy is None:
        return rows
    more = encoding.dataset.encode(_checked(encoding, proxy))
    x, y, truth = jax.tree.map(
        lambda *leaves: np.concatenate(leaves), rows[:3], more[:3]
    )
    frame = pd.concat([rows.frame, more.frame], ignore_index=True)
    return Split(x, y, truth, frame)


def split(
    encoding: Encoding, every: Split, rows: list[np.ndarray], outputs: int, most: int
) -> tuple[Known, Truth]:
    """Takes the sensitive column out of some of the rows for each audited client.

    Args:
      encoding: from `encode`.
      every: from `everyone`.
      rows: row numbers for each client.
      outputs: classes of the model.
      most: rows that there is room for.

    Returns:
      What an adversary knows, leaves `[C, most, ...]`, and what only scores may read.
    """
    dataset = encoding.dataset
    mask = np.zeros((len(rows), most), bool)
    index = np.zeros(mask.shape, np.int64)
    for client, chosen in enumerate(rows):
        mask[client, : len(chosen)] = True
        index[client, : len(chosen)] = chosen
    nothing = np.zeros((*mask.shape, 0), np.int32)
    numeric = public(encoding, every).numeric
    known = Known(Features(numeric[index], nothing), every.y[index], mask)
    classes = np.arange(outputs)
    shares = [np.mean(every.y[chosen][:, None] == classes, axis=0) for chosen in rows]
    written = inputs(encoding, every.frame)
    file = inputs(encoding, dataset.train.frame).astype(np.float64)
    varies = np.ptp(file, axis=0) > 0  # rounding makes a deviation of a constant, too
    truth = Truth(
        sensitive=every.truth[index],
        mask=mask,
        unit=float(dataset.encoder.scale[-1]),
        labels=np.array(shares),
        rows=written[index],
        scale=np.where(varies, file.std(axis=0), 1),
    )
    return known, truth


def public(encoding: Encoding, every: Split) -> Features:
    """The other columns of rows, `[N, ...]`."""
    width = _attribute(encoding.dataset).width
    return Features(every.x.numeric[:, : -width or None], every.x.codes)


def inputs(encoding: Encoding, frame: pd.DataFrame) -> np.ndarray:
    """`[N, D]` float32, `[public | sensitive]`, of raw rows.

    Raises:
      DataError: a column is absent, or a category is not in the file of known rows.
    """
    dataset, columns, _ = encoding
    found = np.asarray(dataset.encoder.encode(frame).numeric)
    if columns.continuous:
        return found
    column = dataset.encoder.dense[-1]
    which = positions(get_column(frame, column.name), column.values)
    public = found[:, : found.shape[1] - _attribute(dataset).width]
    return np.concatenate([public, columns.candidates[which]], axis=1)


def proxy(encoding: Encoding, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Inputs `[N, D]` of the adversary's own rows and classes `[N]`, if there are any.

    Raises:
      DataError: they are not rows like those of the file of known rows.
    """
    frame = _checked(encoding, frame)
    y = np.zeros(len(frame), np.int32)
    if encoding.dataset.table.task != "regression":
        y = get_column(frame, encoding.dataset.table.target).to_numpy(np.int32)
    return inputs(encoding, frame), y


def _checked(encoding: Encoding, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of the adversary with classes as numbers.

    Raises:
      DataError: they are not rows like those of the file of known rows.
    """
    table = encoding.dataset.table
    if table.target not in frame.columns:
        raise data.DataError(f"rows to encode lack the column {table.target!r}")
    kinds = table.kinds
    for name in (*kinds, table.target):
        if name in frame.columns and get_column(frame, name).isna().to_numpy().any():
            raise data.DataError(f"column {name!r} has missing values")
    for name, kind in kinds.items():
        if kind == "numeric" and name in frame.columns:
            check_numbers("rows to encode", "column", get_column(frame, name))
    if table.task == "regression":
        return frame
    classes = positions(get_column(frame, table.target), encoding.labels)
    return frame.assign(**{table.target: classes})


def _attribute(dataset: Dataset) -> Attribute:
    """That of the sensitive column, which every audit has."""
    assert dataset.attribute is not None
    return dataset.attribute


def _unscaled(table: data.Table, name: str) -> data.Kind:
    numbers = pd.api.types.is_numeric_dtype(table.frame[name])
    if table.kinds[name] == "binary" and numbers and name != table.sensitive:
        return "numeric"
    return table.kinds[name]


def _order(
    dataset: Dataset, kinds, candidates: np.ndarray, order: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """`Columns.order` and names, with a sensitive block of these candidates."""
    places, names, at = {}, {}, 0
    for column in dataset.encoder.dense:
        sensitive = column.name == dataset.table.sensitive
        wide = candidates.shape[1] if sensitive else column.width
        places[column.name] = np.arange(at, at + wide)
        names[column.name] = _names(column, wide)
        at += wide
    chosen = list(kinds)
    if order == "dummies":
        frame = dataset.table.frame
        chosen.sort(
            key=lambda name: (
                kinds[name] == "categorical"
                or not pd.api.types.is_numeric_dtype(frame[name])
            )
        )
    elif order != "file":
        sensitive = dataset.table.sensitive
        chosen.sort(key=lambda name: _ORDER.index(kinds[name]))
        chosen.sort(key=lambda name: name == sensitive)
        if order == "neural":  # codes of categories follow the numeric block
            chosen.sort(
                key=lambda name: kinds[name] == "categorical" and name != sensitive
            )
    found = np.concatenate([places[name] for name in chosen])
    return found, tuple(each for name in chosen for each in names[name])


def _names(column: Column, width: int) -> tuple[str, ...]:
    if column.form == "binary" and pd.api.types.is_numeric_dtype(column.values):
        return (column.name,)
    if len(column.names) == width:
        return column.names
    return tuple(f"{column.name}_{value}" for value in column.values)

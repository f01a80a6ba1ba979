"""From a Table to arrays: split, scaling, one-hot codes, sensitive attribute.

Scalers are fitted on the pooled training rows of all clients; vocabularies come from
the whole table, because the protocols build their dummies before they split
(Diana et al., "Attribute Inference Attacks for Federated Regression Tasks", 2025).
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fljax.data.encoder import (
    Column,
    Encoder,
    check_steps,
    fit_encoder,
    take_log,
    write,
)
from fljax.data.options import Preprocessing
from fljax.data.split import split_rows
from fljax.data.table import Attribute, DataError, Kind, Table, get_column
from fljax.data.vocabulary import label, positions, vocabulary
from fljax.types import Features


class Split(NamedTuple):
    """Training or test rows.

    Attributes:
      x: `Features` of NumPy arrays, `[N, Dn]` float32 and `[N, Dc]` int32.
      y: `[N]` float32, int32 classes for multiclass.
      truth: `[N]` int32 candidate index of the sensitive attribute, or its float32
        encoded value where it is continuous; zeros where there is none.
      frame: the raw rows, for partitions.
    """

    x: Features
    y: np.ndarray
    truth: np.ndarray
    frame: pd.DataFrame


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Encoded rows and what is needed to encode more, or to read results back.

    Attributes:
      table: where the rows came from.
      options: how they were encoded.
      train: training rows.
      test: test rows, possibly none.
      attribute: the sensitive attribute, or None.
      encoder: encodes new rows.
      target_mean: subtracted from the (logarithm of the) target, else 0.
      target_std: divided by after that, else 1.
    """

    table: Table
    options: Preprocessing
    train: Split
    test: Split
    attribute: Attribute | None
    encoder: Encoder
    target_mean: float
    target_std: float

    @property
    def num_numeric(self) -> int:
        """Numeric inputs `Dn`, the sensitive block included."""
        return len(self.encoder.numeric_names)

    @property
    def num_onehot(self) -> int:
        """Inputs that are held as positions."""
        return self.encoder.num_onehot

    @property
    def numeric_names(self) -> tuple[str, ...]:
        """Name of each numeric input."""
        return self.encoder.numeric_names

    def encode(self, frame: pd.DataFrame) -> Split:
        """Encodes raw rows as the training rows were.

        Raises:
          DataError: a column is absent, or a category is not in the vocabulary.
        """
        scale = self.target_mean, self.target_std
        return _encode(
            self.table, self.options, self.encoder, self.attribute, scale, frame
        )

    def raw_target(self, y: np.ndarray) -> np.ndarray:
        """Puts targets or predictions back to the table's units."""
        y = np.asarray(y, np.float64) * self.target_std + self.target_mean
        return np.exp(y) if self.options.target == "log_standardise" else y


def prepare(table: Table, options: Preprocessing, *, seed: int) -> Dataset:
    """Splits and encodes a table.

    Args:
      table: raw rows.
      options: how to encode them.
      seed: seed of the split.

    Raises:
      DataError: the options do not fit the table.
    """
    rows = split_rows(
        table,
        options.split,
        test_fraction=options.test_fraction,
        column=options.split_column,
        seed=seed,
    )
    frames = [table.frame.iloc[chosen].reset_index(drop=True) for chosen in rows]
    encoder = fit_encoder(*_plan(table, options), frames[0])
    attribute = _attribute(table, encoder, frames[0])
    target_mean, target_std = _target_scale(table, options, frames[0])

    train, test = (
        _encode(table, options, encoder, attribute, (target_mean, target_std), frame)
        for frame in frames
    )
    return Dataset(
        table=table,
        options=options,
        train=train,
        test=test,
        attribute=attribute,
        encoder=encoder,
        target_mean=target_mean,
        target_std=target_std,
    )


def _encode(
    table: Table,
    options: Preprocessing,
    encoder: Encoder,
    attribute: Attribute | None,
    target: tuple[float, float],
    frame: pd.DataFrame,
) -> Split:
    x, (mean, std) = encoder.encode(frame), target
    raw = _target(table, options, frame)
    y = (raw - mean) / std
    check_steps(table.target, y, raw)
    dtype = np.int32 if table.task == "multiclass" else np.float32
    truth = _truth(attribute, encoder, frame, x)
    return Split(x=x, y=y.astype(dtype), truth=truth, frame=frame)


def _plan(
    table: Table, options: Preprocessing
) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """Dense columns (sensitive ones last) and coded columns."""
    order: tuple[Kind, ...] = ("numeric", "binary", "categorical")
    names = sorted(table.kinds, key=lambda name: order.index(table.kinds[name]))
    columns = [_column(table, options, name) for name in names]
    place = {name: at for at, name in enumerate(table.concealed)}
    columns.sort(key=lambda column: place.get(column.name, -1))
    dense = tuple(column for column in columns if column.form != "codes")
    return dense, tuple(column for column in columns if column.form == "codes")


def _column(table: Table, options: Preprocessing, name: str) -> Column:
    kind, sensitive = table.kinds[name], name in table.concealed
    if kind == "numeric":
        log: Any = options.numeric.removesuffix("_standardise")
        form = log if log in ("log", "log1p") else "number"
        return Column(name, form, scaled=options.numeric != "raw")
    values = vocabulary(get_column(table.frame, name))
    if kind == "binary":
        return Column(name, "binary", options.binary == "standardise", values)
    drop_first = options.drop_first or sensitive
    if options.unknown and options.unknown in values:
        known = [value for value in values if value != options.unknown]
        values = pd.Index([options.unknown, *known])
        drop_first = True
    # The sensitive block always stands in `numeric`, one candidate being all zeros.
    written = sensitive or options.categorical != "codes"
    return Column(
        name,
        "dummies" if written else "codes",
        scaled=options.categorical == "standardised_dummies",
        values=values,
        drop_first=drop_first,
    )


def _attribute(table: Table, encoder: Encoder, train: pd.DataFrame) -> Attribute | None:
    if table.sensitive is None:
        return None
    columns = encoder.dense[-len(table.concealed) :]
    kind, several = table.kinds[table.sensitive], len(columns) > 1
    if kind == "numeric":
        numbers = write(columns, train)
        unscaled, labels, chosen = np.stack([numbers.min(0), numbers.max(0)]), (), ()
    else:
        unscaled, labels, chosen = _combinations(columns)
    block = slice(len(encoder.mean) - unscaled.shape[1], None)
    candidates = (unscaled - encoder.mean[block]) / encoder.scale[block]
    return Attribute(
        name=table.inferred,
        kind="continuous" if kind == "numeric" else "categorical" if several else kind,
        categories=labels,
        candidates=candidates.astype(np.float32),
        parts=dict(zip(table.concealed, chosen, strict=True)) if several else {},
    )


def _combinations(
    columns: tuple[Column, ...],
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    """Every combination of the values of columns of categories, the last one fastest.

    Returns:
      `[K, W]` how each is written, unscaled; its label; the number of each column's
      value in it `[len(columns), K]`.
    """
    chosen = np.indices([len(column.values) for column in columns])
    chosen = chosen.reshape(len(columns), -1)
    values = [
        pd.Series(column.values[each])
        for column, each in zip(columns, chosen, strict=True)
    ]
    frame = pd.DataFrame({c.name: v for c, v in zip(columns, values, strict=True)})
    labels = tuple(", ".join(map(label, row)) for row in zip(*values, strict=True))
    return write(columns, frame), labels, chosen


def _truth(
    attribute: Attribute | None, encoder: Encoder, frame: pd.DataFrame, x: Features
) -> np.ndarray:
    if attribute is None:
        return np.zeros(len(frame), np.int32)
    if attribute.kind == "continuous":
        return np.asarray(x.numeric)[:, -1]
    columns = encoder.dense[-max(len(attribute.parts), 1) :]
    found = np.ravel_multi_index(
        [positions(get_column(frame, c.name), c.values) for c in columns],
        [len(column.values) for column in columns],
    )
    return found.astype(np.int32)


def _target(table: Table, options: Preprocessing, frame: pd.DataFrame) -> np.ndarray:
    if options.target == "log_standardise":
        return take_log(get_column(frame, table.target), "log")
    return get_column(frame, table.target).to_numpy(np.float64)


def _target_scale(
    table: Table, options: Preprocessing, train: pd.DataFrame
) -> tuple[float, float]:
    numbers_only = options.target == "standardise_numbers"
    if options.target == "raw" or (numbers_only and table.task != "regression"):
        return 0.0, 1.0
    if table.task != "regression":
        raise DataError(
            f"{table.name}: target={options.target!r} needs a regression target, "
            f"this one is {table.task}"
        )
    y = _target(table, options, train)
    mean, deviation = float(y.mean()), float(y.std())
    rounding = 10 * float(np.finfo(np.float64).eps) * abs(mean)
    return mean, deviation if deviation > rounding else 1.0

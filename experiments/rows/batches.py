"""Batches of rows, and the messages that are made of them: the truth."""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np

from experiments.rows.settings import RunConfig
from experiments.rows.views import Known, OneMessage
from experiments.tabular.clients import load_table
from experiments.tabular.settings import DataConfig
from fljax import data, losses
from fljax.attacks import rows
from fljax.attacks.rows.steps import Steps, moved
from fljax.data import encoder
from fljax.driver.config import ConfigError
from fljax.models import mlp
from fljax.types import Model

_ONE = Steps(1, 1.0)


class Population(NamedTuple):
    """A table whose rows are attacked.

    Attributes:
      table: as it was read.
      known: what everyone knows of it.
      model: the network.
      raw: `[N, D]` training rows in the table's units, categories written out.
      y: `[N]` their targets, encoded.
      others: `[M, D]` rows that are in no batch.
      classes: of the target; 0 where it is a number.
    """

    table: data.Table
    known: Known
    model: Model
    raw: np.ndarray
    y: np.ndarray
    others: np.ndarray
    classes: int


class Batch(NamedTuple):
    """Rows `[B, D]` in the table's units and their targets `[B]`."""

    raw: np.ndarray
    y: np.ndarray


def load(settings: DataConfig, run: RunConfig) -> Population:
    """Reads and encodes the table, of which no column is set apart, and makes the model.

    Raises:
      ConfigError: for options that do not fit the data.
      DataError: a file is missing or not as expected.
    """
    table = dataclasses.replace(load_table(settings), sensitive=None)
    preset = data.preset(settings.name, settings.preset or "neural")
    if preset.categorical == "codes":
        preset = dataclasses.replace(preset, categorical="standardised_dummies")
    dataset = data.prepare(table, preset, seed=0)
    numbers = table.task == "regression"
    classes = 0 if numbers else max(2, int(dataset.train.y.max()) + 1)
    y = dataset.train.y if numbers else dataset.train.y.astype(np.int32)
    columns = dataset.encoder.dense
    raw, others = (
        encoder.write(columns, split.frame) for split in (dataset.train, dataset.test)
    )
    model = mlp(
        dataset.num_numeric,
        hidden=run.hidden,
        outputs=classes or 1,
        initialisation=run.initialisation,
        activation=run.activation,
        norm=run.norm,
    )
    element = losses.squared if numbers else losses.cross_entropy
    known = Known(
        schema(dataset.encoder, raw), losses.example_loss(model.apply, element)
    )
    return Population(table, known, model, raw, y, others, classes)


def schema(encoded: encoder.Encoder, raw: np.ndarray) -> rows.Schema:
    """What is known of the encoding: columns, ranges and which numbers are integers."""
    groups, numbers, start = [], [], 0
    for column in encoded.dense:
        places = tuple(range(start, start + column.width))
        start += column.width
        if column.form == "dummies":
            groups.append(rows.Group(places, column.drop_first))
        elif column.form == "binary":
            groups.append(rows.Group(places, True))
        else:
            numbers += places
    chosen = raw[:, numbers]
    return rows.Schema(
        tuple(groups),
        np.asarray(numbers, int),
        encoded.mean,
        encoded.scale,
        chosen.min(axis=0),
        chosen.max(axis=0),
        (chosen == np.round(chosen)).all(axis=0),
    )


def check(population: Population, run: RunConfig) -> None:
    """Refuses batches that there are too few rows for.

    Raises:
      ConfigError: naming the flag.
    """
    most, size = len(population.raw), max(run.batch_sizes)
    if size > most:
        raise ConfigError(f"--batch_sizes: expected at most {most} rows, got {size}")


def draw(population: Population, size: int, number: int, seed: int) -> Batch:
    """One batch, no row twice."""
    draws = np.random.default_rng([seed, size, number])
    chosen = draws.choice(len(population.raw), size, replace=False)
    return Batch(population.raw[chosen], population.y[chosen])


def strangers(population: Population, size: int, number: int, seed: int) -> np.ndarray:
    """As many rows `[B, D]` that are in no batch."""
    draws = np.random.default_rng([seed, size, number, 1])
    return population.others[draws.integers(0, len(population.others), size)]


def one_message(
    population: Population, batch: Batch, number: int, seed: int, steps: Steps = _ONE
) -> OneMessage:
    """The message of a batch at a network of its own, as an adversary sees it."""
    size = len(batch.y)
    key = jax.random.fold_in(jax.random.key(seed), size)
    params = population.model.init(jax.random.fold_in(key, number))
    params = jax.device_get(params)
    loss_fn = population.known.loss_fn
    x = population.known.schema.encode(batch.raw)
    if steps.count == 1:
        network = rows.Network(params, loss_fn)
        message = network.message(x, batch.y, np.full(size, 1 / size))
    else:
        message = moved(params, loss_fn, x, batch.y, steps)
    classes = population.classes
    targets = np.arange(classes) if classes else np.sort(batch.y)
    return OneMessage(params, message, size, targets, number, steps)

"""How often a row is in the steps of its client."""

from typing import NamedTuple

import jax
import numpy as np

from fljax import packing
from fljax.federation import Tables
from fljax.privacy.audits.canaries import Canary
from fljax.types import Array


class Inclusions(NamedTuple):
    """How often a canary is in a round's steps.

    Attributes:
      steps: of its client in a round.
      rate: probability to be in each of them.
      present: `[R]` bool, rounds that its client takes part in.
    """

    steps: int
    rate: float
    present: np.ndarray

    @property
    def total(self) -> int:
        """Steps in all rounds."""
        return self.steps * int(self.present.sum())


def inclusions(tables: Tables, canary: Canary) -> Inclusions:
    """How often a canary is in the steps of its client."""
    schedule, client = tables.schedule, canary.client
    own = jax.tree.map(lambda leaf: np.asarray(leaf)[0], schedule.participants)
    rounds = np.arange(schedule.num_rounds) % len(own)
    present = (own == client).any(axis=1)[rounds]
    if canary.kind == "client":
        return Inclusions(1, 1.0, present)
    steps, rate = (each[client] for each in _of_rows(tables))
    return Inclusions(int(steps), float(rate), present)


def taking_part(tables: Tables) -> np.ndarray:
    """`[C]` bool, clients who are in some round."""
    schedule = tables.schedule
    count = np.shape(schedule.sizes)[1] - 1
    return np.isin(np.arange(count), np.asarray(schedule.participants)[0])


def _of_rows(tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """Steps of a round that a client's row may be in, and its rate in them, `[C]` each."""
    schedule, steps = tables.schedule, local_steps(tables)
    sizes = np.asarray(schedule.sizes)[0, : len(steps)]
    if schedule.poisson:
        return steps, np.asarray(schedule.sampling_rate, np.float64)[0, : len(steps)]
    # A pass has a row in one of its steps, of which the last pass may lack some, or in none
    # where the last batch is dropped.
    how = schedule.batch_size, schedule.drop_last
    per_pass = np.maximum(packing.batches_per_epoch(sizes, *how), 1)
    passes = np.maximum(-(-steps // per_pass), 1)
    visited = schedule.batch_size / sizes if schedule.drop_last else 1 / per_pass
    return passes, steps * visited / passes


def local_steps(tables: Tables) -> np.ndarray:
    """`[C]` steps of each client in a round."""
    schedule = jax.tree.map(np.asarray, tables.schedule)
    return jax.tree.map(lambda leaf: leaf[0], schedule).local_steps


class Others(NamedTuple):
    """All rows but the canary, in a round that their clients take part in.

    Attributes:
      client: `[N]` int, whose they are.
      mean: `[N]` expected number of steps with the row, 0 for the canary.
      variance: `[N]` of that number.
      steps: `[C]` of each client.
    """

    client: Array
    mean: Array
    variance: Array
    steps: Array


def others(tables: Tables, at: int) -> Others:
    """Those of a federation.

    Args:
      tables: of the federation.
      at: position of the canary's row.
    """
    sizes = np.asarray(tables.schedule.sizes)[0, :-1]
    client = np.repeat(np.arange(len(sizes)), sizes)
    steps, rate = (each[: len(sizes)].astype(np.float32) for each in _of_rows(tables))
    there = np.arange(len(client)) != at
    mean = np.where(there, (steps * rate)[client], 0)
    variance = np.where(there, (steps * rate * (1 - rate))[client], 0)
    return Others(client, mean, variance, steps)

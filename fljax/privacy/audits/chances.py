"""How often a row is in the steps of its client."""

from typing import NamedTuple

import jax
import numpy as np

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
    count = local_steps(tables)[client]
    if schedule.poisson:
        rate = float(np.asarray(schedule.sampling_rate)[0, client])
        return Inclusions(int(count), rate, present)
    # A pass has a row in one of its steps, of which the last pass may lack some.
    per_pass = -(-int(np.asarray(schedule.sizes)[0, client]) // schedule.batch_size)
    passes = max(-(-int(count) // per_pass), 1)
    return Inclusions(passes, float(count) / (passes * per_pass), present)


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


def others(tables: Tables, canary: Canary, at: int) -> Others:
    """Those of a federation.

    Args:
      tables: of the federation.
      canary: what is planted.
      at: position of its row.
    """
    sizes = np.asarray(tables.schedule.sizes)[0, :-1]
    client = np.repeat(np.arange(len(sizes)), sizes)
    row = canary._replace(kind="row")
    often = [inclusions(tables, row._replace(client=c)) for c in range(len(sizes))]
    steps = np.array([one.steps for one in often], np.float32)
    rate = np.array([one.rate for one in often], np.float32)
    there = np.arange(len(client)) != at
    mean = np.where(there, (steps * rate)[client], 0)
    variance = np.where(there, (steps * rate * (1 - rate))[client], 0)
    return Others(client, mean, variance, steps)

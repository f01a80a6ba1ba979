"""All rows of one seed and whose they are: scoring's side of the wall.

Baselines learn from them what the other columns tell, and strangers are drawn from them.
"""

from typing import NamedTuple

import jax
import numpy as np

from experiments.aia.setup import Setup
from experiments.tabular import targets
from fljax.types import Features

HELD_OUT = -1


class Population(NamedTuple):
    """Held-out rows, then those of each client.

    Attributes:
      x: public columns, leaves `[N, ...]`.
      y: `[N]` targets.
      value: `[N]` number of the sensitive value, or the value itself, encoded.
      owner: `[N]` client, `HELD_OUT` for rows that nobody trains on.
    """

    x: Features
    y: np.ndarray
    value: np.ndarray
    owner: np.ndarray

    def take(self, rows: np.ndarray) -> "Population":
        """Some of the rows."""
        return jax.tree.map(lambda leaf: leaf[rows], self)


def of_seed(setup: Setup, seed: int) -> Population:
    """Everyone's rows in the run of one seed, by its position.

    Args:
      setup: of a point, with a sensitive attribute.
      seed: position of the seed.
    """
    assert setup.targets is not None
    truth, dataset = setup.targets, setup.clients.datasets[seed]
    if setup.config.attack.score == "pooled":
        truth = targets.unpooled(truth)
    mask = truth.mask[seed]
    rows = truth.known.public, truth.known.y, truth.value
    x, y, value = jax.tree.map(lambda leaf: np.asarray(leaf)[seed][mask], rows)
    assert dataset.attribute is not None
    width = dataset.attribute.width
    test = dataset.test
    held_out = test.x._replace(numeric=np.asarray(test.x.numeric)[:, :-width])
    owner = np.repeat(np.arange(len(mask)), mask.sum(axis=1))
    first = held_out, test.y, test.truth, np.full(len(test.y), HELD_OUT)
    both = zip(jax.tree.leaves(first), jax.tree.leaves((x, y, value, owner)))
    leaves = [np.concatenate(each) for each in both]
    return jax.tree.unflatten(jax.tree.structure(Population(*first)), leaves)

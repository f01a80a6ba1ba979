"""The pool of every client, and who of it is in which training: the truth."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from experiments.tabular.clients import Clients
from fljax import data
from fljax.driver.config import ConfigError
from fljax.types import Rows

_FEWEST = 8  # rows of a client's pool
_COPIES = 0.02  # of the candidates, from which they matter


class Pool(NamedTuple):
    """Candidates, sorted by client, and rows that are in no training.

    Attributes:
      dataset: encoded.
      rows: leaves `[N, ...]`.
      sizes: `[C]` candidates of each client, all even.
      population: leaves `[m, ...]`.
    """

    dataset: data.Dataset
    rows: Rows
    sizes: np.ndarray
    population: Rows

    def of_client(self, client: int) -> slice:
        """Its places."""
        end = int(self.sizes[: client + 1].sum())
        return slice(end - int(self.sizes[client]), end)


def pool(dealt: Clients, most: int | None, seed: int) -> Pool:
    """Pools of one seed.

    Args:
      dealt: of this seed alone.
      most: rows of a client that are candidates; None for all.
      seed: of the draw of them.

    Raises:
      ConfigError: for a client with too few rows, or nobody left for the population.
    """
    rng = np.random.default_rng([seed, 4])
    rows, sizes = jax.tree.map(lambda leaf: leaf[0], dealt.rows), dealt.sizes[0]
    ends = sizes.cumsum()
    inside, left = [], []
    for begin, end in zip(ends - sizes, ends, strict=True):
        own = rng.permutation(np.arange(begin, end))
        count = min(len(own), most or len(own)) // 2 * 2
        if count < _FEWEST:
            raise ConfigError(
                f"--partition_clients: expected {_FEWEST} rows of each client at least, "
                f"got {len(own)}"
            )
        inside.append(np.sort(own[:count]))
        left.append(own[count:])
    others = [_take(rows, np.concatenate(left))]
    if dealt.test is not None:
        others.append(
            jax.tree.map(lambda leaf: leaf[0][dealt.test_mask[0]], dealt.test)
        )
    population = jax.tree.map(lambda *leaves: np.concatenate(leaves), *others)
    if not len(population.y):
        raise ConfigError("--pool: expected rows that are in no training, got none")
    candidates = _take(rows, np.concatenate(inside))
    _warn_of_copies(candidates, [len(each) for each in inside])
    return Pool(
        dealt.datasets[0],
        candidates,
        np.array([len(each) for each in inside]),
        population,
    )


def _warn_of_copies(rows: Rows, sizes: Sequence[int]) -> None:
    """Of a client's candidates who are alike: nobody can tell which of them was there."""
    flat = [np.reshape(leaf, (len(rows.y), -1)) for leaf in jax.tree.leaves(rows)]
    flat.append(np.repeat(np.arange(len(sizes)), sizes)[:, None])
    _, which, counts = np.unique(
        np.concatenate(flat, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    copies = int((counts[which] > 1).sum())
    if copies > _COPIES * len(which):
        warnings.warn(
            f"{copies} of {len(which)} candidates are copies of another of their client: "
            "who of them was there nobody can tell, so that areas and what is found are "
            "lower than what messages tell",
            stacklevel=3,
        )


def draw(pool: Pool, trainings: int, seed: int) -> np.ndarray:
    """Who is there `[T, N]`: of each client's pool a half, and in the next the other.

    So every candidate is in half of the trainings, also when such a pair is left out.

    Args:
      pool: candidates.
      trainings: T, an even number.
      seed: of the draw.
    """
    rng = np.random.default_rng([seed, 5])
    there = np.zeros((trainings // 2, len(pool.rows.y)), bool)
    for client, size in enumerate(pool.sizes):
        places = np.arange(len(there[0]))[pool.of_client(client)]
        for row in there:
            row[rng.permutation(places)[: size // 2]] = True
    return np.stack([there, ~there], axis=1).reshape(-1, there.shape[1])


def members(pool: Pool, there: np.ndarray) -> Rows:
    """Rows of every training `[T, N / 2, ...]`, sorted by client."""
    places = np.stack([np.flatnonzero(each) for each in there])
    return _take(pool.rows, places)


def _take(rows: Rows, places: np.ndarray) -> Rows:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[places], rows)

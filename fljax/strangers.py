"""Rows that a client did not train on, in the place of its own: what anyone's messages tell."""

from collections.abc import Sequence

import numpy as np


def draw(
    rng: np.random.Generator, owner: np.ndarray, client: int, count: int
) -> np.ndarray:
    """Numbers of up to `count` rows that are not a client's, each once.

    Those that nobody trains on go first; rows of other clients, which this one's messages
    have met through the models that it was sent, fill up.

    Args:
      rng: draws within either kind.
      owner: `[N]` client of each row; negative: nobody's.
      client: whose rows are left out.
      count: most to draw.
    """
    others = rng.permutation(np.flatnonzero(owner != client))
    order = np.argsort(owner[others] >= 0, kind="stable")
    return others[order[:count]]


def uses(drawn: Sequence[np.ndarray]) -> float:
    """How often a drawn row is drawn, on average over the draws of several clients.

    Args:
      drawn: of each client, numbers of rows.
    """
    _, times = np.unique(np.concatenate(drawn), return_counts=True)
    return float(np.square(times).sum() / times.sum())

"""The truth: the sensitive values that estimates are scored against.

Only what scores imports this: no attack, and nothing that an attack is given.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np

from fljax.types import Known


class Targets(NamedTuple):
    """Sensitive values of all clients' rows.

    Attributes:
      value: `[seeds, C, n]` number of the candidate, or encoded value.
      mask: `[seeds, C, n]` False for padding and for clients that are not attacked.
      weights: `[seeds, C]` rows of each client, for the weighted mean; 0 likewise.
      continuous: whether the attribute is continuous.
      unit: `[seeds]` of one encoded unit of it, in units of the data set.
      known: the other columns, leaves `[seeds, C, n, ...]`.
      candidates: `[seeds, K, W]` encoded values.
      seeds: `[seeds]` the seed of each repetition.
      parts: of several columns that are inferred together, column -> `[K]` number of
        its value in each candidate.
    """

    value: np.ndarray
    mask: np.ndarray
    weights: np.ndarray
    continuous: bool
    unit: np.ndarray
    known: Known
    candidates: np.ndarray
    seeds: Sequence[int]
    parts: Mapping[str, np.ndarray]


def only(targets: Targets, clients: np.ndarray) -> Targets:
    """The same without the clients outside `clients [seeds, C]` bool."""
    mask = targets.mask & clients[..., None]
    return targets._replace(mask=mask, weights=targets.weights * clients)


def pooled(targets: Targets) -> Targets:
    """All clients' rows for every client."""
    value, mask, known = jax.tree.map(
        pool, (targets.value, targets.mask, targets.known)
    )
    return targets._replace(value=value, mask=mask, known=known)


def unpooled(targets: Targets) -> Targets:
    """Each client's own rows again."""
    count = targets.mask.shape[1]
    seeds, own = len(targets.mask), targets.mask.shape[2] // count
    value, mask, known = jax.tree.map(
        lambda leaf: leaf[:, 0].reshape(seeds, count, own, *leaf.shape[3:]),
        (targets.value, targets.mask, targets.known),
    )
    return targets._replace(value=value, mask=mask, known=known)


def pool(leaf: np.ndarray) -> np.ndarray:
    """`[seeds, C, n, ...]` -> `[seeds, C, C n, ...]`: everyone's rows for everyone."""
    seeds, count, rows = leaf.shape[:3]
    flat = leaf.reshape(seeds, 1, count * rows, *leaf.shape[3:])
    return np.broadcast_to(flat, (seeds, count, *flat.shape[2:]))

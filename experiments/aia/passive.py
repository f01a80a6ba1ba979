"""What passive attacks share: streams of random numbers, and equation 3 over clients.

Nothing here is given the truth; `scoring` compares.
"""

from collections.abc import Callable

import jax
import numpy as np

from fljax import losses, parallel
from fljax.attacks import attribute
from fljax.types import Key, Known, Params

# Purposes of a seed's streams; 0 and 1 belong to the training.
GRADIENT, SUBSET, ORACLE, TRAJECTORY, PERMUTATION = 2, 3, 4, 5, 6

Attacker = Callable[[Params, Known, np.ndarray], np.ndarray]


def model_attacker(loss_fn: losses.LossFn, kind: str) -> Attacker:
    """Model-based attack with one model per client, compiled once.

    Args:
      loss_fn: loss of one example.
      kind: of the attribute.

    Returns:
      `(params [seeds, C, ...], known [seeds, C, n, ...], candidates [seeds, K, W]) ->
      [seeds, C, n]` candidate index, or encoded value for a continuous attribute.
    """

    def one(item, _):
        params, known, candidates = item
        if kind == "continuous":
            return attribute.model_based_continuous(loss_fn, params, known, candidates)
        return attribute.model_based(loss_fn, params, known, candidates).index

    over = parallel.mesh()
    run = jax.jit(lambda items: parallel.map_items(one, items, (), over))

    def attack(params, known, candidates):
        lead = known.y.shape[:2]
        values = np.broadcast_to(candidates[:, None], (*lead, *candidates.shape[1:]))
        items = jax.tree.map(_merge, (params, known, values))
        return np.asarray(run(items)).reshape(*lead, -1)

    return attack


def key(seed, purpose: int, client) -> Key:
    """Stream of one purpose for one client; 5 and 6 belong to `trajectory`."""
    stream = jax.random.fold_in(jax.random.key(seed), purpose)
    return jax.random.fold_in(stream, client)


def _merge(leaf):
    return leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:])

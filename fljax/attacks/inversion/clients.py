"""The same attack on many clients, spread over devices and bounded in memory."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from fljax import parallel
from fljax.types import PyTree


def over_clients(
    fun: Callable, items: PyTree, shared: PyTree, over: Mesh, at_once: int = 1
) -> PyTree:
    """`[fun(item, shared) for item in items]` over all devices; call under jit.

    Args:
      fun: `(item, shared) -> result`, of one client.
      items: leaves `[clients, ...]`.
      shared: given whole to every call.
      over: from `parallel.mesh`.
      at_once: clients side by side on a device: 1 suits a CPU, where each ends for
        itself; more an accelerator, with memory for as many and all as slow as the
        slowest.

    Returns:
      Results with leaves `[clients, ...]`.
    """
    count = len(jax.tree.leaves(items)[0])
    groups = -(-count // at_once)
    index = jnp.minimum(jnp.arange(groups * at_once), count - 1)
    grouped = jax.tree.map(
        lambda leaf: leaf[index].reshape(groups, at_once, *leaf.shape[1:]), items
    )

    def work(group, shared):
        return jax.vmap(fun, (0, None))(group, shared)

    found = parallel.map_items(work, grouped, shared, over)
    return jax.tree.map(
        lambda leaf: leaf.reshape(groups * at_once, *leaf.shape[2:])[:count], found
    )

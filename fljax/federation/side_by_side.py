"""How many trainings an accelerator works on under `vmap`, so that they fit its memory."""

from collections.abc import Callable

import jax

from fljax.rounds import Run
from fljax.types import PyTree

SIDE_BY_SIDE = 16  # trainings at most
_COPIES = 6  # of each lane's model: itself, gradients, what is sent and returned


def fitting(device: jax.Device, shapes: Callable[[], Run], lanes: int) -> int:
    """How many fit in half of a device's memory; one on a CPU, which gains nothing.

    Args:
      device: on which they are trained.
      shapes: makes the shapes of a training's run, its messages among it.
      lanes: that hold a model each.
    """
    if device.platform == "cpu":
        return 1
    memory = (device.memory_stats() or {}).get("bytes_limit")
    if memory is None:
        return SIDE_BY_SIDE
    run = shapes()
    size = _bytes(run) + _COPIES * lanes * _bytes(run.server.params)
    return min(max(memory // (2 * max(size, 1)), 1), SIDE_BY_SIDE)


def _bytes(tree: PyTree) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))

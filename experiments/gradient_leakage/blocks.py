"""Clients dealt to the devices, a block of them at a time."""

from collections.abc import Callable, Iterator

import jax
import numpy as np

from fljax import parallel


class Blocks:
    """Which clients are worked on together, and the compiled programs that do it."""

    def __init__(self, count: int, at_once: int):
        """Every device has as many as `at_once` of the `count` clients side by side."""
        self._count, self._at_once = count, at_once
        self._over = parallel.mesh()
        self._size = min(self._over.size * at_once, count)

    def __iter__(self) -> Iterator[np.ndarray]:
        """`[B]` int32 numbers of clients; the last block repeats the last client."""
        for start in range(0, self._count, self._size):
            numbers = np.arange(start, start + self._size)
            yield np.minimum(numbers, self._count - 1).astype(np.int32)

    def compiled(self, fun: Callable, options: dict | None = None) -> Callable:
        """`(items [B, ...], shared) -> [B, ...]` of `fun`, which is of ONE client.

        Args:
          fun: `(item, shared) -> result`.
          options: of the compiler.
        """
        return jax.jit(
            lambda items, shared: parallel.map_items(
                fun, items, shared, self._over, at_once=self._at_once
            ),
            compiler_options=options,
        )

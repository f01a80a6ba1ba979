"""Where a reconstruction starts: `(key, shape) -> [*shape]`; the key is consumed."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from fljax.types import Key

Seed = Callable[[Key, Sequence[int]], jax.Array]


def gaussian(key: Key, shape: Sequence[int]) -> jax.Array:
    """N(0, 1), of DLG."""
    return jax.random.normal(key, tuple(shape))


def uniform(key: Key, shape: Sequence[int]) -> jax.Array:
    """U[0, 1)."""
    return jax.random.uniform(key, tuple(shape))


def patterned(key: Key, shape: Sequence[int]) -> jax.Array:
    """A tile of U[0, 1) repeated 2 x 2 in every image `[..., h, w, channels]`, of CPL.

    Where height or width is odd, the second tile is cut.

    Raises:
      ValueError: the shape is not that of images.
    """
    if len(shape) < 3:
        raise ValueError(f"patterned seed: expected [..., h, w, channels], got {shape}")
    *lead, height, width, channels = shape
    tile = uniform(key, (*lead, -(-height // 2), -(-width // 2), channels))
    repeats = (1,) * len(lead) + (2, 2, 1)
    return jnp.tile(tile, repeats)[..., :height, :width, :]

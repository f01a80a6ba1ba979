"""Sums over the rows of a kernel that one-hot columns name.

On a CPU rows are read and added to, and nothing one-hot is ever made. Accelerators add to
rows in no fixed order, or slowly, and are fast at products.
"""

from typing import cast

import jax
import jax.numpy as jnp

from fljax import accelerators
from fljax.types import Array


def add_to_rows(
    kernel: jax.Array, first: int, codes: Array, steps: jax.Array
) -> jax.Array:
    """The kernel with each example's step added to the rows that its codes name.

    Args:
      kernel: `[first + num_onehot, units]`.
      first: the row of code 0.
      codes: `[B, Dc]`; what lies past the end is left out.
      steps: `[B, units]`.
    """
    if codes.shape[1] and accelerators.used():
        ones = _one_hot(codes, len(kernel) - first)
        return kernel.at[first:].add(jnp.matmul(ones.T, steps, precision="highest"))
    for column in range(codes.shape[1]):
        kernel = kernel.at[first + codes[:, column]].add(steps, mode="drop")
    return kernel


def multiplied(codes: Array, block: jax.Array) -> jax.Array:
    """Sum of the block's rows that the codes `[Dc]` of one example name, as a product.

    A row that is not finite makes all sums NaN, also those it is no part of.
    """
    return jnp.matmul(_one_hot(codes, len(block)), block, precision="highest")


def _one_hot(codes: Array, width: int) -> jax.Array:
    """`[..., width]` of codes `[..., Dc]`; a reference category has no place there."""
    places = jnp.arange(width).reshape((1,) * (codes.ndim - 1) + (-1,))
    # Column by column: [..., Dc, width] could fill the memory.
    columns = (codes[..., column, None] for column in range(codes.shape[-1]))
    total = sum((column == places).astype(jnp.float32) for column in columns)
    return cast(jax.Array, total)  # there is a column

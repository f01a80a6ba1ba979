"""Arithmetic on trees of arrays."""

import jax
import jax.numpy as jnp

from fljax.types import PyTree


def dot(a: PyTree, b: PyTree) -> jax.Array:
    """Inner product `[]` over all leaves."""
    products = jax.tree.map(lambda x, y: jnp.sum(x * y), a, b)
    return jax.tree.reduce(jnp.add, products, jnp.zeros(()))


def norm(a: PyTree) -> jax.Array:
    """Euclidean norm `[]` over all leaves."""
    return jnp.sqrt(dot(a, a))

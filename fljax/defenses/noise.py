"""Noise on what leaves a client, without a promise.

Nothing bounds what is sent, so that no noise hides it whatever the data: there is no
`NoiseSpec`. These are the plain perturbations that leakage papers compare against (Zhu
et al. 2019, section 5.1; the code of Wei et al. 2020 adds Laplace noise to a gradient).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from fljax.defenses.checks import check_noise
from fljax.types import Array, Defense, Key, PyTree

Sampler = Callable[..., jax.Array]  # (key, shape, dtype) -> noise of scale 1


def like(
    key: Key, tree: PyTree, scale: Array | float, sampler: Sampler = jax.random.normal
) -> PyTree:
    """Independent noise in the shape of a tree; the key is consumed.

    One draw for the whole tree: a draw per leaf compiles and runs slower.

    Args:
      key: of this draw.
      tree: arrays.
      scale: [] times a draw of `sampler`.
      sampler: standard normal by default.
    """
    flat, unravel = ravel_pytree(tree)
    return unravel(jnp.asarray(scale * sampler(key, flat.shape, flat.dtype)))


def gaussian(scale: Array | float) -> Defense:
    """Normal noise of standard deviation `scale` [] on every coordinate of a delta.

    Raises:
      ValueError: for a scale that is negative or not finite.
    """
    return _on_updates("gaussian noise", scale, jax.random.normal)


def laplace(scale: Array | float) -> Defense:
    """Laplace noise, density exp(-|x| / scale) / (2 scale), on every coordinate.

    Its standard deviation is `sqrt(2) scale`.

    Raises:
      ValueError: for a scale that is negative or not finite.
    """
    return _on_updates("laplace noise", scale, jax.random.laplace)


def _on_updates(name, scale, sampler) -> Defense:
    check_noise("scale", scale)

    def encode(key, delta, sender):
        del sender
        return jax.tree.map(jnp.add, delta, like(key, delta, scale, sampler))

    return Defense(encode=encode, name=name)

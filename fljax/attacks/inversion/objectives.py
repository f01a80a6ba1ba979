"""How far a simulated message is from the observed one, and what images look like."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from fljax import tree
from fljax.types import Params, PyTree

Distance = Callable[[Params, Params], jax.Array]
# (simulated, observed) -> [], at least 0

Prior = Callable[[PyTree], jax.Array]
# (examples, leaves [B, ...]) -> [], added to the distance


def squared_distance(simulated: Params, observed: Params) -> jax.Array:
    """Sum of squared differences over all arrays, of DLG and CPL; not normalised."""
    difference = jax.tree.map(jnp.subtract, simulated, observed)
    return tree.dot(difference, difference)


def cosine_distance(simulated: Params, observed: Params) -> jax.Array:
    """1 - cosine over all arrays together, eq. (4) of Geiping et al. 2020."""
    # The floors keep a vanished gradient finite, derivatives included.
    sizes = tree.dot(simulated, simulated), tree.dot(observed, observed)
    scale = jnp.sqrt(jnp.maximum(sizes[0], 1e-24) * jnp.maximum(sizes[1], 1e-24))
    return 1 - tree.dot(simulated, observed) / scale


def total_variation(weight: float) -> Prior:
    """`weight` times the mean absolute difference of neighbouring pixels.

    Rows and columns of images `[B, h, w, channels]` count alike.
    """

    def prior(x):
        down, right = jnp.diff(x, axis=-3), jnp.diff(x, axis=-2)
        return weight * (jnp.mean(jnp.abs(down)) + jnp.mean(jnp.abs(right)))

    return prior

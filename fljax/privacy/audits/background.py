"""What moves beside a canary: other rows that a step has by chance, and noise.

Who knows all rows but one knows at each model that is sent what row j adds to a message
of its client whenever a step has it, e_j, but not how often that is: K_j times, on average
m_j, with variance v_j. Beside a canary that adds g a round shows

    sum_j K_j e_j + noise, of mean sum_j m_j e_j and S = sum_j v_j e_j e_j^T + s^2 I,

and tells the most of the canary along S^-1 g: where the rows all point, little is to be
seen (they share the gradient of a last bias), and that direction leaves it out.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.sparse.linalg import cg

_RIDGE = 1e-6  # of the rows' variance, where there is no noise
_TOLERANCE, _ITERATIONS = 1e-4, 50


class Beside(NamedTuple):
    """What is beside a canary in one round.

    Attributes:
      effects: `[N, P]` what each row adds, e_j.
      products: `[N, N]` of the effects.
      noise: `[C]` variance of the noise of one step of each client.
    """

    effects: jax.Array
    products: jax.Array
    noise: jax.Array

    @classmethod
    def of(cls, effects: jax.Array, noise: jax.Array) -> "Beside":
        """Those of effects, whose products are computed once for all observers."""
        products = jnp.matmul(effects, effects.T, precision="highest")
        return cls(effects, products, noise)


def telling(
    beside: Beside, canary: jax.Array, variance: jax.Array, noise: jax.Array
) -> jax.Array:
    """The unit vector `[P]` along S^-1 g, by Woodbury's identity in the rows' space.

    Args:
      beside: what is beside the canary.
      canary: `[P]` what it adds, g.
      variance: `[N]` of the number of steps with each row, 0 for rows not there.
      noise: [] s^2.
    """
    root = jnp.sqrt(variance)
    inner = root[:, None] * beside.products * root[None]
    ridge = jnp.maximum(noise, _RIDGE * jnp.trace(inner))
    ridge = jnp.maximum(ridge, jnp.finfo(inner.dtype).tiny)
    shown = root * jnp.matmul(beside.effects, canary, precision="highest")
    # A direction that is not solved for exactly tells a little less.
    weights, _ = cg(
        lambda v: inner @ v + ridge * v, shown, tol=_TOLERANCE, maxiter=_ITERATIONS
    )
    weights = root * weights
    found = canary - jnp.matmul(weights, beside.effects, precision="highest")
    norm = jnp.linalg.norm(found)
    return found / jnp.maximum(norm, jnp.finfo(inner.dtype).tiny)

"""Expected local training of a client whose rows are only softly known.

K mini-batch steps of rate eta are followed by M full-batch steps of size `eta K / M`.
The derivative of the end point is an adjoint pass over the stored path; per step it
needs one derivative of the loss along a direction and its gradient, several times less
than differentiating through the gradients.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

MeanLoss = Callable[[jax.Array, jax.Array], jax.Array]
# (flat params [P], soft attribute values [N, ...]) -> []


class Path(NamedTuple):
    """A simulated round.

    Attributes:
      points: `[M, P]` where gradients were taken.
      end: `[P]` model returned.
    """

    points: jax.Array
    end: jax.Array


def follow(
    mean_loss: MeanLoss,
    sent: jax.Array,
    values: jax.Array,
    scale: jax.Array,
    steps: int,
) -> Path:
    """Simulates a round from the model sent `[P]`; `scale` [] is `eta K`."""
    slope = jax.grad(mean_loss)

    def step(params, _):
        return params - scale / steps * slope(params, values), params

    end, points = lax.scan(step, sent, length=steps)
    return Path(points, end)


def chord(
    mean_loss: MeanLoss, sent: jax.Array, returned: jax.Array, values: jax.Array,
    scale: jax.Array,
) -> Path:  # fmt: skip
    """First order: one step along the mean of the gradients at the two known ends."""
    points = jnp.stack([sent, returned])
    slopes = jax.vmap(jax.grad(mean_loss), (0, None))(points, values)
    return Path(points, sent - scale * slopes.mean(axis=0))


def pull_back(
    mean_loss: MeanLoss, path: Path, cotangent: jax.Array, values: jax.Array,
    scale: jax.Array, *, moving: bool = True,
) -> tuple[jax.Array, jax.Array]:  # fmt: skip
    """Derivatives of `cotangent [P] . path.end` by `values` and by `scale`.

    Args:
      mean_loss: as in the simulation.
      path: from `follow` or `chord`.
      cotangent: `[P]`.
      values: as in the simulation.
      scale: as in the simulation.
      moving: whether the points depend on the values, as those of `follow` do.
    """
    size = scale / path.points.shape[0]

    def along(params, values, direction):
        return jax.jvp(lambda p: mean_loss(p, values), (params,), (direction,))[1]

    def step(carry, params):
        direction, by_values, by_scale = carry
        rise, (bend, pull) = jax.value_and_grad(along, (0, 1))(
            params, values, direction
        )
        if moving:
            direction = direction - size * bend
        return (direction, by_values - size * pull, by_scale - rise), None

    start = (cotangent, jnp.zeros_like(values), jnp.zeros(()))
    (_, by_values, by_scale), _ = lax.scan(step, start, path.points, reverse=True)
    return by_values, by_scale / path.points.shape[0]

"""What a client does to its message, around the simulator of its training.

Noise on a message changes nothing in what is expected of it, and is met by `noise`.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from fljax.attacks.trajectory.noise import Partial
from fljax.attacks.trajectory.simulation import Simulator
from fljax.defenses import bounding, clipping
from fljax.types import Array, Params

Encode = Callable[[jax.Array, jax.Array], jax.Array]
# (round [], delta [P]) -> delta [P] of the message; differentiable by the delta


def encoded(simulator: Simulator, sent: jax.Array, encode: Encode) -> Simulator:
    """Returned models after the client has changed its delta.

    Args:
      simulator: of the returned model as it was trained.
      sent: `[R, P]`.
      encode: how.
    """

    def end(round_, values, scale):
        returned, stored = simulator.end(round_, values, scale)
        delta = sent[round_] - returned
        return sent[round_] - encode(round_, delta), (stored, delta, round_)

    def back(stored, cotangent, values, scale):
        inner, delta, round_ = stored
        (by_delta,) = jax.vjp(lambda d: encode(round_, d), delta)[1](cotangent)
        return simulator.back(inner, by_delta, values, scale)

    return Simulator(end, back)


def clipped(how: str, clips: Array, unravel: Callable[[jax.Array], Params]) -> Encode:
    """A delta clipped to `clips [R]`, its arrays one by one or in `total`."""
    to = clipping.total if how == "total" else clipping.per_layer

    def encode(round_, delta):
        return ravel_pytree(clipping.clipped(unravel(delta), to(clips[round_])))[0]

    return encode


def cut(limits: Array) -> Encode:
    """A delta whose numbers are cut off at `limits [R]`."""
    return lambda round_, delta: bounding.cut(delta, limits[round_])


def partial(share: float, sent: jax.Array, returned: jax.Array) -> Partial | None:
    """What is known of coordinates that were not sent; None where all were.

    Args:
      share: of its changes that a client sends, the largest.
      sent: `[R, P]`.
      returned: `[R, P]`.
    """
    if share == 1:
        return None
    change = jnp.abs(sent - returned)
    least = jnp.min(jnp.where(change > 0, change, jnp.inf), axis=1)
    return Partial(change > 0, least)

"""Another simulator of a round where one runs away."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from fljax.attacks.trajectory.simulation import Simulator
from fljax.types import Array, PyTree

_FAR = 30.0  # times the observed change; wrong values change a path by less


class Steadied(NamedTuple):
    """What is kept of a round that one of two simulated.

    Attributes:
      steady: [] bool, whether the first one did.
      as_asked: [] bool, whether it did or was not wanted.
      first: what that stored; zeros where it was not wanted.
      other: what the other one stored; zeros where it was not needed.
    """

    steady: jax.Array
    as_asked: jax.Array
    first: PyTree
    other: PyTree


def steadied(
    simulator: Simulator,
    other: Simulator,
    sent: jax.Array,
    returned: jax.Array,
    wanted: Array | None = None,
) -> tuple[Simulator, Callable[[PyTree], jax.Array]]:
    """Another simulator in rounds in which one runs away, or is not wanted.

    It runs away where it leaves the numbers, or goes far beyond what was observed.

    Args:
      simulator: of returned models.
      other: of the same, that cannot run away.
      sent: `[R, P]`.
      returned: `[R, P]`.
      wanted: `[R]` bool, whether the first is run at all; None for always.

    Returns:
      Both as one, which stores `Steadied`, and `(stored) -> [] bool`, `as_asked`.
    """
    reach = _FAR * jnp.linalg.norm(returned - sent, axis=1)

    def end(round_, values, scale):
        asked = round_, values, scale
        run = True if wanted is None else wanted[round_]
        shapes = jax.eval_shape(simulator.end, *asked)
        found, stored = lax.cond(
            run,
            lambda: simulator.end(*asked),
            lambda: jax.tree.map(jnp.zeros_like, shapes),
        )
        moved = jnp.linalg.norm(found - sent[round_])
        steady = run & (moved <= reach[round_])  # never, if it is not a number
        others = jax.eval_shape(other.end, *asked)[1]
        found, instead = lax.cond(
            steady,
            lambda: (found, jax.tree.map(jnp.zeros_like, others)),
            lambda: other.end(*asked),
        )
        as_asked = steady | jnp.logical_not(run)
        return found, Steadied(steady, as_asked, stored, instead)

    def back(stored, cotangent, values, scale):
        return lax.cond(
            stored.steady,
            lambda: simulator.back(stored.first, cotangent, values, scale),
            lambda: other.back(stored.other, cotangent, values, scale),
        )

    return Simulator(end, back), lambda stored: stored.as_asked


def seldom(
    simulator: Simulator, steady: Callable[[PyTree], jax.Array]
) -> tuple[Simulator, Callable[[PyTree], jax.Array]]:
    """The same, for rare use: nothing is stored, and it is run again for derivatives."""

    def end(round_, values, scale):
        found, stored = simulator.end(round_, values, scale)
        return found, (steady(stored), round_)

    def back(stored, cotangent, values, scale):
        _, path = simulator.end(stored[1], values, scale)
        return simulator.back(path, cotangent, values, scale)

    return Simulator(end, back), lambda stored: stored[0]

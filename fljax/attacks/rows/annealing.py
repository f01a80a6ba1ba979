"""Rows solved for from gradients, the corners of ReLU being rounded less and less.

Which units a row switches on changes by jumps, and a step of Gauss and Newton does not see
beyond the next one. With rounded corners it does. Rounded corners alone do not end at the
rows: training moves the corners of many units onto rows, and what is rounded there is
wrong. So in the end the corners are sharp, and units whose gradient is far from what was
sent, because a row is on the wrong side there, count for little: those that are right
tell the rows to rounding, after which all are right. Up to 32 rows are found as well with
sharp corners from the second stage on; 64 were not, in twelve searches.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax import precision
from fljax.attacks.rows import layers as layers_lib
from fljax.attacks.rows.layers import Seen

SOFT = (0.5, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002) + 4 * (0,)
"""How far corners are rounded, stage by stage."""

_ALL, _MOST = 1e3, 3.0  # of the mean square, beyond which a unit counts less
_TIMES = np.array([_ALL if soft >= 0.01 else _MOST for soft in SOFT], np.float32)
_STEPS, _LOOK_BACK, _GAIN = 20, 6, 0.02  # of a stage; when it is left for the next
_DAMPING, _EASIER, _HARDER = 1e-2, 3.0, 4.0
_LEAST, _LARGEST = 1e-9, 1e6
_FARTHEST = 0.5  # deviations that a step moves
_EVERYTHING = 1e9


class Bounds(NamedTuple):
    """Least and largest value `[D + 1]` of each input and of the target."""

    low: np.ndarray
    high: np.ndarray


class _State(NamedTuple):
    """Of one stage."""

    step: jax.Array
    z: jax.Array
    damping: jax.Array
    misfit: jax.Array
    before: jax.Array
    normal: tuple[jax.Array, jax.Array]
    moved: jax.Array


@functools.partial(jax.jit, static_argnums=0)
@precision.full
def annealed(element_loss, about, z, bounds: Bounds, first):
    """Rows and targets `[B, D + 1]` after all stages from a first one on.

    Args:
      element_loss: of an output.
      about: layers and gradients of `layers.Seen`.
      z: `[B, D + 1]` where the search begins.
      bounds: of what is found.
      first: `[]` place in `SOFT`.

    Returns:
      The rows, and the share `[]` of the squares of all gradients that they miss.
    """
    layers, gradients = about
    seen = Seen(layers, gradients, element_loss)
    scale = [jnp.float32(_EVERYTHING) for _ in seen.layers]
    softness, times = jnp.float32(SOFT), jnp.asarray(_TIMES)

    def stage(number, carry):
        return _stage(seen, bounds, softness[number], times[number], *carry)

    z, _ = jax.lax.fori_loop(first, len(SOFT), stage, (z, scale))
    missed = sum(each.sum() for each in layers_lib.columns(seen, z, jnp.float32(0)))
    return z, missed / sum(jnp.square(each).sum() for each in seen.gradients)


def _stage(seen: Seen, bounds: Bounds, soft, times, z, scale):
    """Steps of Levenberg and Marquardt as long as they gain."""
    scale = layers_lib.rescaled(layers_lib.columns(seen, z, soft), scale, times)

    def misfit(z):
        return layers_lib.robust(layers_lib.columns(seen, z, soft), scale)

    def normal(z):
        return layers_lib.normal(seen, z, soft, scale)

    def goes_on(state: _State):
        gained = state.before[-1] < (1 - _GAIN) * state.before[0]
        return (state.step < _STEPS) & ((state.step < _LOOK_BACK) | gained)

    def step(state: _State):
        matrix, slope = equations = jax.lax.cond(
            state.moved, lambda: normal(state.z), lambda: state.normal
        )
        damped = state.damping * jnp.diag(matrix).mean() * jnp.eye(len(matrix))
        by = jax.scipy.linalg.solve(matrix + damped, -slope, assume_a="pos")
        by = jnp.where(jnp.isfinite(by), by, 0).clip(-_FARTHEST, _FARTHEST)
        there = (state.z + by.reshape(z.shape)).clip(
            bounds.low[None], bounds.high[None]
        )
        then = misfit(there)
        better = then < state.misfit
        least = jnp.where(better, then, state.misfit)
        return _State(
            state.step + 1,
            jnp.where(better, there, state.z),
            (state.damping * jnp.where(better, 1 / _EASIER, _HARDER)).clip(
                _LEAST, _LARGEST
            ),
            least,
            jnp.append(state.before[1:], least),
            equations,
            better,
        )

    empty = jnp.zeros((z.size, z.size)), jnp.zeros(z.size)
    begun = _State(
        jnp.int32(0), z, jnp.float32(_DAMPING), misfit(z),
        jnp.full(_LOOK_BACK, jnp.inf), empty, jnp.bool_(True),
    )  # fmt: skip
    return jax.lax.while_loop(goes_on, step, begun).z, scale

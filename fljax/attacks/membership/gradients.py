"""Membership from messages: the likelihood ratio of a row's gradient in what was sent.

To first order, a message of round r is `w_r sum_i z_i g_i(theta_r)` and noise, where g_i
is the gradient of row i at the model that was sent (clipped as the defense clips it), w_r
the weight of one row, and z_i whether it is there. The rows of a pool are there by a
coin, so that the residual

    e_r = delta_r - w_r sum_i p g_i(theta_r)

has the covariance `s_r^2 I + w_r^2 p (1 - p) sum_i g_i g_i^T`. All rounds have the same z,
and are stacked. Then the log likelihood ratio of row i is the whitened inner product of
residual and gradient. With `A = sum_r w_r^2 G_r G_r^T / s_r^2`, `b` likewise of residuals
and `M = (I + p (1 - p) A)^{-1}`, it is

    joint_i = (M b)_i / M_ii        the other rows of the pool whitened away
    alone_i = b_i / sqrt(A_ii)      who knows this row only: they stay in the noise

Weights are those of the model's learning rate and steps, times one factor per round that
fits the expected message to the one that was seen: clipped messages and learning rates that
are not known need no more. The noise s_r is what the fit leaves, twice estimated.
Coordinates that were not sent are not read. No shadow training is needed.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fljax import losses, per_example, precision
from fljax.defenses import clipping
from fljax.types import Array, Params, Rows

_STAGES = 3  # estimates of the noise, the first without a fit
_LEAST = 1e-6  # of the power of the message, for that of the noise
_KINDS = ("total", "per_layer", "median")


class Sums(NamedTuple):
    """What is seen, of one client or of several together.

    Attributes:
      params: leaves `[R, ...]`, the models that were sent.
      delta: leaves `[R, ...]`, sent minus returned, or the weighted mean of those.
    """

    params: Params
    delta: Params


class Ratios(NamedTuple):
    """Scores `[n]`, larger for members.

    Attributes:
      alone: for who knows no other row.
      joint: for who knows the pool.
    """

    alone: jax.Array
    joint: jax.Array


@functools.partial(jax.jit, static_argnames=("loss_fn", "clipped"))
@precision.full
def likelihood_ratios(
    seen: Sums,
    rows: Rows,
    weight: Array,
    share: Array,
    clips: Array,
    *,
    loss_fn: losses.LossFn,
    clipped: str = "",
) -> Ratios:
    """Scores of all rows of a pool; traceable.

    Args:
      seen: of one training.
      rows: candidates, leaves `[n, ...]`.
      weight: `[n]` of a row's gradient in a message: the client's rate times its local
        steps over the number of its rows, times its weight in the sum.
      share: [] of the candidates that are there.
      clips: `[R]` of the examples' gradients, not read without.
      loss_fn: of one example.
      clipped: '', or how examples are clipped: 'total', 'per_layer' or 'median'.
    """
    of_round = functools.partial(_round, rows, weight, share, loss_fn, clipped)
    kernel, pulled, power, count = jax.lax.map(
        of_round, (seen.params, seen.delta, clips)
    )
    spread = share * (1 - share)
    identity = jnp.eye(len(weight))
    left = power
    for _ in range(_STAGES):
        noise = jnp.maximum(left, _LEAST * power) / jnp.maximum(count, 1)
        scale = 1 / jnp.maximum(noise, jnp.finfo(jnp.float32).tiny)
        matrix = jnp.einsum("r,rij->ij", scale, kernel)
        right = scale @ pulled
        inverse = jnp.linalg.inv(identity + spread * matrix)
        inner = inverse @ right
        fitted = spread * inner
        left = (
            power
            - 2 * pulled @ fitted
            + jnp.einsum("i,rij,j->r", fitted, kernel, fitted)
        )
    alone = right / jnp.sqrt(jnp.maximum(jnp.diagonal(matrix), 1e-30))
    return Ratios(alone, inner / jnp.diagonal(inverse))


def _round(rows, weight, share, loss_fn, clipped, one):
    """Kernel `[n, n]`, residual's products `[n]`, its power [], coordinates []."""
    params, delta, clip = one
    each = jax.vmap(jax.grad(loss_fn), (None, 0, 0))(params, rows.x, rows.y)
    if clipped:
        each = _clipped(each, clipped, clip)
    flat = jnp.concatenate(
        [leaf.reshape(len(weight), -1) for leaf in jax.tree.leaves(each)], axis=1
    )
    seen = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(delta)])
    sent = seen != 0
    gradients = jnp.where(sent, weight[:, None] * flat, 0)
    expected = share * gradients.sum(axis=0)
    factor = expected @ seen / jnp.maximum(expected @ expected, 1e-30)
    factor = jnp.clip(factor, 0, 2)
    gradients, residual = factor * gradients, seen - factor * expected
    kernel = gradients @ gradients.T
    pulled = gradients @ residual
    return kernel, pulled, residual @ residual, sent.sum()


def _clipped(each: Params, how: str, clip: Array) -> Params:
    if how not in _KINDS:
        raise ValueError(f"clipped: expected one of {', '.join(_KINDS)}, got {how!r}")
    make = {"total": clipping.total, "per_layer": clipping.per_layer}
    clip_fn = clipping.median() if how == "median" else make[how](clip)
    norms = jax.tree.map(lambda leaf: jnp.sqrt(per_example.squared_norms(leaf)), each)
    count = len(jax.tree.leaves(norms)[0])
    factors = clip_fn(norms, jnp.ones(count, bool))
    return jax.tree.map(
        lambda f, leaf: f.reshape(-1, *[1] * (leaf.ndim - 1)) * leaf, factors, each
    )

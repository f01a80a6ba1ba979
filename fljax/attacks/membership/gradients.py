"""Membership from messages: the likelihood ratio of a row's gradient in what was sent.

To first order, a message of round r is `w_r sum_i z_i g_i(theta_r)` and noise, where g_i
is the gradient of row i at the model that was sent (clipped as the defense clips it), w_r
the weight of one row, and z_i whether it is there, a coin of chance p. All rounds have the
same z, and are stacked. With what is expected of the others taken away, what is left of
all messages is e, whose covariance S is that of the others' coins and of the noise, and the
log likelihood ratio of row i, if normal, is

    g_i' S^-1 e - (1/2 - p) g_i' S^-1 g_i .

Two adversaries know different others:

* `joint` knows the pool: the expectation is `w_r p sum_i g_i`, and the other rows of the
  pool are whitened away, `S = s_r^2 I + w_r^2 p (1 - p) sum_j g_j g_j'` over them;
* `alone` knows one row of the pool, and how many there are. Rows of the population stand
  in for the others, each for as many of them: in the expectation, and with
  `p sum_j h_j h_j'` in the covariance, as it is not known which they are. It is compared
  with its deviation, `g_i' S^-1 e / sqrt(g_i' S^-1 g_i)`, since such a stand-in fits no row
  exactly.

Weights are those of the model's learning rate and steps, times one factor per round that
fits the expected message to the one that was seen, where 1 is not within its error:
clipped messages and learning rates that are not known need no more. The noise s_r is what
the fit leaves, twice estimated. Coordinates that were not sent are not read. No shadow
training is needed.
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
_TINY = 1e-30
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
      alone: for who knows no other row of the pool.
      joint: for who knows the pool.
    """

    alone: jax.Array
    joint: jax.Array


class _Products(NamedTuple):
    """Of each round: inner products of `N` gradients and of a message."""

    kernel: jax.Array  # [R, N, N]
    pulled: jax.Array  # [R, N], with the message
    power: jax.Array  # [R], of the message
    count: jax.Array  # [R], coordinates that were sent


class _Others(NamedTuple):
    """Rows that the adversary takes away, by their place among the gradients."""

    at: slice
    expected: Array  # [N], how much of each gradient a message is expected to have
    spread: Array  # [], variance of that, of each of `at`


class _Whitened(NamedTuple):
    """Of all gradients, summed over rounds, each in units of its noise."""

    matrix: jax.Array  # [N, N]
    right: jax.Array  # [N], with what the expectation leaves of the messages
    inverse: jax.Array  # of I + spread * matrix, over the others


@functools.partial(jax.jit, static_argnames=("loss_fn", "clipped"))
@precision.full
def likelihood_ratios(
    seen: Sums,
    rows: Rows,
    population: Rows,
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
      population: rows like them that are in no pool, leaves `[m, ...]`.
      weight: `[n]` of a row's gradient in a message: the client's rate times its local
        steps over the number of its rows, times its weight in the sum.
      share: [] of the candidates that are there.
      clips: `[R]` of the examples' gradients, not read without.
      loss_fn: of one example.
      clipped: '', or how examples are clipped: 'total', 'per_layer' or 'median'.
    """
    count, others = len(weight), len(population.y)
    stand_in = jnp.sqrt(jnp.square(weight).sum() / others)
    weights = jnp.concatenate([weight, jnp.full(others, stand_in)])
    both = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), rows, population)
    of_round = functools.partial(_round, both, weights, loss_fn, clipped)
    products = jax.lax.map(of_round, (seen.params, seen.delta, clips))
    pool, rest = slice(None, count), slice(count, None)
    none = jnp.zeros(count + others)
    mean = share * weight.sum() / (others * jnp.maximum(stand_in, _TINY))
    knows_pool = _Others(pool, none.at[pool].set(share), share * (1 - share))
    knows_none = _Others(rest, none.at[rest].set(mean), share)
    return Ratios(_alone(products, knows_none, pool), _joint(products, knows_pool))


def _joint(products: _Products, others: _Others) -> jax.Array:
    """Each of the others against the rest of them."""
    found = _whitened(products, others)
    left = jnp.diagonal(found.inverse)
    ratio = (found.inverse @ found.right[others.at]) / left
    own = (1 / left - 1) / jnp.maximum(others.spread, _TINY)  # g_i' S^-1 g_i
    return ratio - (0.5 - others.expected[others.at]) * own


def _alone(products: _Products, others: _Others, at: slice) -> jax.Array:
    """Rows that are not among the others."""
    found = _whitened(products, others)
    cross = others.spread * found.matrix[at, others.at] @ found.inverse
    ratio = found.right[at] - cross @ found.right[others.at]
    own = jnp.diagonal(found.matrix)[at]
    own = own - (cross * found.matrix[at, others.at]).sum(axis=1)
    return ratio / jnp.sqrt(jnp.maximum(own, _TINY))


def _whitened(products: _Products, others: _Others) -> _Whitened:
    """With what is expected of the others taken away, and their coins as noise."""
    kernel, pulled, power = jax.vmap(functools.partial(_left, others))(*products)
    at, spread = others.at, others.spread
    inside, outside = kernel[:, at, at], pulled[:, at]
    left = power
    for _ in range(_STAGES):
        noise = jnp.maximum(left, _LEAST * power) / jnp.maximum(products.count, 1)
        scale = 1 / jnp.maximum(noise, jnp.finfo(jnp.float32).tiny)
        whole = jnp.einsum("r,rij->ij", scale, inside)
        inverse = jnp.linalg.inv(jnp.eye(len(whole)) + spread * whole)
        fitted = spread * inverse @ (scale @ outside)
        left = (
            power
            - 2 * outside @ fitted
            + jnp.einsum("i,rij,j->r", fitted, inside, fitted)
        )
    return _Whitened(jnp.einsum("r,rij->ij", scale, kernel), scale @ pulled, inverse)


def _left(others: _Others, kernel, pulled, power, count):
    """Products of one round once the expectation is taken away and gradients fit it."""
    along = kernel @ others.expected
    square = jnp.maximum(others.expected @ along, _TINY)
    inner = others.expected @ pulled
    by_coins = others.spread * jnp.square(along[others.at] / square).sum()
    error = by_coins + power / (jnp.maximum(count, 1) * square)
    factor = _shrunk(inner / square, error)
    left = power - 2 * factor * inner + jnp.square(factor) * square
    return jnp.square(factor) * kernel, factor * (pulled - factor * along), left


def _shrunk(factor: jax.Array, error: jax.Array) -> jax.Array:
    """A factor nearer to 1, the less it is shown to be another; in [0, 2].

    Args:
      factor: that fits best.
      error: its variance.
    """
    away = factor - 1
    shown = jnp.maximum(0, 1 - error / jnp.maximum(jnp.square(away), _TINY))
    return jnp.clip(1 + shown * away, 0, 2)


def _round(rows, weights, loss_fn, clipped, one) -> _Products:
    params, delta, clip = one
    each = jax.vmap(jax.grad(loss_fn), (None, 0, 0))(params, rows.x, rows.y)
    if clipped:
        each = _clipped(each, clipped, clip)
    flat = jnp.concatenate(
        [leaf.reshape(len(weights), -1) for leaf in jax.tree.leaves(each)], axis=1
    )
    seen = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(delta)])
    sent = seen != 0
    gradients = jnp.where(sent, weights[:, None] * flat, 0)
    return _Products(gradients @ gradients.T, gradients @ seen, seen @ seen, sent.sum())


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

"""The expected gradient of a step of a client that clips each of its examples'.

With `g_ik` the gradient of row i with candidate k, and a factor `f_ik` from its norms,

    slope = sum_i sum_k z_ik f_ik g_ik / n

is affine in `z` still. Where the clip is the median norm of a batch, it is taken to be
that of all rows, the norm of row i being `sum_k z_ik |g_ik|`.
"""

import dataclasses
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from fljax import losses, per_example
from fljax.attacks.trajectory.relaxation import Soft
from fljax.attacks.trajectory.simulation import Field
from fljax.defenses import clipping
from fljax.dropout import MeanLoss
from fljax.types import Known, Params, PyTree

Clipping = Literal["total", "per_layer", "median"]
_DRAWS = 2  # of what dropout leaves, where gradients are made draw by draw


def clipped(
    loss_fn: losses.LossFn,
    known: Known,
    attribute: Soft,
    how: Clipping,
    clip: jax.Array,
    unravel: Callable[[jax.Array], Params],
) -> Field:
    """The mean of clipped gradients.

    Args:
      loss_fn: of one example.
      known: of the client's rows `N`.
      attribute: the rows that soft values stand for.
      how: norms over all arrays, over each, or over each to the median.
      clip: [] not read for the median.
      unravel: flat params to the model's.
    """
    if isinstance(loss_fn, MeanLoss):  # whose gradients are made one by one
        loss_fn = dataclasses.replace(loss_fn, draws=_DRAWS)

    def slope(flat, values):
        each, mask, weights, shares = _each(
            loss_fn, known, attribute, flat, values, unravel
        )
        norms = jax.tree.map(_root, losses.masked_rows(mask, each.squares))
        if how == "median":
            factors = jax.tree.map(
                lambda n: clipping.per_layer(_median(n, weights, mask))(n, mask),
                norms,
            )
        else:
            make = clipping.total if how == "total" else clipping.per_layer
            factors = make(clip)(norms, mask)
        total = each.weighted_sum(jax.tree.map(lambda f: f * shares, factors))
        return ravel_pytree(total)[0]

    def pull(flat, values, cotangent):
        return jax.vjp(slope, flat, values)[1](cotangent)

    return Field(slope, pull)


def moments(
    loss_fn: losses.LossFn, known: Known, attribute: Soft, flat: jax.Array,
    values: PyTree, unravel: Callable[[jax.Array], Params],
) -> tuple[jax.Array, jax.Array]:  # fmt: skip
    """Means `[P]` over the client's rows: of their gradients, and of these squared."""
    each, _, _, shares = _each(loss_fn, known, attribute, flat, values, unravel)
    like = jax.tree.map(lambda _: shares, each.squares)
    mean, square = each.weighted_sum(like), each.weighted_squares(like)
    return ravel_pytree(mean)[0], ravel_pytree(square)[0]


def _stacked(known: Known, attribute: Soft, values: PyTree):
    """Inputs, targets and mask of `K N` rows, and their weights `[K, N]`."""
    x, weights = attribute.spread(values)
    many = weights.size
    x = jax.tree.map(lambda leaf: leaf.reshape(many, *leaf.shape[2:]), x)
    y, mask = (jnp.concatenate([leaf] * len(weights)) for leaf in (known.y, known.mask))
    return x, y, mask, weights


def _each(loss_fn, known, attribute, flat, values, unravel):
    """Gradients of rows `[K N]`, or of every draw of them; their mask, weights and shares."""
    x, y, mask, weights = _stacked(known, attribute, values)
    params, draws = unravel(flat), 1
    if isinstance(loss_fn, MeanLoss):
        draws = loss_fn.draws
        loss_fn, x, y = loss_fn.drawn(params, x, y)
        mask, weights = jnp.repeat(mask, draws), jnp.repeat(weights, draws, axis=1)
    each = per_example.gradients(loss_fn, params, x, y)
    shares = losses.masked_rows(mask, weights.reshape(-1))
    return each, mask, weights, shares / jnp.maximum(jnp.sum(known.mask), 1) / draws


def _median(norms, weights, mask):
    """Median [] over the rows, or their draws, of one array's norms."""
    of_row = jnp.sum(weights * norms.reshape(weights.shape), axis=0)
    middle = jnp.nanmedian(jnp.where(mask[: len(of_row)], of_row, jnp.nan))
    return jnp.where(mask.any(), middle, 0)


def _root(square):
    """Square root whose derivative at 0 is 0."""
    some = square > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, square, 1)), 0)


def of_batch(
    loss_fn: losses.LossFn,
    known: Known,
    attribute: Soft,
    batch_size: int,
    unravel: Callable,
) -> Callable[[jax.Array, jax.Array], jax.Array] | None:
    """`(params [P], values) -> [P]`: variance of the mean gradient of a batch.

    Its rows, all where `batch_size` is 0, are drawn without replacement, and what dropout
    leaves of the network for each. None where nothing is drawn.
    """
    two = None
    if isinstance(loss_fn, MeanLoss):
        two = dataclasses.replace(loss_fn, draws=_DRAWS)
    elif not batch_size:
        return None

    def of(params, values):
        rows = jnp.sum(known.mask)
        batch = jnp.minimum(batch_size, rows) if batch_size else rows
        share = (rows - batch) / (jnp.maximum(rows - 1, 1) * batch)
        given = known, attribute, params, values, unravel
        if two is None:
            mean, square = moments(loss_fn, *given)
            return share * jnp.maximum(square - mean * mean, 0)
        mean, square = moments(two, *given)
        _, of_means = moments(two.__call__, *given)  # not draw by draw
        within = jnp.maximum(2 * (square - of_means), 0)  # means of two have half
        between = jnp.maximum(square - within - mean * mean, 0)
        return share * between + within / batch

    return of

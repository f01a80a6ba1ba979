"""Model-based attribute inference, for ONE client and any model of the transcript.

Eq. (3) of Diana et al. (AAAI-25), after Fredrikson et al. (2014): of all values that
the sensitive attribute may take, choose for each row the one under which the model
fits the row's public target best. The attack is given no truth; `metrics` scores it.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fljax import losses, precision
from fljax.types import Begun, Features, Known, Params


class Guess(NamedTuple):
    """Inferred candidates.

    Attributes:
      index: `[N]` int32 candidate of each row; ties go to the first, and -1 stands
        where a loss is not finite.
      losses: `[N, K]` loss of each row under each candidate.
    """

    index: jax.Array
    losses: jax.Array


def complete(public: Features, block: jax.Array) -> Features:
    """Full inputs from public columns and a sensitive block `[N, W]`."""
    return public._replace(numeric=jnp.concatenate([public.numeric, block], axis=-1))


def conceal(x: Features, y: jax.Array, mask: jax.Array, *, width: int) -> Known:
    """What an adversary knows of rows: all but the sensitive block.

    Args:
      x: full inputs, the sensitive block last in `numeric`.
      y: targets.
      mask: True for real rows.
      width: columns `W` of the sensitive block.

    Returns:
      A `Known`; works with any leading axes.
    """
    public = x.numeric[..., : x.numeric.shape[-1] - width]
    return Known(x._replace(numeric=public), y, mask)


def without_padding(known: Known) -> Known:
    """Zeros in rows that are no rows: derivatives would multiply NaN by zero."""
    return losses.masked_rows(known.mask, known)._replace(mask=known.mask)


@precision.full
def row_losses(
    loss_fn: losses.LossFn, params: Params, known: Known
) -> Callable[[jax.Array], jax.Array]:
    """Loss of each row as a function of the sensitive block.

    What the public columns do to the first layer is shared by all calls if the model
    allows, and derivatives by the block do without those by other columns.

    Args:
      loss_fn: of one example.
      params: the model.
      known: public columns and targets `[N]`.

    Returns:
      `(block [N or 1, W]) -> [N]`.
    """
    begin = getattr(loss_fn, "begin", lambda params, public: None)
    hidden = jax.vmap(begin, (None, 0))(params, known.public)

    def of(block):
        block = jnp.broadcast_to(block, (known.y.shape[0], block.shape[-1]))
        rows = complete(known.public, block) if hidden is None else Begun(hidden, block)
        return jax.vmap(loss_fn, (None, 0, 0))(params, rows, known.y)

    return precision.full(of)


@precision.full
def model_based(
    loss_fn: losses.LossFn, params: Params, known: Known, candidates: jax.Array
) -> Guess:
    """Infers a binary or categorical attribute.

    Args:
      loss_fn: `(params, x, y) -> []`, the loss that the model was trained with.
      params: any model that the adversary holds.
      known: public columns and targets of the client's rows.
      candidates: `[K, W]` encoded candidate values.

    Returns:
      A `Guess`; rows outside `known.mask` carry meaningless values.
    """

    under = row_losses(loss_fn, params, known)
    table = jax.vmap(lambda one: under(one[None]), out_axes=1)(candidates)
    best = jnp.argmin(table, axis=1).astype(jnp.int32)
    return Guess(jnp.where(jnp.isfinite(table).all(axis=1), best, -1), table)


@precision.full
def model_based_continuous(
    loss_fn: losses.LossFn,
    params: Params,
    known: Known,
    bounds: jax.Array,
    *,
    num_points: int = 33,
    num_zooms: int = 4,
) -> jax.Array:
    """Infers a continuous attribute by a bounded search.

    A grid over the whole range finds the basin, since a network's loss may have
    several; each zoom then lays the same grid over the two cells around the best point.

    Args:
      loss_fn: as in `model_based`.
      params: any model that the adversary holds.
      known: public columns and targets of the client's rows.
      bounds: `[2, 1]` smallest and largest encoded value.
      num_points: grid points, at least 5.
      num_zooms: refinements; the final cell is
        `(2 / (num_points - 1)) ** num_zooms / (num_points - 1)` of the range.

    Returns:
      `[N]` inferred encoded values, NaN where the model's loss is no number.

    Raises:
      ValueError: for fewer than 5 points, with which a zoom gains too little.
    """
    if num_points < 5:
        raise ValueError(f"num_points must be >= 5, got {num_points}")
    low, high = bounds[0, 0], bounds[1, 0]
    steps = jnp.linspace(0.0, 1.0, num_points)
    under = row_losses(loss_fn, params, known)

    def zoom(_, box):
        start, width = box
        points = start[:, None] + width[:, None] * steps[None]  # [N, points]
        table = jax.vmap(lambda column: under(column[:, None]), 1, 1)(points)
        best = jnp.take_along_axis(points, table.argmin(axis=1)[:, None], axis=1)[:, 0]
        cell = width / (num_points - 1)
        start = jnp.clip(best - cell, low, high - 2 * cell)
        return start, 2 * cell

    num_rows = known.y.shape[0]
    box = (jnp.full(num_rows, low), jnp.full(num_rows, high - low))
    start, width = jax.lax.fori_loop(0, num_zooms + 1, zoom, box)
    found = start + width / 2
    return jnp.where(jnp.isfinite(under(found[:, None])), found, jnp.nan)


def least_squares_bound(
    mean_squared_error: jax.Array, weight: jax.Array, gap: jax.Array
) -> jax.Array:
    """Proposition 1: lower bound on the accuracy of `model_based`.

    For a linear least squares model and a binary attribute the accuracy is at least
    `1 - 4 E / (weight * gap)^2`. The paper encodes the attribute as 0 and 1; `gap`
    makes the statement independent of the encoding.

    Args:
      mean_squared_error: [] E, of the model on the client's rows.
      weight: [] the model's coefficient of the sensitive column.
      gap: [] distance between the two encoded values.

    Returns:
      [] the bound, at least 0.
    """
    effect = jnp.square(weight * gap)
    bound = 1 - 4 * mean_squared_error / jnp.where(effect > 0, effect, 1)
    return jnp.where(effect > 0, jnp.maximum(bound, 0.0), 0.0)

"""Soft sensitive attributes: rows that are partly one value and partly another.

A categorical attribute mixes the losses of its candidates, so that gradients are affine
in the weights; a continuous one is itself the number that is put into the row.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fljax import losses
from fljax.attacks.attribute import (
    complete,
    model_based,
    model_based_continuous,
    row_losses,
)
from fljax.types import Features, Known, Params

DOUBT = 2.0  # largest log-odds that a start may have
_FEW = 8  # candidates whose losses are written out one by one in a program


class Soft(NamedTuple):
    """An attribute as a function of unbounded logits.

    Attributes:
      start: `(params) -> logits`, careful log-odds of the model-based attack.
      relax: `(logits) -> values`; `[N, K]` weights, or `[N]` encoded numbers.
      mean_loss: `(params, values) -> []` over the real rows.
      spread: `(values) -> (inputs [K, N, ...], weights [K, N])`, the rows that values
        stand for; one of weight 1 if continuous.
    """

    start: Callable[[Params], jax.Array]
    relax: Callable[[jax.Array], jax.Array]
    mean_loss: Callable[[Params, jax.Array], jax.Array]
    spread: Callable[[jax.Array], tuple[Features, jax.Array]]


def categorical(loss_fn: losses.LossFn, known: Known, candidates: jax.Array) -> Soft:
    """Of `K` candidates `[K, W]`; logits are `[N, K - 1]` over the first candidate."""

    def mean_loss(params, values):
        under = row_losses(loss_fn, params, known)

        def column(candidate):
            return under(candidate[None])

        # One after the other no array [K, N, units] is read again and transposed.
        if len(candidates) <= _FEW:
            each = jnp.stack([column(one) for one in candidates], axis=1)
        else:
            each = jax.vmap(column, out_axes=1)(candidates)
        return losses.masked_mean(jnp.sum(values * each, axis=1), known.mask)

    def spread(values):
        shape = (known.y.shape[0], candidates.shape[1])
        rows = jax.vmap(lambda c: complete(known.public, jnp.broadcast_to(c, shape)))(
            candidates
        )
        return rows, values.T

    def start(params):
        found = model_based(loss_fn, params, known, candidates).losses
        spread = losses.masked_mean(found.min(axis=1), known.mask)
        odds = (found[:, :1] - found[:, 1:]) / (2 * jnp.maximum(spread, 1e-30))
        return jnp.clip(jnp.nan_to_num(odds), -DOUBT, DOUBT)

    def relax(logits):
        return jax.nn.softmax(jnp.pad(logits, ((0, 0), (1, 0))))

    return Soft(start, relax, mean_loss, spread)


def continuous(loss_fn: losses.LossFn, known: Known, bounds: jax.Array) -> Soft:
    """A number between `bounds [2, 1]`; logits are `[N, 1]`."""
    low, width = bounds[0, 0], bounds[1, 0] - bounds[0, 0]

    def mean_loss(params, values):
        each = row_losses(loss_fn, params, known)(values[:, None])
        return losses.masked_mean(each, known.mask)

    def spread(values):
        rows = complete(known.public, values[:, None])
        return jax.tree.map(lambda leaf: leaf[None], rows), jnp.ones((1, len(values)))

    def start(params):
        found = model_based_continuous(loss_fn, params, known, bounds)
        share = jnp.clip((found - low) / width, 1e-6, 1 - 1e-6)
        odds = jnp.log(share) - jnp.log1p(-share)
        return jnp.clip(jnp.nan_to_num(odds), -DOUBT, DOUBT)[:, None]

    def relax(logits):
        return low + width * jax.nn.sigmoid(logits[:, 0])

    return Soft(start, relax, mean_loss, spread)

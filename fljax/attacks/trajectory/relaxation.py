"""Soft sensitive attributes: rows that are partly one value and partly another.

The losses of the candidates are mixed, so that gradients are affine in the weights. So are
those of a number, whose candidates are evenly spaced, and whose guess is their mean: put
into the rows itself it would be searched for among the many local optima of a network.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fljax import losses
from fljax.attacks.attribute import complete, model_based, row_losses
from fljax.types import Features, Known, Params

DOUBT = 2.0  # largest log-odds that a start may have
POINTS = 17  # candidates of a number
_FEW = 8  # candidates whose losses are written out one by one in a program


class Soft(NamedTuple):
    """An attribute as a function of unbounded logits.

    Attributes:
      start: `(params) -> logits`, careful log-odds of the model-based attack.
      relax: `(logits) -> values`, weights `[N, K]`.
      mean_loss: `(params, values) -> []` over the real rows.
      spread: `(values) -> (inputs [K, N, ...], weights [K, N])`, the rows that values
        stand for.
    """

    start: Callable[[Params], jax.Array]
    relax: Callable[[jax.Array], jax.Array]
    mean_loss: Callable[[Params, jax.Array], jax.Array]
    spread: Callable[[jax.Array], tuple[Features, jax.Array]]


def categorical(
    loss_fn: losses.LossFn,
    known: Known,
    candidates: jax.Array,
    *,
    ordered: bool = False,
) -> Soft:
    """Of `K` candidates; logits are `[N, K - 1]` over the first candidate.

    Args:
      loss_fn: of one row.
      known: of the rows.
      candidates: `[K, W]`.
      ordered: whether they are `points` of a number, whose start has odds against the least;
        of a category no candidate is the first.
    """

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
        least = found[:, :1] if ordered else found.min(axis=1, keepdims=True)
        log = jnp.nan_to_num((least - found) / (2 * jnp.maximum(spread, 1e-30)))
        log = jnp.clip(log, -DOUBT, DOUBT)
        return log[:, 1:] - log[:, :1]

    def relax(logits):
        return jax.nn.softmax(jnp.pad(logits, ((0, 0), (1, 0))))

    return Soft(start, relax, mean_loss, spread)


def points(bounds: jax.Array) -> jax.Array:
    """Candidates `[K, 1]` of a number between bounds `[2, 1]`, evenly spaced."""
    return jnp.linspace(bounds[0], bounds[1], POINTS)

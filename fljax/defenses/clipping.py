"""Clipping of per-example gradients, and of any tree by its norm.

A layer is one array of parameters, as in the code of Wei et al. 2021 (Fed-CDP): kernel
and bias of a dense layer are two. With M layers,

| clip               | an example's gradient | one record changes the sum by at most |
|--------------------|-----------------------|---------------------------------------|
| `total(C)`         | norm over all <= C    | C                                     |
| `per_layer(C)`     | each layer <= C       | C sqrt(M)                             |
| `per_layer(C / sqrt(M))` | each layer <= C / sqrt(M) | C                           |
| `median()`         | each layer <= median over the batch | no bound                |

The bounds hold to float32 rounding (1e-6 of them, and 1e-12 of a norm). Where squares
underflow beside large ones, in the factors of a dense layer's gradient, they count as the
most that they can be: such an example may shrink to less than C. The median depends on
the batch and on every example in it, so that it promises nothing (Abadi et al. 2016,
section 5.2, name it as a heuristic for the choice of C).

An example whose gradient has no finite norm, and padding, contribute exactly zero.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jax.typing import ArrayLike

from fljax import losses, per_example
from fljax.defenses.checks import LEAST_CLIP, check_clip
from fljax.types import Array, Batch, Params, PyTree

ClipSchedule = Callable[[Array], ArrayLike]
# (round []) -> clip []; any optax schedule
Clip = float | Array | ClipSchedule

ClipFn = Callable[[PyTree, Array], PyTree]
# (norms, leaves [B] for each layer; who counts [B]) -> factors, leaves [B]


class ClippedSum(NamedTuple):
    """What is left of a batch.

    Attributes:
      total: sum of the clipped gradients, in the shape of params.
      loss: [] mean loss of the examples that count.
      dropped: [] int32, real examples that were left out because their gradient has no
        finite norm.
    """

    total: Params
    loss: jax.Array
    dropped: jax.Array


def clipped_sum(
    loss_fn: losses.LossFn, params: Params, batch: Batch, clip_fn: ClipFn
) -> ClippedSum:
    """Sum over a batch of gradients that are clipped one by one.

    Args:
      loss_fn: of one example; one from `losses.example_loss` on a shipped model is
        differentiated without holding every example's gradient (`per_example`).
      params: the model.
      batch: padded examples contribute exactly zero, whatever they hold.
      clip_fn: e.g. `total(1.0)`.
    """
    x, y = losses.masked_rows(batch.mask, (batch.x, batch.y))
    each = per_example.gradients(loss_fn, params, x, y)
    finite = jnp.isfinite(jax.tree.reduce(jnp.add, each.squares))
    counts = batch.mask & finite
    norms = jax.tree.map(jnp.sqrt, losses.masked_rows(counts, each.squares))
    weights = losses.masked_rows(counts, clip_fn(norms, counts))
    return ClippedSum(
        each.weighted_sum(weights),
        losses.masked_mean(each.values, counts & jnp.isfinite(each.values)),
        jnp.sum(batch.mask & ~finite, dtype=jnp.int32),
    )


def total(clip: float | Array) -> ClipFn:
    """The norm over all layers to `clip` []."""

    def factors(norms, counts):
        del counts
        squares = jax.tree.map(jnp.square, norms)
        factor = _factor(jnp.sqrt(jax.tree.reduce(jnp.add, squares)), clip)
        return jax.tree.map(lambda _: factor, norms)

    return factors


def per_layer(clip: float | Array) -> ClipFn:
    """The norm of each layer to `clip` []."""

    def factors(norms, counts):
        del counts
        return jax.tree.map(lambda norm: _factor(norm, clip), norms)

    return factors


def median() -> ClipFn:
    """The norm of each layer to the median over the examples that count."""

    def factors(norms, counts):
        def one(norm):
            middle = jnp.nanmedian(jnp.where(counts, norm, jnp.nan))
            return _factor(norm, jnp.where(counts.any(), middle, 0))

        return jax.tree.map(one, norms)

    return factors


def clipped(tree: PyTree, clip_fn: ClipFn) -> PyTree:
    """ONE gradient or message, clipped; zero if it has no finite norm."""
    alone = jax.tree.map(lambda leaf: leaf[None], tree)
    squares = jax.tree.map(per_example.squared_norms, alone)
    finite = jnp.isfinite(jax.tree.reduce(jnp.add, squares))
    norms = jax.tree.map(jnp.sqrt, losses.masked_rows(finite, squares))
    return jax.tree.map(
        lambda factor, leaf: jnp.where(finite, factor * leaf, 0),
        jax.tree.map(lambda f: f[0], clip_fn(norms, finite)),
        tree,
    )


def num_layers(params: Params) -> int:
    """M, the number of arrays that `per_layer` clips one by one."""
    return len(jax.tree.leaves(params))


def check_layers(params: Params, expected: int) -> None:
    """Raises ValueError if the params have another number of layers."""
    if num_layers(params) != expected:
        raise ValueError(
            f"num_layers must be that of the params, {num_layers(params)}, "
            f"got {expected}"
        )


def linear_decay(
    start: float | Array = 6.0, end: float | Array = 2.0, *, num_rounds: int
) -> ClipSchedule:
    """From `start` in round 0 to `end` in round `num_rounds - 1`, and `end` after that.

    Fed-CDP(decay) of Wei et al. 2021, section VII-A, which gives 6 to 2 over 100 rounds
    and not whether the last of them has 2 exactly.
    """
    if num_rounds < 2:
        return optax.constant_schedule(start)
    return optax.linear_schedule(start, end, num_rounds - 1)


def decaying(
    clip: float | Array, end: float | Array | None, num_rounds: int | None
) -> Clip:
    """A clip, or its linear decay to `end` over a run.

    Raises:
      ValueError: for a decay over an unknown number of rounds.
    """
    if end is None:
        return clip
    if num_rounds is None:
        raise ValueError("decay_to: expected a training with a number of rounds")
    return linear_decay(clip, end, num_rounds=num_rounds)


def at_round(clip: Clip, round: Array | None) -> Array | float:
    """The clip [] of a round, not below 0 where a schedule runs on beyond its check.

    Raises:
      ValueError: for a schedule and no round.
    """
    if not callable(clip):
        return clip
    if round is None:
        raise ValueError("round: expected a number for a clip schedule, got None")
    return jnp.maximum(clip(jnp.asarray(round)), 0)


def largest(clip: Clip, num_rounds: int | None) -> Array | float:
    """The largest clip [] of a run, checked unless it is traced.

    Args:
      clip: number or schedule.
      num_rounds: of the run; needed for a schedule.

    Raises:
      ValueError: if the clip is not a positive number in some round of the run.
    """
    if not callable(clip):
        check_clip(clip)
        return clip
    if num_rounds is None or num_rounds < 1:
        raise ValueError(
            f"num_rounds must be >= 1 for a clip schedule, got {num_rounds}"
        )
    with jax.ensure_compile_time_eval():
        values = jax.vmap(clip)(jnp.arange(num_rounds))
    if isinstance(values, Tracer):
        return jnp.max(values)
    values = np.asarray(values)
    bad = ~((values >= LEAST_CLIP) & (values < np.inf))
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"clip must be >= {LEAST_CLIP:g} and finite in every round, "
            f"got {values[at]:g} in round {at}"
        )
    return values.max()


def _factor(norm, clip):
    """`min(1, clip / norm)`, 1 at norm 0 whatever the clip."""
    above = norm > clip
    return jnp.where(above, clip / jnp.where(above, norm, 1), 1)

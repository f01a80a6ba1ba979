"""Reconstruction of a client's optimal linear model from passive messages.

Algorithm 2 of Diana et al. (AAAI-25), after Observation 1 of Xu & Neglia (2021). For
least squares and full batches a client's round is affine in what it was sent, whatever
its number of local steps: `sent_t = A delta_t + optimum` with `delta = sent - returned`.
So `d + 1` generic messages determine the optimum as the intercept of a regression of
the sent models on the deltas; with mini-batches more messages average the noise.

Divergence: the authors invert one square system, from the best conditioned of up to
10^7 random sets of `d + 1` rounds. `reconstruct_linear` regresses on all messages at
once, centred and column-scaled, with a cut-off on singular values;
`reconstruct_linear_subset` is their variant.

Both work in the precision of their arguments: give them float64 where the platform has
it, for consecutive rounds are nearly collinear.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from fljax.types import Key


class Reconstruction(NamedTuple):
    """An estimate of the local optimum, and whether the messages determine it.

    Attributes:
      estimate: `[P]` flat parameters.
      rank: [] int32 of the regression, at most `P`.
      singular_values: `[min(R, P)]` of the scaled regressors, decreasing.
      residual: [] root mean square of what the regression leaves unexplained.
      determined: [] bool, `rank == P`. Otherwise many models fit the messages equally
        well, and the estimate is the one among them that in the undetermined
        directions stays where the server's models were; it must not be read as exact.
    """

    estimate: jax.Array
    rank: jax.Array
    singular_values: jax.Array
    residual: jax.Array
    determined: jax.Array


def reconstruct_linear(
    sent: jax.Array, delta: jax.Array, *, rcond: float | None = None
) -> Reconstruction:
    """Least squares over all messages of one client.

    Args:
      sent: `[R, P]` flat parameters that it was sent.
      delta: `[R, P]` sent minus returned.
      rcond: singular values below `rcond` times the largest count as zero; None takes
        the precision of the arguments times the larger of R and P. Messages that
        travelled as float32 carry rounding of their own: give about 1e-6 for them.

    Returns:
      A `Reconstruction`.
    """
    num_params = sent.shape[1]
    if rcond is None:
        rcond = float(jnp.finfo(sent.dtype).eps) * max(sent.shape)
    centre_in = sent.mean(axis=0, keepdims=True)
    regressors, (centre_out, scale) = _standardised(delta)
    slope, _, rank, s = jnp.linalg.lstsq(regressors, sent - centre_in, rcond)
    misfit = sent - centre_in - matmul(regressors, slope)
    estimate = (centre_in - matmul(centre_out / scale, slope))[0]
    return Reconstruction(
        estimate=estimate,
        rank=rank.astype(jnp.int32),
        singular_values=s,
        residual=jnp.sqrt(jnp.mean(jnp.square(misfit))),
        determined=(rank == num_params) & jnp.isfinite(estimate).all(),
    )


def reconstruct_linear_subset(
    key: Key,
    sent: jax.Array,
    delta: jax.Array,
    *,
    num_trials: int = 10_000,
    rcond: float | None = None,
) -> Reconstruction:
    """Inverts the best conditioned of `num_trials` random sets of `P + 1` messages.

    Args:
      key: consumed.
      sent: `[R, P]` flat parameters that it was sent, `R > P`.
      delta: `[R, P]` sent minus returned.
      num_trials: sets drawn; every message is used when `R == P + 1`.
      rcond: as in `reconstruct_linear`, of the chosen messages.

    Returns:
      A `Reconstruction` whose singular values are those of the chosen square matrix
      `[delta, 1]` and whose residual is zero by construction.

    Raises:
      ValueError: if there are fewer than `P + 1` messages.
    """
    num_messages, num_params = sent.shape
    size = num_params + 1
    if num_messages < size:
        raise ValueError(f"needs at least {size} messages, got {num_messages}")
    regressors = jnp.concatenate([delta, jnp.ones_like(delta[:, :1])], axis=1)

    def subset(trial):
        order = jax.random.permutation(jax.random.fold_in(key, trial), num_messages)
        return jnp.sort(order[:size])

    def condition(trial):
        s = jnp.linalg.svd(regressors[subset(trial)], compute_uv=False)
        return s[0] / jnp.maximum(s[-1], jnp.finfo(s.dtype).tiny)

    trials = jnp.arange(num_trials, dtype=jnp.uint32)
    best = jnp.argmin(lax.map(condition, trials, batch_size=min(256, num_trials)))
    chosen = subset(trials[best])
    square = regressors[chosen]
    estimate = jnp.linalg.solve(square, sent[chosen])[-1]
    spread, _ = _standardised(delta[chosen])
    own = jnp.linalg.svd(spread, compute_uv=False)
    least = jnp.finfo(own.dtype).eps * size if rcond is None else rcond
    rank = jnp.sum(own > least * own[0]).astype(jnp.int32)
    return Reconstruction(
        estimate=estimate,
        rank=rank,
        singular_values=jnp.linalg.svd(square, compute_uv=False),
        residual=jnp.zeros((), sent.dtype),
        determined=(rank == num_params) & jnp.isfinite(estimate).all(),
    )


def _standardised(values: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Columns of mean 0 and deviation 1, and what these were, both `[1, P]`."""
    centre, scale = (f(values, axis=0, keepdims=True) for f in (jnp.mean, jnp.std))
    scale = jnp.where(scale > 0, scale, 1)
    return (values - centre) / scale, (centre, scale)


def matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    """A product in full precision; accelerators multiply in less unless told so."""
    return jnp.matmul(a, b, precision="highest")

"""Noise of a client's messages, estimated from residuals without knowing the truth.

What a simulation of the client leaves unexplained in round t is `r_t = bias_t + noise_t`.
The noise comes from the order of its batches and is independent between rounds; the
bias comes from what is not yet known about its rows and changes slowly, as the model
does. Differences of consecutive residuals therefore hold the noise and almost none of
the bias, so that the noise can be estimated before anything is known. It is far from
white: a few directions, those of large curvature, hold most of it. The estimate is

    C_t = variance_t * D^1/2 ((1 - rho) S_t + rho I) D^1/2

with a diagonal `D`, the correlation `S_t` of all differences that do not hold round t
(their sum of squares over the number of all), shrunk to the identity, and one variance
for each round. Leaving the round itself out is what lets its own residual count.

Of noise that a defense adds the size is known: no coordinate has less than that in `D`,
and this share of it is not correlated with others, so that rho of a coordinate grows
with it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.stats import norm

from fljax.types import Array, Key

_ROUGH = 4.0  # differences that a variance by its bounds is worth
LEAST = 1e-6  # of a noise's power, where residuals are equal to the last digit


class Partial(NamedTuple):
    """Residuals of which some are only known to be small.

    Attributes:
      there: `[R, P]` which of them are observations.
      bound: `[R]` most that what was not observed can have been, in magnitude.
    """

    there: jax.Array
    bound: jax.Array


class Noise(NamedTuple):
    """Covariances `C_t` of `R` residuals of length `P`, and their inverses.

    Attributes:
      deviation: `[P]` square root of `D`.
      samples: `[R - 1, P]` normalised differences, times `sqrt((1 - rho) / rho)`.
      core: `[R - 1, R - 1]` inner inverse of Woodbury's identity, of all differences;
        `[R, R - 1, R - 1]`, of those that a round keeps, where coordinates are missing.
      variance: `[R]`.
      shrinkage: `[P]` rho.
      partial: which coordinates were observed; None for all.
    """

    deviation: jax.Array
    samples: jax.Array
    core: jax.Array
    variance: jax.Array
    shrinkage: jax.Array
    partial: Partial | None = None


def estimate(
    residuals: jax.Array,
    partial: Partial | None = None,
    known: Array | None = None,
    *,
    shrinkage: float = 0.3,
    floor: float = 0.3,
) -> Noise:
    """Estimates the noise from residuals of rounds in their order.

    Args:
      residuals: `[R, P]`; coordinates that never move are ignored.
      partial: which of them are observations; None for all.
      known: `[R]` variances of noise that is known to be on every coordinate.
      shrinkage: least rho, in (0, 1).
      floor: quantile of the variances that is added to each of them.

    Returns:
      A `Noise`. With two rounds `C_t` is diagonal; a single one has no differences, and
      all its coordinates are alike.
    """
    num_rounds = residuals.shape[0]
    if num_rounds < 2:
        return _white(residuals, partial)
    steps, both = differences(residuals, partial)
    usual = None if partial is None else _of_bounds(partial)
    known = jnp.zeros(num_rounds) if known is None else known
    around = (known[1:] + known[:-1]) / 2
    variance, diagonal, white = _rank_one(jnp.square(steps), both, floor, usual, around)
    deviation = jnp.sqrt(diagonal)
    rho = shrinkage + (1 - shrinkage) * white
    samples = steps / (deviation[None] * jnp.sqrt(variance)[:, None])
    samples = samples * jnp.sqrt((1 - rho) / rho)[None]
    before = jnp.concatenate([variance[:1], variance])
    after = jnp.concatenate([variance, variance[-1:]])
    return Noise(
        deviation,
        samples,
        _core(samples, partial),
        (before + after) / 2,
        rho,
        partial,
    )


def differences(
    residuals: jax.Array, partial: Partial | None = None
) -> tuple[jax.Array, jax.Array | None]:
    """Of consecutive rounds, scaled to the size of one; and where both are observed.

    Both `[R - 1, P]`; zeros elsewhere.
    """
    steps = (residuals[1:] - residuals[:-1]) / jnp.sqrt(2.0)
    if partial is None:
        return steps, None
    both = partial.there[1:] & partial.there[:-1]
    return jnp.where(both, steps, 0), both


def whiten(noise: Noise, round_: jax.Array, residual: jax.Array) -> jax.Array:
    """`C_t^-1` times a residual `[P]` of round t.

    Of coordinates that were not observed a residual is that of `bounded`. They count as
    independent of each other and of those that were.
    """
    share = noise.shrinkage
    if noise.partial is not None:
        share = jnp.where(noise.partial.there[round_], share, 1.0)
    size = noise.deviation * jnp.sqrt(share)
    scaled = residual / size
    if len(noise.samples):
        seen = _only(noise, round_, scaled)
        inner = _apply_core(noise, round_, noise.samples @ seen)
        scaled = scaled - _only(noise, round_, inner @ noise.samples)
    return scaled / (size * noise.variance[round_])


def bounded(noise: Noise, round_: jax.Array, residual: jax.Array) -> jax.Array:
    """A residual `[P]`, of what was not observed minus the mean that is to be expected.

    Where a change of mean m and variance `D v` is only known to be within the bound b,
    its likelihood is `P(|X| <= b)`; `(m - E[X | |X| <= b]) / (D v)` is minus the
    derivative of its logarithm by m. Of a noise that is small beside the bound, what m
    has beyond it. So that only large changes are seen misleads no more: who counts them
    alone takes large noise for large change.
    """
    if noise.partial is None:
        return residual
    bound, size = noise.partial.bound[round_], noise.deviation
    size = size * jnp.sqrt(noise.variance[round_])
    low, high = (-bound - residual) / size, (bound - residual) / size
    inside = norm.cdf(high) - norm.cdf(low)
    pull = size * (norm.pdf(high) - norm.pdf(low)) / jnp.maximum(inside, 1e-5)
    beyond = residual - jnp.clip(residual, -bound, bound)
    pull = jnp.where(inside > 1e-5, pull, beyond)
    return jnp.where(noise.partial.there[round_], residual, pull)


def draw(key: Key, noise: Noise, round_: jax.Array) -> jax.Array:
    """A residual `[P]` of round t that is noise alone: Gaussian with covariance `C_t`."""
    own, shared = jax.random.split(key)
    count, size = len(noise.samples), noise.deviation * jnp.sqrt(noise.shrinkage)
    mix = jax.random.normal(shared, (count,)) * _kept(round_, count)
    white = jax.random.normal(own, noise.deviation.shape)
    scaled = white + mix @ noise.samples / jnp.sqrt(max(count, 1))
    drawn = jnp.sqrt(noise.variance[round_]) * size * scaled
    return _only(noise, round_, drawn)


def _of_bounds(partial: Partial) -> jax.Array:
    """`[P]` variances by how often each was beyond the bound; NaN if mostly.

    Of a normal change of mean 0 that is beyond b in a share f of the rounds, b is the
    quantile of `1 - f / 2`.
    """
    rounds = len(partial.there)
    share = (jnp.sum(partial.there, axis=0) + 0.5) / (rounds + 1)
    finite = jnp.where(jnp.isfinite(partial.bound), partial.bound, jnp.nan)
    size = jnp.nanmean(finite) / norm.ppf(1 - share / 2)
    return jnp.where(share < 0.5, jnp.square(size), jnp.nan)


def _rank_one(power, both, floor, usual, known):
    """A table of variances of rank one: of differences `[R - 1]`, coordinates `[P]`.

    And the share of the latter that is `known` `[R - 1]`.
    """
    tiny = jnp.finfo(power.dtype).tiny
    moves = jnp.any(power > 0, axis=0)
    if both is None:
        pairs = power.shape[0]
        width = jnp.maximum(jnp.sum(moves), 1)
    else:
        pairs = jnp.sum(both, axis=0)
        width = jnp.maximum(jnp.sum(both & moves[None], axis=1), 1)
    sums = jnp.sum(power, axis=1)
    lowest = jnp.maximum(LEAST * known, tiny)
    variance = jnp.maximum(sums / (power.shape[1] if both is None else width), lowest)

    def better(_, found):
        variance = found[0]
        mean = jnp.sum(power / variance[:, None], axis=0) / jnp.maximum(pairs, 1)
        least = jnp.nanquantile(jnp.where(moves, mean, jnp.nan), floor)
        if usual is not None:  # few rounds in a row have it
            rough = usual / jnp.mean(variance)
            mean = jnp.where(
                jnp.isfinite(rough),
                (pairs * mean + _ROUGH * rough) / (pairs + _ROUGH),
                mean,
            )
        white = jnp.mean(known / variance)
        least = jnp.maximum(jnp.nan_to_num(least) - white, tiny)
        diagonal = jnp.maximum(mean - white, 0) + white + least
        variance = jnp.sum(power / diagonal[None], axis=1) / width
        return jnp.maximum(variance, lowest), diagonal, white

    first = variance, jnp.zeros(power.shape[1]), jnp.zeros(())
    variance, diagonal, white = lax.fori_loop(0, 3, better, first)
    # A message that is there twice tells nothing of the noise between the two.
    differ = sums > 0
    usual = jnp.sum(jnp.where(differ, variance, 0)) / jnp.maximum(jnp.sum(differ), 1)
    variance = jnp.where(differ, variance, jnp.maximum(usual, lowest))
    return variance, diagonal, white / diagonal


def _core(samples, partial):
    count = len(samples)
    if partial is None:
        return jnp.linalg.inv(samples @ samples.T + count * jnp.eye(count))

    def of_round(round_):
        kept = jnp.where(
            _kept(round_, count)[:, None] & partial.there[round_][None], samples, 0
        )
        return jnp.linalg.inv(kept @ kept.T + count * jnp.eye(count))

    return lax.map(of_round, jnp.arange(count + 1))


def _only(noise: Noise, round_, vector):
    """Zeros where a round has no observation."""
    return vector if noise.partial is None else vector * noise.partial.there[round_]


def _kept(round_: jax.Array, count: int) -> jax.Array:
    """`[count]` whether a difference does not hold the round."""
    step = jnp.arange(count)
    return (step < round_ - 1) | (step > round_)


def _apply_core(noise: Noise, round_: jax.Array, vector: jax.Array) -> jax.Array:
    """The inner inverse without the differences that hold the round, times `[R - 1]`.

    Rows are taken out of an inverse by eliminating them from it: one small system
    instead of an inverse for every round.
    """
    core, count = noise.core, len(noise.samples)
    kept = _kept(round_, count)
    vector = jnp.where(kept, vector, 0)
    if noise.partial is not None:
        return jnp.where(kept, core[round_] @ vector, 0)
    # The first and the last round are held by one difference, the others by two.
    first = jnp.clip(round_ - 1, 0, count - 1)
    second = jnp.clip(round_, 0, count - 1)
    a, b, c = core[first, first], core[first, second], core[second, second]
    found = core @ vector
    alone = found[first] / a
    determinant = a * c - b * b
    one = (c * found[first] - b * found[second]) / determinant
    two = (a * found[second] - b * found[first]) / determinant
    single = first == second
    one, two = jnp.where(single, alone, one), jnp.where(single, 0.0, two)
    return found - one * core[:, first] - two * core[:, second]


def _white(residuals: jax.Array, partial: Partial | None) -> Noise:
    size = residuals.shape[1]
    seen = residuals if partial is None else residuals * partial.there
    count = size if partial is None else jnp.maximum(jnp.sum(partial.there), 1)
    power = jnp.sum(jnp.square(seen)) / count
    return Noise(
        jnp.ones(size),
        jnp.zeros((0, size)),
        jnp.zeros((0, 0)),
        jnp.maximum(power, jnp.finfo(jnp.float32).tiny)[None],
        jnp.ones(size),
        partial,
    )

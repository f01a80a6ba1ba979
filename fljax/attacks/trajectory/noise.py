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
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from fljax.types import Key


class Noise(NamedTuple):
    """Covariances `C_t` of `R` residuals of length `P`, and their inverses.

    Attributes:
      deviation: `[P]` square root of `D`.
      samples: `[R - 1, P]` normalised differences.
      core: `[R - 1, R - 1]` inner inverse of Woodbury's identity, of all differences.
      variance: `[R]`.
      shrinkage: [] rho.
    """

    deviation: jax.Array
    samples: jax.Array
    core: jax.Array
    variance: jax.Array
    shrinkage: jax.Array


def estimate(
    residuals: jax.Array, *, shrinkage: float = 0.3, floor: float = 0.3
) -> Noise:
    """Estimates the noise from residuals of rounds in their order.

    Args:
      residuals: `[R, P]`; coordinates that never move are ignored.
      shrinkage: rho, in (0, 1).
      floor: quantile of the variances that is added to each of them.

    Returns:
      A `Noise`. With two rounds `C_t` is diagonal; a single one has no differences, and
      all its coordinates are alike.
    """
    num_rounds = residuals.shape[0]
    if num_rounds < 2:
        return _white(residuals)
    tiny = jnp.finfo(residuals.dtype).tiny
    steps = (residuals[1:] - residuals[:-1]) / jnp.sqrt(2.0)
    power = jnp.square(steps)
    moves = jnp.any(power > 0, axis=0)
    variance = jnp.maximum(jnp.mean(power, axis=1), tiny)
    diagonal = jnp.ones(steps.shape[1])
    for _ in range(3):  # a table of variances of rank one: rounds times coordinates
        mean = jnp.mean(power / variance[:, None], axis=0)
        least = jnp.nanquantile(jnp.where(moves, mean, jnp.nan), floor)
        diagonal = mean + jnp.maximum(jnp.nan_to_num(least), tiny)
        variance = jnp.sum(power / diagonal[None], axis=1) / jnp.maximum(
            jnp.sum(moves), 1
        )
        variance = jnp.maximum(variance, tiny)
    deviation = jnp.sqrt(diagonal)
    samples = steps / (deviation[None] * jnp.sqrt(variance)[:, None])
    shift = shrinkage / (1 - shrinkage) * (num_rounds - 1)
    gram = samples @ samples.T
    before = jnp.concatenate([variance[:1], variance])
    after = jnp.concatenate([variance, variance[-1:]])
    return Noise(
        deviation,
        samples,
        jnp.linalg.inv(gram + shift * jnp.eye(num_rounds - 1)),
        (before + after) / 2,
        jnp.asarray(shrinkage),
    )


def whiten(noise: Noise, round_: jax.Array, residual: jax.Array) -> jax.Array:
    """`C_t^-1` times a residual `[P]` of round t."""
    scaled = residual / noise.deviation
    if len(noise.samples):
        inner = _apply_core(noise, round_, noise.samples @ scaled)
        scaled = scaled - inner @ noise.samples
    return scaled / (noise.deviation * noise.variance[round_] * noise.shrinkage)


def draw(key: Key, noise: Noise, round_: jax.Array) -> jax.Array:
    """A residual `[P]` of round t that is noise alone: Gaussian with covariance `C_t`."""
    own, shared = jax.random.split(key)
    count, rho = len(noise.samples), noise.shrinkage
    mix = jax.random.normal(shared, (count,)) * _kept(round_, count)
    mix = mix * jnp.sqrt((1 - rho) / max(count, 1))
    white = jnp.sqrt(rho) * jax.random.normal(own, noise.deviation.shape)
    scaled = white + mix @ noise.samples
    return jnp.sqrt(noise.variance[round_]) * noise.deviation * scaled


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
    vector = jnp.where(_kept(round_, count), vector, 0)
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


def _white(residuals: jax.Array) -> Noise:
    size = residuals.shape[1]
    power = jnp.maximum(jnp.mean(jnp.square(residuals)), jnp.finfo(jnp.float32).tiny)
    return Noise(
        jnp.ones(size),
        jnp.zeros((0, size)),
        jnp.zeros((0, 0)),
        power[None],
        jnp.ones(()),
    )

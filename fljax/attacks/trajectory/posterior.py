"""How sure trajectory matching is of each row.

What is believed lies between two extremes. The curvature of the objective along one row,
all others fixed, says how far that row alone is determined; it knows nothing of the rest
of the objective nor of where the search began, and doubts rows that are right wherever
noise is strong. Where the search ended is sure of too much once it follows the noise.
Rounds that the search has not used say how far to go from the first to the second.

Whether odds from before the messages were matched are worth anything is not known either.
So all are asked, a row by itself and a row by itself with such odds as its prior, and weigh
by how well they explain these rounds.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fljax.attacks.trajectory import noise as noise_lib
from fljax.attacks.trajectory.matching import (
    Point,
    Problem,
    Unexplained,
    held_out,
    scale_of,
)
from fljax.types import Key

_STEP = 0.25  # deviation of the share before held-out rounds are seen
_LEAST = float(jnp.finfo(jnp.float32).min)  # evidence for what leaves no number


def posterior(
    key: Key,
    problem: Problem,
    begun: jax.Array,
    point: Point,
    left: Unexplained,
    misfit: jax.Array,
) -> jax.Array:
    """Posterior weights `[..., K]` around where the search ended.

    Args:
      key: consumed.
      problem: whose `relax` gives weights.
      begun: `[H, ...]` logits, each of which may be a prior.
      point: where the search ended.
      left: what it leaves unexplained.
      misfit: [] of what is left.
    """
    alone, excess = _alone(key, problem, point, left, misfit)
    held, used = held_out(len(left.residuals), problem.settings.held_out)
    if np.intersect1d(held, used).size:
        return alone
    informed = [jax.nn.softmax(jnp.log(alone * problem.relax(one))) for one in begun]
    found, unexplained = lax.map(
        lambda weights: toward_end(problem, point, left, weights, excess),
        jnp.stack([alone, *informed]),
    )
    evidence = jnp.nan_to_num(-0.5 * unexplained / excess, nan=_LEAST, neginf=_LEAST)
    return jnp.einsum("h,h...->...", jax.nn.softmax(evidence), found)


def toward_end(
    problem: Problem, point: Point, left: Unexplained, weights: jax.Array, excess
) -> tuple[jax.Array, jax.Array]:
    """Some of the way from these weights to where the search ended, and what it costs [].

    The least squares of held-out rounds, residuals being linear between the two, and a
    normal prior around 0: where such rounds tell little, weights stay.

    Args:
      problem: whose `relax` gives weights.
      point: where the search ended.
      left: what it leaves unexplained.
      weights: `[..., K]` to begin from.
      excess: [] by how much the noise is understated.

    Returns:
      Weights, and the squared whitened residual of these rounds, over that at the end of
      the search, and of the prior.
    """
    held, _ = held_out(len(left.residuals), problem.settings.held_out)
    scale = scale_of(problem, point)

    def of_round(t):
        predicted, _ = problem.simulator.end(t, weights, scale)
        end = left.residuals[t]
        move = end - (predicted - problem.observed[t])
        if left.noise.partial is not None:
            move = move * left.noise.partial.there[t]
        whitened = noise_lib.whiten(left.noise, t, move)
        return end @ whitened, move @ whitened

    against, square = (each.sum() for each in lax.map(of_round, jnp.asarray(held)))
    doubt = excess / _STEP**2
    share = jnp.clip(jnp.nan_to_num((square - against) / (square + doubt)), 0.0, 1.0)
    rest = 1 - share
    cost = rest**2 * square - 2 * rest * against + share**2 * doubt
    return weights + share * (problem.relax(point.logits) - weights), cost


def _alone(key, problem: Problem, point: Point, left: Unexplained, misfit):
    """Weights of each row, all others fixed, and by how much the noise is understated.

    The objective is quadratic in one row's weights and flat where the search ended. Its
    curvature is the mean square of the derivatives along drawn noise; the same along
    the differences of residuals that really occurred says by how much the noise model
    understates the noise, and the misfit by how much more is left than noise.
    """
    noise, residuals = left.noise, left.residuals
    num_rounds = len(residuals)
    values, scale = problem.relax(point.logits), scale_of(problem, point)
    spaced = np.linspace(0, num_rounds - 1, min(problem.settings.probes, num_rounds))
    rounds = jnp.asarray(np.unique(spaced.round().astype(int)))

    def probe(t):
        _, stored = problem.simulator.end(t, values, scale)
        after = jnp.where(t + 1 < num_rounds, t + 1, t - 1)
        real = (residuals[t] - residuals[after]) / jnp.sqrt(2.0)
        drawn = noise_lib.draw(jax.random.fold_in(key, t), noise, t)
        if noise.partial is not None:
            both = noise.partial.there[t] & noise.partial.there[after]
            real, drawn = real * both, drawn * both

        def back(residual):
            cotangent = noise_lib.whiten(noise, t, residual)
            return problem.simulator.back(stored, cotangent, values, scale)[0]

        return lax.map(back, jnp.stack([drawn, real]))

    drawn, real = jnp.moveaxis(lax.map(probe, rounds), 1, 0)  # [probes, ..., K]
    excess = jnp.sum(jnp.square(real)) / jnp.maximum(jnp.sum(jnp.square(drawn)), 1e-30)
    excess = jnp.maximum(excess if num_rounds > 2 else 1.0, 1e-30)
    excess = excess * jnp.maximum(misfit, 1.0)
    count = values.shape[-1]
    corners = jnp.broadcast_to(jnp.eye(count), (*values.shape, count))
    move = corners - values[..., None, :]  # [..., to K, K]
    rise = jnp.einsum("...kj,p...j->p...k", move, drawn)
    cost = 0.5 * num_rounds * jnp.mean(jnp.square(rise), axis=0)
    return jax.nn.softmax(-cost / excess), excess

"""How sure trajectory matching is of each row."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fljax.attacks.trajectory import noise as noise_lib
from fljax.attacks.trajectory.matching import Point, Problem, Unexplained, scale_of
from fljax.types import Key


def posterior(
    key: Key, problem: Problem, point: Point, left: Unexplained, misfit: jax.Array
) -> jax.Array:
    """Posterior weights `[..., K]`: all else fixed, each row moved to each candidate.

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
    return jax.nn.softmax(-cost / excess)

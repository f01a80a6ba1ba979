"""Where nothing is drawn: clients that take each step on all of their rows.

Their messages are functions of the rows, to rounding. What mini-batches hide under the
noise of their order is there to be solved for: a step of Gauss-Newton on the values
themselves, not on logits, is exact where a message is one step, whose gradient is
affine in them. Adam would need thousands of iterations, for directions of the
equations differ in length by a factor of ten thousand.

A Jacobian of all coordinates of all messages would be large and of far more equations
than unknowns. Instead some random combinations of the coordinates of each message, in
units of their rounding, are equations, each of them one adjoint pass:

    (c' J_t) dz = -c' r_t

A prior of half the range, in units of what the equations leave unexplained, keeps too
few messages from extremes. Where far more than rounding is left, some of what is known of
the rows or of the training is wrong, and nothing is exact: the search begins without.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax

from fljax.attacks.trajectory.matching import Problem
from fljax.types import Key

MOST = 4096  # unknowns that are solved for
_OVER = 1.5  # equations for each unknown
_PASSES = 3
_TRUSTED = 10.0  # times the rounding, that may be left unexplained
_SURE = 1 - 1e-6  # most that a value is believed; the search goes on from there
_FAR = 30.0  # logits of what is surely so


def start(key: Key, problem: Problem, logits: jax.Array, weights: bool) -> jax.Array:
    """Logits of the values that explain all messages.

    Args:
      key: consumed.
      problem: whose `rounding` is that of its observations.
      logits: where to begin; they come back where they are too many to solve for, or
        nothing explains the messages.
      weights: whether values are `[..., K]` weights that sum to 1; else numbers of the
        shape of the logits, but for a last axis of length 1.
    """
    if logits.size > MOST:
        return logits
    if weights:
        values, left = solve(key, problem, problem.relax(logits), weights, 0.0, 1.0)
        values = jnp.clip(values, (1 - _SURE) / values.shape[-1], 1.0)
        found = jnp.log(values[..., 1:]) - jnp.log(values[..., :1])
    else:
        ends = jnp.full_like(logits, -_FAR), jnp.full_like(logits, _FAR)
        low, high = map(problem.relax, ends)
        values, left = solve(key, problem, problem.relax(logits), weights, low, high)
        share = jnp.clip((values - low) / (high - low), 1 - _SURE, _SURE)
        found = (jnp.log(share) - jnp.log1p(-share))[..., None]
    return jnp.where(left < _TRUSTED**2, found, logits)


def solve(
    key: Key, problem: Problem, values: jax.Array, weights: bool, low, high
) -> tuple[jax.Array, jax.Array]:
    """Values between bounds of each, and the mean square that they leave, over rounding's.

    Args:
      key: consumed.
      problem: as that of `start`.
      values: where to begin.
      weights: as for `start`.
      low, high: bounds, of the shape of what may be chosen, or one for all.
    """
    prior = 1 / values.shape[-1] if weights else (low + high) / 2
    unknown = _free(values, weights).size

    def one(carry, key):
        values, noise = carry
        rows, left = _equations(key, problem, values, weights)
        # A prior of half the range, in units of the noise.
        doubt = 2 * jnp.sqrt(noise) / jnp.ravel(jnp.asarray(high - low))
        doubt = jnp.broadcast_to(doubt, (unknown,))
        matrix = jnp.concatenate([rows, jnp.diag(doubt)])
        apart = jnp.ravel(_free(values - prior, weights))
        q, r = jnp.linalg.qr(matrix)
        target = q.T @ -jnp.concatenate([left, doubt * apart])
        move = jax.scipy.linalg.solve_triangular(r, target)
        unexplained = jnp.mean(jnp.square(rows @ move + left)) * _OVER / (_OVER - 1)
        moved = _moved(values, move, weights, low, high)
        sound = jnp.isfinite(moved).all()
        values = jnp.where(sound, moved, values)
        noise = jnp.where(sound, jnp.maximum(unexplained, 1.0), jnp.inf)
        return (values, noise), None

    keys = jax.random.split(key, _PASSES)
    return lax.scan(one, (values, jnp.ones(())), keys)[0]


def _equations(key: Key, problem: Problem, values: jax.Array, weights: bool):
    """`[E, unknown]` random combinations, and what each leaves `[E]`."""
    num_rounds, width = problem.observed.shape
    unknown, simulator = _free(values, weights).size, problem.simulator
    each = min(-(-round(_OVER * unknown) // num_rounds), width)
    rounding = problem.rounding
    assert rounding is not None

    def of_round(round_):
        predicted, stored = simulator.end(round_, values, problem.scale)
        unit = rounding[round_] * math.sqrt(width)
        residual = (predicted - problem.observed[round_]) / unit
        signs = jax.random.rademacher(
            jax.random.fold_in(key, round_), (each, width), jnp.float32
        )

        def row(sign):
            pull = simulator.back(stored, sign / unit, values, problem.scale)[0]
            return _free(pull - pull[..., :1] if weights else pull, weights).ravel()

        return lax.map(row, signs, batch_size=min(each, 8)), signs @ residual

    rows, left = lax.map(of_round, jnp.arange(num_rounds))
    return rows.reshape(-1, unknown), left.reshape(-1)


def _free(values: jax.Array, weights: bool) -> jax.Array:
    """Those that may be chosen: what one weight gains, the first one loses."""
    return values[..., 1:] if weights else values


def _moved(values, move, weights, low, high):
    free = _free(values, weights)
    free = jnp.clip(free + move.reshape(free.shape), low, high)
    if not weights:
        return free
    first = jnp.maximum(1 - free.sum(axis=-1, keepdims=True), 0)
    both = jnp.concatenate([first, free], axis=-1)
    return both / both.sum(axis=-1, keepdims=True)

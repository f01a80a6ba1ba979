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

Of a few candidates a solution is looked for, with a prior of half the range, in units of
what the equations leave unexplained, that keeps too few messages from extremes. Where that
leaves more than rounding, and where candidates are many, as those of a number, the weights
that leave least are next: none is negative, which tells much where values are single ones.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jax import lax

from fljax.attacks.trajectory.matching import Problem
from fljax.types import Key

MOST = 4096  # unknowns that are solved for
_FEW = 8  # candidates whose equations may have a solution
_OVER = 1.5  # equations for each unknown
_PASSES = 3
_TRUSTED = 10.0  # times the rounding, that may be left unexplained
_SURE = 1 - 1e-6  # most that a value is believed; the search goes on from there
_ITERATIONS = 500  # of the weights that leave least


def start(key: Key, problem: Problem, logits: jax.Array) -> jax.Array:
    """Logits of the values that explain all messages, or come nearest to that.

    Args:
      key: consumed.
      problem: whose `rounding` is that of its observations.
      logits: where to begin; they come back where they are too many to solve for.
    """
    if logits.size > MOST:
        return logits
    begun, rounding = problem.relax(logits), problem.rounding
    assert rounding is not None
    alike = jnp.full_like(rounding, jnp.sqrt(jnp.mean(jnp.square(rounding))))
    key, again = jax.random.split(key)

    def nearest():
        return _repeated(_nearest, again, problem, begun, alike)

    def better(values, left):
        other, unexplained = nearest()
        fits = _squares(problem, other) < _squares(problem, values)
        return jnp.where(fits, other, values), jnp.where(fits, unexplained, left)

    if begun.shape[-1] > _FEW:
        values, left = nearest()
    else:
        values, left = _repeated(_solved, key, problem, begun, rounding)
        explained = left < _TRUSTED**2
        values, left = lax.cond(
            explained, lambda: (values, left), lambda: better(values, left)
        )
    values = jnp.clip(values, (1 - _SURE) / values.shape[-1], 1.0)
    found = jnp.log(values[..., 1:]) - jnp.log(values[..., :1])
    return jnp.where(jnp.isfinite(left), found, logits)


def _repeated(
    step: Callable, key: Key, problem: Problem, values: jax.Array, units: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Weights after steps, and the mean square that the last one left, in these units.

    Units `[R, O]` are of the residuals: of rounding, or alike for all.
    """

    def one(carry, key):
        values, noise, _ = carry
        equations = _equations(key, problem, values, units)
        moved, noise, left = step(values, noise, *equations)
        sound = jnp.isfinite(moved).all()
        values = jnp.where(sound, moved, values)
        noise = jnp.where(sound, jnp.maximum(noise, 1.0), jnp.inf)
        return (values, noise, jnp.where(sound, left, jnp.inf)), None

    keys = jax.random.split(key, _PASSES)
    begin = values, jnp.ones(()), jnp.zeros(())
    values, _, left = lax.scan(one, begin, keys)[0]
    return values, left


def _solved(values: jax.Array, noise: jax.Array, rows: jax.Array, left: jax.Array):
    """Weights that solve the equations, within bounds; what one gains the first loses."""
    free = values[..., 1:]
    each = rows.reshape(-1, *values.shape)
    rows = (each - each[..., :1])[..., 1:].reshape(-1, free.size)
    # A prior of half the range, in units of the noise.
    doubt = 2 * jnp.sqrt(noise)
    matrix = jnp.concatenate([rows, doubt * jnp.eye(free.size)])
    apart = jnp.ravel(free - 1 / values.shape[-1])
    q, r = jnp.linalg.qr(matrix)
    target = q.T @ -jnp.concatenate([left, doubt * apart])
    move = jax.scipy.linalg.solve_triangular(r, target)
    inside = jnp.clip(free + move.reshape(free.shape), 0.0, 1.0)
    first = jnp.maximum(1 - inside.sum(axis=-1, keepdims=True), 0)
    both = jnp.concatenate([first, inside], axis=-1)
    both = both / both.sum(axis=-1, keepdims=True)
    rest = rows @ (both[..., 1:] - free).ravel() + left
    noise, unexplained = (
        jnp.mean(jnp.square(each)) * _OVER / (_OVER - 1)
        for each in (rows @ move + left, rest)
    )
    return both, noise, unexplained


def _nearest(values: jax.Array, noise: jax.Array, rows: jax.Array, left: jax.Array):
    """Weights that leave the least of the equations, none of them negative.

    Projected gradients with momentum (Beck & Teboulle, "A Fast Iterative Shrinkage-
    Thresholding Algorithm for Linear Inverse Problems", 2009), begun anew where that
    points away from the descent (O'Donoghue & Candes, "Adaptive Restart", 2015).
    """
    square, slope = rows.T @ rows, rows.T @ left
    # The iteration comes near the largest curvature, from below.
    rate = 1 / (1.1 * optax.power_iteration(square, num_iters=50)[0])
    inside = jax.vmap(optax.projections.projection_simplex)

    def step(_, carry):
        here, ahead, speed = carry
        gradient = square @ (ahead - values).ravel() + slope
        moved = ahead - rate * gradient.reshape(values.shape)
        moved = inside(moved.reshape(-1, values.shape[-1])).reshape(values.shape)
        away = jnp.sum((ahead - moved) * (moved - here)) > 0
        faster = jnp.where(away, 1.0, (1 + jnp.sqrt(1 + 4 * speed**2)) / 2)
        push = jnp.where(away, 0.0, (speed - 1) / faster)
        return moved, moved + push * (moved - here), faster

    start = values, values, jnp.ones(())
    found, _, _ = lax.fori_loop(0, _ITERATIONS, step, start)
    rest = rows @ (found - values).ravel() + left
    return found, noise, jnp.mean(jnp.square(rest))


def _squares(problem: Problem, values: jax.Array) -> jax.Array:
    """What values leave of all messages."""

    def of_round(round_):
        predicted, _ = problem.simulator.end(round_, values, problem.scale)
        return jnp.sum(jnp.square(predicted - problem.observed[round_]))

    return lax.map(of_round, jnp.arange(len(problem.observed))).sum()


def _equations(key: Key, problem: Problem, values: jax.Array, units: jax.Array):
    """`[E, N K]` random combinations, and what each leaves `[E]`."""
    num_rounds, width = problem.observed.shape
    unknown, simulator = values[..., 1:].size, problem.simulator
    each = min(-(-round(_OVER * unknown) // num_rounds), width)

    def of_round(round_):
        predicted, stored = simulator.end(round_, values, problem.scale)
        unit = units[round_] * math.sqrt(width)
        residual = (predicted - problem.observed[round_]) / unit
        signs = jax.random.rademacher(
            jax.random.fold_in(key, round_), (each, width), jnp.float32
        )

        def row(sign):
            return simulator.back(stored, sign / unit, values, problem.scale)[0].ravel()

        return lax.map(row, signs, batch_size=min(each, 8)), signs @ residual

    rows, left = lax.map(of_round, jnp.arange(num_rounds))
    return rows.reshape(-1, values.size), left.reshape(-1)

"""Finds the attribute values whose simulated end points meet the returned models.

The stages of `trajectory`: simulate, compare in the metric of the noise, take the
derivative by an adjoint pass, step, and keep what explains the held-out rounds best.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from fljax.attacks.trajectory import misfits, simulation
from fljax.attacks.trajectory import noise as noise_lib
from fljax.types import Array, Key, PyTree


class Settings(NamedTuple):
    """How hard to look; all static.

    Attributes:
      path_steps: M, simulated steps; more than half of `eta K` times the largest
        curvature keeps the simulation stable.
      shorter_steps: of a path in rounds in which M are too few; 0 for none.
      iterations: steps of Adam on the logits, over all stages; rounded down to a
        multiple of stages times checkpoints, but at least one between two looks.
      batch_rounds: random rounds in each of them.
      rate: first learning rate of the logits; it falls to zero as a cosine.
      rough_iterations: steps of a search before, which follows rounds to first order
        only; 0 for none. They are cheap and save many others, but where models move
        far within a round they may end in values that the rest does not leave.
      stages: how often the noise is estimated, and the start from which.
      checkpoints: looks at the held-out rounds in each stage.
      held_out: share of the rounds that is held out.
      first_order: linear inversion.
      estimate_scale: also fit `eta K`, taking the given one as the start.
      probes: random probes of the curvature.
    """

    path_steps: int = 10
    shorter_steps: int = 0
    iterations: int = 240
    rough_iterations: int = 0
    batch_rounds: int = 3
    rate: float = 0.5
    stages: int = 2
    checkpoints: int = 3
    held_out: float = 0.1
    first_order: bool = False
    estimate_scale: bool = False
    probes: int = 16


class Point(NamedTuple):
    """Where the search is: logits `[..., K - 1]`, log_scale [] over the given scale."""

    logits: jax.Array
    log_scale: jax.Array


class Problem(NamedTuple):
    """Everything that stays as it is.

    Attributes:
      observed: `[R, O]` what is compared with the predictions.
      changed: `[R, O]` how far that is from what was sent.
      simulator: of the rounds `0 .. R - 1`.
      relax: `(logits) -> values`, those that the simulator takes.
      scale: [] that the simulator is given, but for `estimate_scale`.
      settings: how hard to look.
      partial: which coordinates were observed at all; None for all.
      steady: `(stored) -> [] bool`, whether a round was simulated as asked; None for
        always.
      known: `[R]` variances of noise of known size; None for none.
      rounding: `[R, O]` of observations that hold no other noise; None where they do.
      path: [] bool, whether all rounds are simulated; else nothing is solved for and
        searched to first order before.
    """

    observed: jax.Array
    changed: jax.Array
    simulator: simulation.Simulator
    relax: Callable[[jax.Array], PyTree]
    scale: jax.Array
    settings: Settings
    partial: noise_lib.Partial | None = None
    steady: Callable[[PyTree], jax.Array] | None = None
    known: Array | None = None
    rounding: jax.Array | None = None
    path: jax.Array | bool = True


def eased(settings: Settings) -> Settings:
    """Of the search before, to first order."""
    return settings._replace(
        first_order=True, iterations=settings.rough_iterations, stages=1
    )


def scale_of(problem: Problem, point: Point) -> jax.Array:
    """`eta K` [] where the search is."""
    return problem.scale * jnp.exp(point.log_scale)


class Unexplained(NamedTuple):
    """What a point leaves of all rounds.

    Attributes:
      residuals: `[R, O]` predicted minus observed.
      steady: `[R]` bool, which rounds were simulated as asked.
      noise: estimated from the residuals.
    """

    residuals: jax.Array
    steady: jax.Array
    noise: noise_lib.Noise


def _examine(
    problem: Problem, point: Point, rounds: jax.Array, count, before
) -> tuple[jax.Array, jax.Array]:
    """Residuals and steadiness, of the first `count` of these rounds anew."""
    values, scale = problem.relax(point.logits), scale_of(problem, point)

    def one(number, found):
        residuals, steady = found
        round_ = rounds[number]
        predicted, stored = problem.simulator.end(round_, values, scale)
        as_asked = True if problem.steady is None else problem.steady(stored)
        residual = predicted - problem.observed[round_]
        return residuals.at[round_].set(residual), steady.at[round_].set(as_asked)

    return lax.fori_loop(0, count, one, before)


def _slope(problem: Problem, noise, point: Point, round_) -> Point:
    """Derivative of one round's half squared whitened residual."""
    values, relax_back = jax.vjp(problem.relax, point.logits)
    scale, simulator = scale_of(problem, point), problem.simulator
    predicted, stored = simulator.end(round_, values, scale)
    residual = predicted - problem.observed[round_]
    residual = noise_lib.bounded(noise, round_, residual)
    cotangent = noise_lib.whiten(noise, round_, residual)
    by_values, by_scale = simulator.back(stored, cotangent, values, scale)
    fixed = not problem.settings.estimate_scale
    by_scale = jnp.zeros(()) if fixed else by_scale * scale
    return Point(relax_back(by_values)[0], by_scale)


class _Descent(NamedTuple):
    """How the search steps, on which rounds."""

    key: Key
    optimiser: optax.GradientTransformation
    used: np.ndarray


class _State(NamedTuple):
    """Of the search: where it is, the best point and what this leaves held out."""

    point: Point
    moments: PyTree
    best: Point
    least: jax.Array
    left: Unexplained


def search(key: Key, problem: Problem, start: Point) -> tuple[Point, Unexplained]:
    """The point that explains the held-out rounds best, and what it leaves of all.

    Begins, and ends each stage, with a turn: back to the best point, a look at all
    rounds, and the noise anew. Between two turns come steps and looks at the held-out
    rounds. All are one loop, each part of which is compiled once.
    """
    settings, num_rounds = problem.settings, len(problem.observed)
    per_look = max(settings.iterations // (settings.stages * settings.checkpoints), 1)
    looks, each = settings.stages * settings.checkpoints, settings.checkpoints + 1
    schedule = optax.cosine_decay_schedule(settings.rate, per_look * looks)
    held, used = held_out(num_rounds, settings.held_out)
    descent = _Descent(key, optax.adam(schedule), used)
    order = jnp.asarray([*held, *np.setdiff1d(np.arange(num_rounds), held)])

    def look(number, state: _State) -> _State:
        turn = number % each == 0
        point = _where(turn, state.best, state.point)
        begin = (number - number // each - 1) * per_look
        point, moments = lax.fori_loop(
            begin,
            begin + jnp.where(turn, 0, per_look),
            functools.partial(_iterate, problem, descent, state.left.noise),
            (point, state.moments),
        )
        count = jnp.where(turn, num_rounds, len(held))
        residuals, steady = _examine(problem, point, order, count, state.left[:2])
        noise = lax.cond(
            turn,
            lambda: noise_lib.estimate(residuals, problem.partial, problem.known),
            lambda: state.left.noise,
        )
        unexplained = jnp.mean(misfits.powers(noise, held, residuals[held]))
        worst = jnp.where(jnp.isnan(unexplained), jnp.inf, unexplained)
        unexplained = jnp.where(turn, worst, unexplained)
        better = turn | (unexplained <= state.least)  # never, if it is not a number
        best, least = _where(better, (point, unexplained), (state.best, state.least))
        return _State(
            point, moments, best, least, Unexplained(residuals, steady, noise)
        )

    left = _nothing(problem)
    first = _State(start, descent.optimiser.init(start), start, jnp.zeros(()), left)
    found = lax.fori_loop(0, settings.stages * each + 1, look, first)
    return found.best, found.left


def still(problem: Problem, logits: jax.Array) -> tuple[Point, Unexplained]:
    """The point of these logits and what it leaves of all rounds; nothing is searched."""
    point, number = Point(logits, jnp.zeros(())), len(problem.observed)
    before = _nothing(problem)[:2]
    residuals, steady = _examine(problem, point, jnp.arange(number), number, before)
    noise = noise_lib.estimate(residuals, problem.partial, problem.known)
    return point, Unexplained(residuals, steady, noise)


def _nothing(problem: Problem) -> Unexplained:
    """Zeros in place of what has not been looked at."""
    residuals = jnp.zeros(problem.observed.shape)
    estimated = jax.eval_shape(
        noise_lib.estimate, residuals, problem.partial, problem.known
    )
    noise = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), estimated)
    return Unexplained(residuals, jnp.zeros(len(residuals), bool), noise)


def _where(which, these: PyTree, those: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.where(which, a, b), these, those)


def _iterate(problem: Problem, descent: _Descent, noise, number, carry):
    """One step of Adam on a few random rounds."""
    point, state = carry
    batch = min(problem.settings.batch_rounds, len(descent.used))
    chosen = jax.random.choice(
        jax.random.fold_in(descent.key, number), descent.used, (batch,), replace=False
    )
    slopes = lax.map(lambda t: _slope(problem, noise, point, t), chosen)
    # One bad step must not stay in Adam's moments for ever.
    mean = jax.tree.map(
        lambda leaf: jnp.nan_to_num(leaf.mean(axis=0), posinf=0.0, neginf=0.0), slopes
    )
    found, state = descent.optimiser.update(mean, state, point)
    step = cast(Point, found)
    # The scale is one number that all rows share: it moves slowly.
    step = step._replace(log_scale=0.1 * step.log_scale)
    return jax.tree.map(jnp.add, point, step), state


def held_out(num_rounds: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Evenly spaced held-out rounds, and those used; too few rounds serve as both."""
    everyone = np.arange(num_rounds)
    count = round(share * num_rounds)
    if count < 1 or num_rounds < 4:
        return everyone, everyone
    held = np.linspace(0, num_rounds - 1, count + 2)[1:-1].round().astype(int)
    return held, np.setdiff1d(everyone, held)

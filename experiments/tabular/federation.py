"""The trainings of a run, and the loss of their models; all axes lead with seeds."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from experiments.tabular.problem import Problem
from fljax import federation, losses, rounds
from fljax.federation import Federation, States
from fljax.types import ApplyFn, Params, Rows


class Diverged(ArithmeticError):
    """Training produced a loss that is not finite."""


def train(
    problem: Problem,
    *,
    chunk: int,
    progress: Callable[[int], None],
    states: States | None = None,
    record_dtype: str | None = None,
) -> rounds.Run:
    """Runs all rounds of all seeds, `chunk` rounds a call.

    Args:
      problem: from `problem.build`.
      chunk: rounds after which the losses are looked at.
      progress: called with the number of rounds done.
      states: where an earlier call left its state, and this one does.
      record_dtype: of the messages that are kept.

    Returns:
      The finished `Run` of NumPy arrays `[seeds, ...]`.

    Raises:
      Diverged: as soon as a loss is not finite.
    """

    def look(done, finite):
        _check(*finite, done, problem)
        progress(done)

    return federation.train(
        Federation(problem.method, problem.tables),
        problem.trainings,
        stops=stops(problem, chunk),
        evaluate=_finite,
        progress=look,
        states=states,
        record_dtype=record_dtype,
    ).run


def stops(problem: Problem, chunk: int) -> tuple[int, ...]:
    """Every so many rounds, and the last."""
    last = problem.schedule.num_rounds
    return (*range(chunk, last, chunk), last)


def loss_curve(
    problem: Problem, params: Params, rows: Rows, mask: np.ndarray
) -> np.ndarray:
    """Mean loss `[seeds, R]` of models `[seeds, R, ...]` on `rows [seeds, N]`."""
    return np.asarray(_curves(params, rows, mask, loss_fn=problem.loss_fn))


def classes_right(
    apply: ApplyFn, task: str, params: Params, rows: Rows, mask: np.ndarray
) -> np.ndarray:
    """Percent `[seeds]` of `rows [seeds, N]` whose class models `[seeds, ...]` name."""
    return np.asarray(_right(params, rows, mask, apply=apply, binary=task == "binary"))


def mean_loss(loss_fn: losses.LossFn, params: Params, rows: Rows, mask) -> jax.Array:
    """Mean loss `[]` of one model on `rows [N]` where `mask`; traceable."""
    values = jax.vmap(loss_fn, (None, 0, 0))(params, rows.x, rows.y)
    return losses.masked_mean(values, mask)


@functools.partial(jax.jit, static_argnames="loss_fn")
def _curves(params, rows, mask, *, loss_fn) -> jax.Array:
    def curve(args):
        params, rows, mask = args
        return jax.lax.map(lambda p: mean_loss(loss_fn, p, rows, mask), params)

    return jax.lax.map(curve, (params, rows, mask))


@functools.partial(jax.jit, static_argnames=("apply", "binary"))
def _right(params, rows, mask, *, apply, binary: bool) -> jax.Array:
    def one(args):
        params, rows, mask = args
        outputs = jax.vmap(apply, (None, 0))(params, rows.x)
        named = outputs > 0 if binary else jnp.argmax(outputs, axis=-1)
        return 100 * losses.masked_mean(named == rows.y, mask)

    return jax.lax.map(one, (params, rows, mask))


def _finite(run: rounds.Run, training, tables) -> tuple[jax.Array, jax.Array]:
    """Whether the loss of each round is, zero before it, and the model."""
    del training, tables
    leaves = jax.tree.leaves(run.server.params)
    whole = [jnp.isfinite(leaf).all() for leaf in leaves]
    return jnp.isfinite(run.loss), jnp.stack(whole).all()


def _check(
    losses_: np.ndarray, models: np.ndarray, done: int, problem: Problem
) -> None:
    """Of finite losses `[seeds, R]`, and models, whose loss is yet to come."""
    bad = ~losses_.all(axis=0)
    if bad.any() or not models.all():
        first = int(np.argmax(bad)) if bad.any() else done - 1
        bound = problem.bound_defense
        other = "" if bound is None else f", or another defense than {bound.spec}"
        raise Diverged(
            f"training diverged: the loss is not finite in round {first} "
            f"with --learning_rate={problem.learning_rate:g}; try a smaller one{other}"
        )

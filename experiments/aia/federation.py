"""The compiled rounds of a run, and the loss of its models.

Everything has a leading axis over seeds; the whole run is one program vmapped over it.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from experiments.aia.clients import Clients
from experiments.aia.problem import Problem, defense_of, local_update
from fljax import losses, parallel, rounds
from fljax.driver.stage_cache import States
from fljax.types import Key, Params, Rows


class Diverged(ArithmeticError):
    """Training produced a loss that is not finite."""


def train(
    problem: Problem,
    clients: Clients,
    keys: Key,
    *,
    chunk: int,
    progress: Callable[[int], None],
    states: States | None = None,
    record_dtype: str | None = None,
) -> rounds.Run:
    """Runs all rounds of all seeds in one compiled program, `chunk` rounds a call.

    Args:
      problem: from `pose`.
      clients: from `clients.gather`.
      keys: `[seeds]`.
      chunk: rounds between two looks at the loss.
      progress: called with the number of rounds done.
      states: where an earlier call left its state, and this one does.
      record_dtype: of the messages that are kept.

    Returns:
      The finished `Run` of NumPy arrays `[seeds, ...]`.

    Raises:
      Diverged: as soon as a loss is not finite.
    """
    key_init, key = jax.vmap(_streams)(keys)
    begun, run = 0, _start(problem, key_init, record_dtype)
    if states is not None and (found := states.latest(run)) is not None:
        begun, run = found
    key, run, rows, schedule = _place(problem, clients, key, run)
    advance = functools.partial(_advance, problem)
    axes = (0, 0, rounds.AXES, 0, problem.axes, None)
    step = jax.jit(jax.vmap(advance, axes, rounds.AXES), donate_argnums=2)
    seeds, num_rounds = np.arange(len(keys)), problem.schedule.num_rounds
    for done in [*range(chunk, num_rounds, chunk), num_rounds]:
        if done > begun:
            run = step(seeds, key, run, rows, schedule, jnp.int32(done))
            _check_finite(run, done, problem.learning_rate)
            if states is not None and done < num_rounds:
                states.reached(done, lambda now=run: now)
        progress(done)
    found = parallel.fetch(run)  # attacks place what they need where they need it
    if states is not None:
        states.reached(num_rounds, lambda: found)
    return found


def train_one(
    problem: Problem, seed: jax.Array, key: Key, rows: Rows, schedule
) -> Params:
    """Final model of the run that `train` makes of one seed; traceable.

    Args:
      problem: from `pose`.
      seed: [] position of the seed.
      key: [] the seed's.
      rows: the seed's.
      schedule: the seed's.
    """
    key_init, key_train = _streams(key)
    params = problem.model.init(key_init)
    run = rounds.start(params, schedule, problem.server_optimiser)
    stop = problem.schedule.num_rounds
    run = _advance(problem, seed, key_train, run, rows, schedule, stop)
    return run.server.params


def loss_curve(
    problem: Problem, params: Params, rows: Rows, mask: np.ndarray
) -> np.ndarray:
    """Mean loss `[seeds, R]` of models `[seeds, R, ...]` on `rows [seeds, N]`."""

    def curve(args):
        params, rows, mask = args
        return jax.lax.map(lambda p: mean_loss(problem, p, rows, mask), params)

    return np.asarray(jax.jit(lambda *a: jax.lax.map(curve, a))(params, rows, mask))


def mean_loss(problem: Problem, params: Params, rows: Rows, mask) -> jax.Array:
    """Mean loss `[]` of one model on `rows [N]` where `mask`; traceable."""
    values = jax.vmap(problem.loss_fn, (None, 0, 0))(params, rows.x, rows.y)
    return losses.masked_mean(values, mask)


def _advance(problem: Problem, seed, key, run, rows, schedule, stop) -> rounds.Run:
    return rounds.advance(
        key, run, rows, schedule, stop, local=local_update(problem, seed),
        server_optimiser=problem.server_optimiser,
        receive=defense_of(problem, seed).receive,
    )  # fmt: skip


def _streams(key) -> tuple[Key, Key]:
    """Keys of the initial model and of the training."""
    return jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)


def _start(problem: Problem, keys: Key, record_dtype: str | None) -> rounds.Run:
    begin = jax.vmap(
        lambda key, schedule: rounds.start(
            problem.model.init(key), schedule, problem.server_optimiser, record_dtype
        ),
        (0, problem.axes),
        rounds.AXES,
    )
    return jax.jit(begin)(keys, problem.schedule)


def _place(problem: Problem, clients: Clients, keys: Key, run: rounds.Run):
    """Arguments of the compiled rounds, spread over the devices where that pays.

    Seeds never talk to each other, so they are spread wherever they divide evenly. The
    lanes of one seed exchange their models every round, which gains nothing on one
    machine's cores.
    """
    schedule, rows, every = problem.schedule, clients.rows, parallel.mesh()
    if len(keys) % every.size == 0:
        schedule = parallel.place(schedule, every, problem.axes)
        keys, rows = parallel.place((keys, rows), every, 0)
        axes = jax.tree.broadcast(rounds.AXES, run, is_leaf=lambda leaf: leaf is None)
        run = parallel.place(run, every, axes)
    else:
        keys, run, rows, schedule = parallel.place(
            (keys, run, rows, schedule), parallel.mesh(1)
        )
    return keys, run, rows, schedule


def _check_finite(run: rounds.Run, done: int, rate: float) -> None:
    """The loss of each round, and of the last one, which has none yet, the model."""
    bad = ~np.isfinite(parallel.fetch(run.loss)[:, :done]).all(axis=0)
    leaves = jax.tree.leaves(run.server.params)
    broken = not all(bool(jnp.isfinite(leaf).all()) for leaf in leaves)
    if bad.any() or broken:
        first = int(np.argmax(bad)) if bad.any() else done - 1
        raise Diverged(
            f"training diverged: the loss is not finite in round {first} "
            f"with --learning_rate={rate:g}; try a smaller one"
        )

"""From clients to a training: model, schedule, and the compiled rounds.

Everything has a leading axis over seeds; the whole run is one program vmapped over it.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.clients import Clients
from experiments.settings import ModelConfig, TrainConfig
from fljax import local, losses, models, parallel, participation, rounds, stacking
from fljax import schedule as schedule_lib
from fljax.types import Key, Model, Params, Rows


class Diverged(ArithmeticError):
    """Training produced a loss that is not finite."""


class Problem(NamedTuple):
    """What is trained and how.

    Attributes:
      model: the model.
      loss_fn: loss of one example.
      local: the clients' algorithm.
      server_optimiser: optax transformation.
      schedule: joined over seeds.
      axes: `in_axes` of the schedule.
      learning_rate: of the clients, for messages to the user.
    """

    model: Model
    loss_fn: losses.LossFn
    local: local.LocalUpdate
    server_optimiser: optax.GradientTransformation
    schedule: schedule_lib.Schedule
    axes: schedule_lib.Schedule
    learning_rate: float


def pose(
    clients: Clients,
    model: ModelConfig,
    train: TrainConfig,
    seeds: Sequence[int],
    record_rounds: Sequence[int] | None = None,
) -> Problem:
    """Builds model, algorithm and schedule.

    Args:
      clients: from `clients.gather`.
      model: which model.
      train: how it is trained.
      seeds: one run each.
      record_rounds: rounds that the transcript keeps; None keeps all.
    """
    built = _model(clients, model)
    element_loss = {
        "regression": losses.squared,
        "binary": losses.logistic,
        "multiclass": losses.cross_entropy,
    }[clients.datasets[0].table.task]
    loss_fn = losses.example_loss(built.apply, element_loss)
    # FedSGD is one full-batch step of rate 1; the server then takes the real step.
    one_step = train.algorithm == "fed_sgd"
    client_rate = 1.0 if one_step else train.learning_rate
    server_rate = train.server_learning_rate * (train.learning_rate if one_step else 1)
    client_name = "sgd" if one_step else train.client_optimiser
    proximal = train.proximal if train.algorithm == "fed_prox" else None
    schedules = [
        _schedule(sizes, train, seed, record_rounds)
        for sizes, seed in zip(clients.sizes, seeds, strict=True)
    ]
    schedule, axes = stacking.stack(schedules)
    return Problem(
        model=built,
        loss_fn=loss_fn,
        local=local.sgd(
            loss_fn, _optimiser(client_name, client_rate), proximal=proximal
        ),
        server_optimiser=_optimiser(train.server_optimiser, server_rate),
        schedule=schedule,
        axes=axes,
        learning_rate=train.learning_rate,
    )


def train(
    problem: Problem,
    clients: Clients,
    keys: Key,
    *,
    chunk: int,
    progress: Callable[[int], None],
) -> rounds.Run:
    """Runs all rounds of all seeds in one compiled program, `chunk` rounds a call.

    Args:
      problem: from `pose`.
      clients: from `clients.gather`.
      keys: `[seeds]`.
      chunk: rounds between two looks at the loss.
      progress: called with the number of rounds done.

    Returns:
      The finished `Run` of NumPy arrays `[seeds, ...]`.

    Raises:
      Diverged: as soon as a loss is not finite.
    """
    key, run, rows, schedule = _place(problem, clients, keys)
    advance = functools.partial(
        rounds.advance, local=problem.local, server_optimiser=problem.server_optimiser
    )
    step = jax.jit(jax.vmap(advance, (0, 0, 0, problem.axes, None)), donate_argnums=1)
    num_rounds = problem.schedule.num_rounds
    for done in [*range(chunk, num_rounds, chunk), num_rounds]:
        run = step(key, run, rows, schedule, jnp.int32(done))
        _check_finite(run, done, problem.learning_rate)
        progress(done)
    return jax.device_get(run)  # attacks place what they need where they need it


def loss_curve(
    problem: Problem, params: Params, rows: Rows, mask: np.ndarray
) -> np.ndarray:
    """Mean loss `[seeds, R]` of models `[seeds, R, ...]` on `rows [seeds, N]`."""

    def one(params, rows, mask):
        values = jax.vmap(problem.loss_fn, (None, 0, 0))(params, rows.x, rows.y)
        return losses.masked_mean(values, mask)

    def curve(args):
        params, rows, mask = args
        return jax.lax.map(lambda p: one(p, rows, mask), params)

    return np.asarray(jax.jit(lambda *a: jax.lax.map(curve, a))(params, rows, mask))


def _model(clients: Clients, config: ModelConfig) -> Model:
    dataset = clients.datasets[0]
    outputs = 1
    if dataset.table.task == "multiclass":
        outputs = int(dataset.table.frame[dataset.table.target].max()) + 1
    return models.mlp(
        dataset.num_numeric,
        clients.rows.x.codes.shape[-1],
        hidden=() if config.name == "linear" else config.hidden,
        outputs=outputs,
        num_onehot=dataset.num_onehot,
        initialisation=config.initialisation,
    )


def _schedule(sizes, train: TrainConfig, seed: int, record_rounds):
    rng = np.random.default_rng([seed, 2])
    chosen = None
    if train.participation != "all":
        draw = getattr(participation, train.participation)
        chosen = draw(rng, len(sizes), train.num_rounds, train.fraction)
    one_step = train.algorithm == "fed_sgd"
    return schedule_lib.build(
        sizes,
        num_rounds=train.num_rounds,
        batch_size=None if one_step else train.batch_size,
        participants=chosen,
        epochs=1 if one_step else train.local_epochs,
        steps=None if one_step else train.local_steps,
        lanes=train.lanes,
        weights=train.weights,
        shuffle=train.shuffle and not one_step,
        record_rounds=record_rounds,
    )


def _place(problem: Problem, clients: Clients, keys: Key):
    """Arguments of the compiled rounds, spread over the devices where that pays.

    Seeds never talk to each other, so they are spread wherever they divide evenly. The
    lanes of one seed exchange their models every round, which gains nothing on one
    machine's cores.
    """
    key_init, key_train = (
        jax.vmap(jax.random.fold_in, (0, None))(keys, purpose) for purpose in (0, 1)
    )
    begin = jax.vmap(
        lambda key, schedule: rounds.start(
            problem.model.init(key), schedule, problem.server_optimiser
        ),
        (0, problem.axes),
    )
    schedule = problem.schedule
    run, rows = jax.jit(begin)(key_init, schedule), clients.rows
    every = parallel.mesh()
    if len(keys) % every.size == 0:
        schedule = parallel.place(schedule, every, problem.axes)
        key_train, run, rows = parallel.place((key_train, run, rows), every, 0)
    else:
        key_train, run, rows, schedule = parallel.place(
            (key_train, run, rows, schedule), parallel.mesh(1)
        )
    return key_train, run, rows, schedule


def _optimiser(name: str, rate: float) -> optax.GradientTransformation:
    match name:
        case "sgd":
            return optax.sgd(rate)
        case "momentum":
            return optax.sgd(rate, momentum=0.9)
        case "adam":
            return optax.adam(rate)
    raise ValueError(f"no optimiser {name!r}")


def _check_finite(run: rounds.Run, done: int, rate: float) -> None:
    """The loss of each round, and of the last one, which has none yet, the model."""
    bad = ~np.isfinite(np.asarray(run.loss)[:, :done]).all(axis=0)
    leaves = jax.tree.leaves(run.server.params)
    broken = not all(bool(jnp.isfinite(leaf).all()) for leaf in leaves)
    if bad.any() or broken:
        first = int(np.argmax(bad)) if bad.any() else done - 1
        raise Diverged(
            f"training diverged: the loss is not finite in round {first} "
            f"with --learning_rate={rate:g}; try a smaller one"
        )

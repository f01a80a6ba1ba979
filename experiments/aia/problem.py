"""What a run trains and how: model, clients' algorithm and schedule, over all seeds."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.aia.clients import Clients
from experiments.aia.defense_config import BoundDefense
from experiments.aia.settings import ModelConfig, TrainConfig
from fljax import local, losses, models, participation, stacking
from fljax import schedule as schedule_lib
from fljax.types import Defense, Model


class Plan(NamedTuple):
    """A defense before it is known who trains when.

    Attributes:
      poisson: whether its batches must be Poisson samples.
      shield: `(schedule joined over seeds, model, loss of one example) -> BoundDefense`.
    """

    poisson: bool
    shield: Callable[[schedule_lib.Schedule, Model, losses.LossFn], BoundDefense]


class Pace(NamedTuple):
    """How far a client trains in a round, as `schedule.build` is told.

    Attributes:
      batch_size: rows in a mini-batch; None takes all at once.
      epochs: local epochs.
      steps: local steps in place of epochs, or None.
    """

    batch_size: int | None
    epochs: int
    steps: int | None


class Problem(NamedTuple):
    """What is trained and how.

    Attributes:
      model: the model.
      loss_fn: loss of one example.
      client_optimiser: optax transformation.
      proximal: mu of FedProx, or None.
      server_optimiser: optax transformation.
      schedule: joined over seeds.
      axes: `in_axes` of the schedule.
      learning_rate: of the clients, for messages to the user.
      shield: the clients' defense, or None.
    """

    model: Model
    loss_fn: losses.LossFn
    client_optimiser: optax.GradientTransformation
    proximal: float | None
    server_optimiser: optax.GradientTransformation
    schedule: schedule_lib.Schedule
    axes: schedule_lib.Schedule
    learning_rate: float
    shield: BoundDefense | None = None


def local_update(
    problem: Problem,
    seed: jax.Array | int,
    optimiser: optax.GradientTransformation | None = None,
) -> local.LocalUpdate:
    """The clients' algorithm in the run of one seed, with its defense.

    Args:
      problem: from `pose`.
      seed: [] position of the seed; may be traced.
      optimiser: in place of that of the training, with the gradient that it has there
        and without its proximal term.
    """
    used = defense_of(problem, seed)
    own = optimiser is None
    return local.sgd(
        problem.loss_fn,
        problem.client_optimiser if own else optimiser,
        proximal=problem.proximal if own else None,
        gradient=used.gradient,
        encode=used.encode,
    )


def defense_of(problem: Problem, seed: jax.Array | int) -> Defense:
    """The defense in the run of one seed, which may be traced; empty without one."""
    if problem.shield is None:
        return Defense()
    numbers = jax.tree.map(
        lambda leaf: jnp.asarray(leaf, jnp.float32)[seed], problem.shield.numbers
    )
    return problem.shield.build(numbers)


def pace(train: TrainConfig, epochs: int | None = None) -> Pace:
    """How far a client trains in a round; FedSGD is one step on all her rows.

    Args:
      train: how clients train.
      epochs: so many local epochs in place of what that says.
    """
    one_step = train.algorithm == "fed_sgd"
    batch_size = None if one_step else train.batch_size
    if epochs is not None or one_step:
        return Pace(batch_size, epochs or 1, None)
    return Pace(batch_size, train.local_epochs, train.local_steps)


def pose(
    clients: Clients,
    model: ModelConfig,
    train: TrainConfig,
    seeds: Sequence[int],
    record_rounds: Sequence[int] | None = None,
    most_clients: int | None = None,
    defense: Plan | None = None,
) -> Problem:
    """Builds model, algorithm and schedule.

    Args:
      clients: from `clients.gather`.
      model: which model.
      train: how it is trained.
      seeds: one run each.
      record_rounds: rounds that the transcript keeps; None keeps all.
      most_clients: clients that it keeps, drawn for each seed; None keeps all.
      defense: from `defense.maker`; None for none.
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
    poisson = defense is not None and defense.poisson
    schedules = [
        _schedule(
            sizes,
            train,
            seed,
            poisson=poisson,
            record_rounds=record_rounds,
            record_clients=_drawn(len(sizes), most_clients, seed),
        )
        for sizes, seed in zip(clients.sizes, seeds, strict=True)
    ]
    schedule, axes = stacking.stack(schedules)
    return Problem(
        model=built,
        loss_fn=loss_fn,
        client_optimiser=_optimiser(client_name, client_rate),
        proximal=train.proximal if train.algorithm == "fed_prox" else None,
        server_optimiser=_optimiser(train.server_optimiser, server_rate),
        schedule=schedule,
        axes=axes,
        learning_rate=train.learning_rate,
        shield=None if defense is None else defense.shield(schedule, built, loss_fn),
    )


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


def _drawn(count: int, most: int | None, seed: int) -> np.ndarray | None:
    """So many of all clients, or None where that is everyone."""
    if most is None or most >= count:
        return None
    return np.random.default_rng([seed, 3]).choice(count, most, replace=False)


def _schedule(sizes, train: TrainConfig, seed: int, **kept):
    rng = np.random.default_rng([seed, 2])
    chosen = None
    if train.participation != "all":
        draw = getattr(participation, train.participation)
        chosen = draw(rng, len(sizes), train.num_rounds, train.fraction)
    return schedule_lib.build(
        sizes,
        num_rounds=train.num_rounds,
        **pace(train)._asdict(),
        participants=chosen,
        lanes=train.lanes,
        weights=train.weights,
        shuffle=train.shuffle and train.algorithm != "fed_sgd",
        **kept,
    )


def _optimiser(name: str, rate: float) -> optax.GradientTransformation:
    match name:
        case "sgd":
            return optax.sgd(rate)
        case "momentum":
            return optax.sgd(rate, momentum=0.9)
        case "adam":
            return optax.adam(rate)
    raise ValueError(f"no optimiser {name!r}")

"""What a run trains and how: model, clients' algorithm and schedule, over all seeds."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.tabular import schedules
from experiments.tabular.clients import Clients
from experiments.tabular.defense_config import BoundDefense, Builder
from experiments.tabular.settings import ModelConfig, TrainConfig
from fljax import local, losses, models
from fljax import schedule as schedule_lib
from fljax.driver.config import ConfigError
from fljax.dropout import MeanLoss
from fljax.federation import FedAvg, Tables, Training
from fljax.types import Defense, Model, PyTree

_DROPOUT = 1  # seed of what clients drop, which no attack draws


class Plan(NamedTuple):
    """A defense before it is known who trains when.

    Attributes:
      poisson: whether its batches must be Poisson samples.
      bound: `(schedule joined over seeds, model, loss of one example) -> BoundDefense`.
      within: `(bound, position of a seed, who is drawn [T, C]) -> [T, C]`, without
        those who have spent their budget; None where nobody stops.
    """

    poisson: bool
    bound: Callable[[schedule_lib.Schedule, Model, losses.LossFn], BoundDefense]
    within: Callable[[BoundDefense, int, np.ndarray], np.ndarray] | None = None


class Rates(NamedTuple):
    """Learning rates: the clients' and the server's."""

    client: float
    server: float


@dataclasses.dataclass(frozen=True)
class Optimiser:
    """Makes an optimiser from a training's numbers.

    Attributes:
      name: which.
      of: whose rate it takes.
    """

    name: str
    of: Literal["client", "server"]

    def __call__(self, numbers: PyTree) -> optax.GradientTransformation:
        """The optimiser; the numbers may be traced."""
        rates, _ = numbers
        rate = getattr(rates, self.of)
        match self.name:
            case "sgd":
                return optax.sgd(rate)
            case "momentum":
                return optax.sgd(rate, momentum=0.9)
            case "adam":
                return optax.adam(rate)
        raise ValueError(f"no optimiser {self.name!r}")


class Problem(NamedTuple):
    """What is trained and how.

    Attributes:
      method: the algorithm, with the numbers to come.
      tables: rows and schedule of every seed.
      seeds: one training each.
      rates: learning rates.
      learning_rate: of the clients, for messages to the user.
      bound_defense: the clients' defense, or None.
      trial: trainings of another one share the initial model and nothing else that they
        draw; None: those of one seed draw alike, whatever the flags.
      start: seed of the initial model of all trainings; None: each has its own.
    """

    method: FedAvg
    tables: Tables
    seeds: tuple[int, ...]
    rates: Rates
    learning_rate: float
    bound_defense: BoundDefense | None = None
    trial: int | None = None
    start: int | None = None

    @property
    def model(self) -> Model:
        return self.method.model

    @property
    def loss_fn(self) -> losses.LossFn:
        """Loss of one example."""
        trained = self.method.loss_fn
        return trained.loss if isinstance(trained, MeanLoss) else trained

    @property
    def schedule(self) -> schedule_lib.Schedule:
        """Joined over seeds."""
        return self.tables.schedule

    @property
    def trainings(self) -> Training:
        """One of each seed."""
        count = len(self.seeds)
        index = np.arange(count, dtype=np.int32)
        rates = Rates(*(np.full(count, rate, np.float32) for rate in self.rates))
        defense = () if self.bound_defense is None else self.bound_defense.numbers
        defense = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), defense)
        seeds = np.asarray(self.seeds, np.uint32)
        trial = None if self.trial is None else np.full(count, self.trial, np.int32)
        start = None if trial is None else seeds
        if self.start is not None:
            start = np.full(count, self.start, np.uint32)
        return Training(index, index, seeds, trial, (rates, defense), start)


def local_update(
    problem: Problem,
    seed: jax.Array | int,
    optimiser: optax.GradientTransformation | None = None,
) -> local.LocalUpdate:
    """The clients' algorithm in the run of one seed, with its defense.

    Args:
      problem: from `build`.
      seed: [] position of the seed; may be traced.
      optimiser: in place of that of the training, with the gradient that it has there,
        without its proximal term, and kept from no round to the next.
    """
    method = problem.method
    if optimiser is not None:
        method = dataclasses.replace(
            method, optimiser=lambda _: optimiser, proximal=None, keeps=False
        )
    return method.local(_numbers(problem, seed))


def _numbers(problem: Problem, seed) -> PyTree:
    numbers = problem.trainings.numbers
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[seed], numbers)


def build(
    clients: Clients,
    model: ModelConfig,
    train: TrainConfig,
    seeds: Sequence[int],
    record_rounds: Sequence[int] | None = None,
    most_clients: int | None = None,
    defense: Plan | None = None,
    trial: int | None = None,
) -> Problem:
    """Builds model, algorithm and schedule.

    Args:
      clients: from `clients.deal`.
      model: which model.
      train: how it is trained.
      seeds: one run each.
      record_rounds: rounds that the transcript keeps; None keeps all.
      most_clients: clients that it keeps, drawn for each seed; None keeps all.
      defense: from `defense.maker`; None for none.
      trial: of the `Problem`.

    Raises:
      ConfigError: the model has nothing that could be dropped.
    """
    built = _model(clients, model)
    element_loss = losses.of_task(clients.datasets[0].table.task)
    loss_fn = losses.example_loss(built.apply, element_loss)
    if train.dropout:
        if model.name == "linear" or not model.hidden:
            raise ConfigError("--dropout: expected a model with hidden units, got none")
        loss_fn = MeanLoss(loss_fn, train.dropout, draws=1, seed=_DROPOUT)
    # FedSGD is one full-batch step of rate 1; the server then takes the real step.
    one_step = train.algorithm == "fed_sgd"
    client_rate = 1.0 if one_step else train.learning_rate
    server_rate = train.server_learning_rate * (train.learning_rate if one_step else 1)
    client_name = "sgd" if one_step else train.client_optimiser
    plan = functools.partial(
        schedules.build,
        clients.sizes,
        train,
        seeds,
        poisson=defense is not None and defense.poisson,
        record_rounds=record_rounds,
        most_clients=most_clients,
        trial=trial,
    )
    schedule, bound = plan(), None
    if defense is not None:
        bound = defense.bound(schedule, built, loss_fn)
        if defense.within is not None:
            schedule = plan(keep=functools.partial(defense.within, bound))
            bound = defense.bound(schedule, built, loss_fn)
    method = FedAvg(
        model=built,
        loss_fn=loss_fn,
        optimiser=Optimiser(client_name, "client"),
        server_optimiser=Optimiser(train.server_optimiser, "server"),
        defense=None if bound is None else Defended(bound.builder),
        proximal=train.proximal if train.algorithm == "fed_prox" else None,
        decay=1.0 if one_step else train.learning_rate_decay,
        keeps=not one_step and train.optimiser_state == "kept",
    )
    return Problem(
        method,
        Tables(clients.rows, schedule),
        tuple(seeds),
        Rates(client_rate, server_rate),
        train.learning_rate,
        bound,
        trial,
    )


class Defended(NamedTuple):
    """The defense of a training, from the second part of its numbers."""

    builder: Builder

    def __call__(self, numbers: PyTree) -> Defense:
        return self.builder(numbers[1])


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

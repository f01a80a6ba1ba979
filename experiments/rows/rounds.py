"""A training in which every client takes one step over all its rows in each round, and what
the server has of one of them, or of the sum over several: the truth."""

import jax
import numpy as np
import optax

from experiments.rows import batches
from experiments.rows.batches import Batch, Population
from experiments.rows.settings import RunConfig
from experiments.rows.views import Rounds
from fljax import federation
from fljax.driver.config import ConfigError
from fljax.federation import FedAvg, Federation, Tables, Training
from fljax.transcript import sums, views
from fljax.types import Array, Features, Rows


def check(population: Population, run: RunConfig) -> None:
    """Refuses trainings that cannot be.

    Raises:
      ConfigError: the target is a class, or there are too few rows.
    """
    if population.classes:
        raise ConfigError(
            f"--num_rounds: expected a target that is a number, got {population.classes} "
            "classes"
        )
    most = run.sum_of * (len(population.raw) // run.clients)
    if not most:
        raise ConfigError(
            f"--clients: expected at most {len(population.raw)}, got {run.clients}"
        )
    for size in run.batch_sizes:
        if size > most:
            raise ConfigError(
                f"--batch_sizes: expected at most {most} rows of {run.sum_of} of "
                f"{run.clients} clients, got {size}"
            )


def draw(
    population: Population, run: RunConfig, size: int, number: int, seed: int
) -> Batch:
    """Rows of all clients, one after another; the first of them are of one message."""
    every = size // run.sum_of * run.clients
    return batches.draw(population, every, number, seed)


def messages(
    population: Population, run: RunConfig, every: Batch, number: int, seed: int
) -> Rounds:
    """Messages of the first client, or sums of the first ones', in a training of all.

    Raises:
      ConfigError: the training diverged.
    """
    size = run.sum_of * (len(every.y) // run.clients)
    x = population.known.schema.encode(every.raw)
    rows = Rows(Features(x, np.zeros((len(x), 0), np.int32)), np.float32(every.y))
    tables = Tables.of(
        rows,
        np.split(np.arange(len(x)), run.clients),
        num_rounds=run.num_rounds,
        batch_size=None,
        record_rounds=np.unique(
            np.linspace(0, run.num_rounds - 1, run.messages).round().astype(int)
        ).tolist(),
        record_clients=range(run.sum_of),
    )
    method = FedAvg(
        model=population.model, loss_fn=population.known.loss_fn, optimiser=_sgd
    )
    own = np.random.SeedSequence([seed, size, number]).generate_state(1)[0]
    training = Training.of_seeds(int(own), numbers=np.float32([run.learning_rate]))
    trained = federation.train(Federation(method, tables), training).of(0)
    if not np.isfinite(trained.loss).all():
        raise ConfigError(
            f"--learning_rate: training diverged with {run.learning_rate:g}"
        )
    ids, alike = np.arange(run.clients), np.ones(run.clients)
    seen = sums.add_up(trained.transcript, sums.Server(ids, alike))
    seen = views.exchange(seen, 0)
    rate = np.float32(run.learning_rate)
    message = jax.tree.map(lambda leaf: leaf / rate, seen.delta)
    targets = float(population.y.min()), float(population.y.max())
    return Rounds(seen.params, message, size, targets, number)


def _sgd(rate: Array) -> optax.GradientTransformation:
    return optax.sgd(rate)

"""A trained federation as its adversary sees it: every message of every client."""

from typing import NamedTuple

import jax
import numpy as np

from experiments.benchmarks import federations, trainings
from fljax import federation, losses, schedule, transcript
from fljax.federation import Federation
from fljax.types import Exchange, Known


class Victims(NamedTuple):
    """What the adversary has of each client: leaves `[C, ...]`."""

    exchange: Exchange
    known: Known


class Scene(NamedTuple):
    """The federation attacked.

    Attributes:
      loss_fn: loss of one example.
      victims: all clients, who have equally many rows.
      truth: `[C, n]` candidate of the sensitive column, for scoring only.
    """

    loss_fn: losses.LossFn
    victims: Victims
    truth: np.ndarray


def train(shape: federations.Shape, num_rounds: int, seed: int) -> Scene:
    """Trains with the library on generated rows and keeps all messages.

    Args:
      shape: with clients of equal size.
      num_rounds: of training.
      seed: of the rows, the model and the shuffles.
    """
    parts = federations.split(federations.generate(shape, seed), shape.sizes)
    model = federations.model(shape)
    method = trainings.method(model)

    def plan(_, sizes):
        batch = federations.BATCH_SIZE
        return schedule.build(sizes, num_rounds=num_rounds, batch_size=batch)

    whole = Federation(method, federation.tables([parts], plan))
    begin = jax.jit(model.init)(jax.random.key(seed))
    run = federation.train(whole, trainings.seeds(1, begin)).run
    seen = jax.tree.map(lambda leaf: leaf[0], run.transcript)
    clients = range(len(shape.sizes))
    victims = Victims(
        _stack([transcript.exchange(seen, client) for client in clients]),
        _stack([federations.known(part) for part in parts]),
    )
    return Scene(
        method.loss_fn, victims, np.stack([federations.truth(p) for p in parts])
    )


def _stack(trees):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)

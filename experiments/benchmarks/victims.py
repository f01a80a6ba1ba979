"""A trained federation as its adversary sees it: every message of every client."""

from typing import NamedTuple

import jax
import numpy as np
import optax

from experiments.benchmarks import federations
from fljax import local, losses, rounds, transcript
from fljax import schedule as schedule_lib
from fljax.types import Exchange, Key, Known


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


def train(key: Key, shape: federations.Shape, num_rounds: int, seed: int) -> Scene:
    """Trains with the library on generated rows and keeps all messages.

    Args:
      key: of model and shuffles; consumed.
      shape: with clients of equal size.
      num_rounds: of training.
      seed: of the rows.
    """
    rows = federations.generate(shape, seed)
    model = federations.model(shape)
    loss_fn = losses.example_loss(model.apply, losses.squared)
    update = local.sgd(loss_fn, optax.sgd(federations.LEARNING_RATE))
    server = optax.sgd(1.0)
    schedule = schedule_lib.build(
        shape.sizes, num_rounds=num_rounds, batch_size=federations.BATCH_SIZE
    )

    @jax.jit
    def trained(key, rows, schedule):
        key_init, key_train = jax.random.split(key)
        begin = rounds.start(model.init(key_init), schedule, server)
        return rounds.advance(
            key_train, begin, rows, schedule, num_rounds, local=update,
            server_optimiser=server,
        )  # fmt: skip

    seen = trained(key, rows, schedule).transcript
    clients = range(len(shape.sizes))
    parts = federations.split(rows, shape.sizes)
    victims = Victims(
        _stack([transcript.exchange(seen, client) for client in clients]),
        _stack([federations.known(part) for part in parts]),
    )
    return Scene(loss_fn, victims, np.stack([federations.truth(p) for p in parts]))


def _stack(trees):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)

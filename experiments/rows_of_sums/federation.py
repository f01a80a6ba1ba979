"""The clients, their rows, and what a server under secure aggregation gets: the truth.

A round goes on where a client's last one ended in its pass over the rows, as in SRATTA's
own code (Marchand et al. 2023): with few steps a round, every row is in turn. The house's
rounds (`fljax.federation`) each begin a pass of their own.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.rows_of_sums.settings import Order, RunConfig
from fljax import data, local, losses
from fljax.attacks.rows.clients import Round
from fljax.driver.config import ConfigError
from fljax.models import mlp
from fljax.types import Batch, Features, Model, Params, Sender

_NOBODY = Sender(np.int32(0), np.int32(0))


class Owned(NamedTuple):
    """Rows of all clients, `[C * n]` of them, client by client.

    Attributes:
      x: `[C * n, D]` float32 in [0, 1].
      y: `[C * n]` int32.
      white: largest value of a pixel.
      classes: of the target.
    """

    x: np.ndarray
    y: np.ndarray
    white: int
    classes: int


def draw(images: data.Images, run: RunConfig, seed: int) -> Owned:
    """Deals images, none twice.

    Raises:
      ConfigError: there are too few, or more than a span can hold.
    """
    count, have = run.clients * run.rows, len(images.train.x)
    if count > have:
        raise ConfigError(
            f"--rows: expected at most {have // run.clients}, got {run.rows}"
        )
    chosen = np.random.default_rng([seed, 5]).choice(have, count, replace=False)
    x = np.asarray(images.train.x)[chosen].reshape(count, -1)
    if count >= x.shape[1]:
        raise ConfigError(
            f"--rows: expected fewer rows of all clients than their {x.shape[1]} inputs, "
            f"got {run.clients} x {run.rows}"
        )
    y = np.asarray(images.train.y)[chosen].astype(np.int32)
    return Owned(
        np.float32(x) / np.float32(images.white), y, images.white, len(images.classes)
    )


def rounds(
    owned: Owned, run: RunConfig, order: Order, seed: int, number: int
) -> list[Round]:
    """What a server has of one training: its model and the mean update, every round."""
    model = mlp(owned.x.shape[1], hidden=(run.hidden,), outputs=owned.classes)
    key = jax.random.fold_in(jax.random.key(seed), number)
    params = model.init(key)
    draws = np.random.default_rng([seed, number, 6])
    clients = [_batches(run, order, draws) for _ in range(run.clients)]
    found = []
    for _ in range(run.num_rounds):
        chosen = [[next(each) for _ in range(run.local_steps)] for each in clients]
        rows = np.array(chosen) + run.rows * np.arange(run.clients)[:, None, None]
        mask = np.array(chosen) >= 0
        rows = np.where(mask, rows, 0)
        sent = jax.device_get(params)
        x = Features(owned.x[rows], np.zeros((*rows.shape, 0), np.int32))
        batches = Batch(x, owned.y[rows], mask)
        params, mean = _round(model, params, batches, run.learning_rate)
        second = sent["Dense_0"]["kernel"]
        found.append(Round(_first(jax.device_get(mean)), _first(sent), second))
    return found


def _first(tree: Params) -> np.ndarray:
    """The first layer `[1 + D, H]`, the bias first."""
    layer = tree["TabularDense_0"]
    return np.concatenate([layer["bias"][None], layer["kernel"]])


def _batches(run: RunConfig, order: Order, draws) -> Iterator[np.ndarray]:
    """A client's batches, epoch after epoch; the last of one is filled up with -1."""
    while True:
        rows = (
            draws.permutation(run.rows) if order == "shuffled" else np.arange(run.rows)
        )
        for start in range(0, run.rows, run.batch_size):
            part = rows[start : start + run.batch_size]
            yield np.pad(part, (0, run.batch_size - len(part)), constant_values=-1)


@functools.partial(jax.jit, static_argnums=0)
def _round(model: Model, params, batches: Batch, rate):
    """The new model and the mean update, of batches, leaves `[C, S, B, ...]`."""
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    update = local.sgd(loss_fn, optax.sgd(rate))
    key = jax.random.key(0)  # draws nothing

    def client(batches):
        def step(carry, batch):
            return update.step(key, carry, params, batch), None

        end, _ = jax.lax.scan(step, update.init(params), batches)
        return update.final(key, end, params, _NOBODY).delta

    mean = jax.tree.map(lambda leaf: -leaf.mean(axis=0), jax.lax.map(client, batches))
    return jax.tree.map(jnp.add, params, mean), mean

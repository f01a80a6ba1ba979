"""Who is attacked: every client's first images, and the network at which she trains.

Clients own the rows that `experiments.fed_cdp` deals them. There clients share rows;
here nobody's image is attacked twice, so that clients count as independent.
"""

from typing import NamedTuple

import jax
import numpy as np

from experiments.fed_cdp import clients, settings
from experiments.gradient_leakage.settings import Config, DataConfig, Network
from fljax import data, losses, models
from fljax.driver.config import ConfigError
from fljax.types import Model, Params

_NETWORK_KEY = 0
_PROBES = 64


class Victims(NamedTuple):
    """The clients; no attack is ever handed one.

    Attributes:
      name: of the data.
      num_classes: K.
      x: `[C, N, h, w, channels]` images in [0, 1].
      y: `[C, N]` int32.
      mean: `[h, w, channels]` mean of other images, which anyone could guess.
      cnn: the network that the federation trains.
      files: what was read.
    """

    name: str
    num_classes: int
    x: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    cnn: Model
    files: tuple[data.FileRecord, ...]


class Victim(NamedTuple):
    """An untrained network.

    Attributes:
      name: `lenet` or `cnn`.
      loss_fn: cross-entropy of one example.
      params: what the clients were sent.
      read: `[h, w, channels]` whether the output depends on a pixel; max-pooling that
        does not divide its input leaves out the last rows and columns.
    """

    name: Network
    loss_fn: losses.ExampleLoss
    params: Params
    read: np.ndarray


def load(told: DataConfig, run: Config) -> Victims:
    """Deals the clients.

    Raises:
      ConfigError: there are too few images for so many clients.
    """
    source = settings.DataConfig(name=told.name, dir=told.dir, subset=told.subset)
    federation = settings.Config(methods=("non_private",))
    trained = settings.complete(settings.Told(source, federation)).run
    task = clients.load(source, trained)
    count = min(run.clients, len(task.train))
    rows, size = clients.deal(task, trained, count, run.seed)
    owned = np.asarray(rows.x).reshape(count, size)
    positions = _first_unused(owned, run)
    x = np.asarray(task.pool)[positions].astype(np.float32) / np.float32(task.white)
    others = np.asarray(task.pool)[task.validation].mean(axis=0) / task.white
    return Victims(
        task.name,
        int(task.labels.max()) + 1,
        x,
        task.labels[positions],
        others.astype(np.float32),
        task.model,
        task.files,
    )


def network(name: Network, victims: Victims, seed: int) -> Victim:
    """An untrained network for these images."""
    shape = victims.x.shape[2:]
    model = victims.cnn
    if name == "lenet":
        model = models.lenet(shape, victims.num_classes)
    key = jax.random.fold_in(jax.random.key(seed), _NETWORK_KEY)
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    params = model.init(key)
    return Victim(name, loss_fn, params, _read(model, params, shape))


def only(victims: Victims, count: int) -> Victims:
    """The first `count` images of every client."""
    return victims._replace(x=victims.x[:, :count], y=victims.y[:, :count])


def _read(model: Model, params: Params, shape: tuple[int, ...]) -> np.ndarray:
    """Which pixels move the output of some image; each maximum has one of them only."""
    images = np.random.default_rng(0).random((_PROBES, *shape), np.float32)
    slopes = jax.vmap(jax.grad(lambda x: model.apply(params, x).sum()))(images)
    return np.asarray(slopes != 0).any(axis=0)


def _first_unused(owned: np.ndarray, run: Config) -> np.ndarray:
    """`[C, N]` of `owned [C, rows]`: of each row the first that no earlier one has."""
    used: set[int] = set()
    chosen = []
    for row in owned:
        mine = [p for p in dict.fromkeys(row.tolist()) if p not in used][: run.images]
        if len(mine) < run.images:
            break
        used.update(mine)
        chosen.append(mine)
    if len(chosen) < run.clients:
        raise ConfigError(
            f"--clients: expected at most {len(chosen)}, who have --images={run.images} "
            f"images each that nobody else has, got {run.clients}"
        )
    return np.array(chosen)

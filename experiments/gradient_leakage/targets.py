"""What everyone knows of the attacked clients: how many images, which model they train.

Their images and labels are in `truth`, which no module of the attack imports.
"""

from typing import NamedTuple

import jax
import numpy as np

from experiments.gradient_leakage import settings
from fljax import data, losses, models
from fljax.attacks.inversion.gaussian import Gaussian
from fljax.types import Model, Params

_NETWORK_KEY = 0
_PROBES = 64


class Targets(NamedTuple):
    """The attacked clients, as an adversary knows them.

    Attributes:
      name: of the data.
      num_clients: C.
      shape: `(N, h, w, channels)` of a client's images.
      num_classes: K.
      mean: `[h, w, channels]` mean of images that no client has.
      public: what those images look like, if the adversary makes use of it.
      cnn: the network that the federation trains.
      files: what was read.
    """

    name: str
    num_clients: int
    shape: tuple[int, int, int, int]
    num_classes: int
    mean: np.ndarray
    public: Gaussian | None
    cnn: Model
    files: tuple[data.FileRecord, ...]


class Network(NamedTuple):
    """An untrained network.

    Attributes:
      name: `lenet` or `cnn`.
      loss_fn: cross-entropy of one example.
      params: what the clients were sent.
      read: `[h, w, channels]` bool, whether the output depends on a pixel; max-pooling
        that does not divide its input leaves out the last rows and columns.
    """

    name: settings.Network
    loss_fn: losses.ExampleLoss
    params: Params
    read: np.ndarray


def network(name: settings.Network, targets: Targets, seed: int) -> Network:
    """An untrained network for these images."""
    shape = targets.shape[1:]
    model = targets.cnn
    if name == "lenet":
        model = models.lenet(shape, targets.num_classes)
    key = jax.random.fold_in(jax.random.key(seed), _NETWORK_KEY)
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    params = model.init(key)
    return Network(name, loss_fn, params, pixels_read(model, params, shape))


def pixels_read(model: Model, params: Params, shape: tuple[int, ...]) -> np.ndarray:
    """`[h, w, channels]` bool, which pixels move the output of some image.

    A maximum moves with one of its inputs only, so that several images are tried.
    """
    images = np.random.default_rng(0).random((_PROBES, *shape), np.float32)
    slope = jax.grad(lambda x: model.apply(params, x).sum())
    slopes = jax.jit(jax.vmap(slope))(images)
    return np.asarray(slopes != 0).any(axis=0)

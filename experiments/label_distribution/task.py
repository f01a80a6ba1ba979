"""What clients train: the model, its loss, and the adversary's rows by label.

The adversary's proxy rows are the data set's training images, the attacked clients' rows
its test images, which stand apart from the task. A data set without test images gives its
validation images to the clients. Images stay the bytes of the files until a batch is looked up.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.label_distribution.settings import Settings
from fljax import data, losses, models
from fljax.attacks.label_distribution import shadow_clients
from fljax.attacks.label_distribution.shadow_clients import Pool
from fljax.driver.config import ConfigError
from fljax.driver.image_flags import load_images
from fljax.types import Features, Model, Params, PyTree


class Task(NamedTuple):
    """A task and the rows that everyone may have.

    Attributes:
      name: of the data.
      model_name: `mlp`, `cnn` or `autoencoder`.
      model: that clients train.
      loss_fn: of one example that was looked up.
      classes: names of the labels, `K` of them.
      look_up: bytes `[..., h, w, channels]` -> inputs of the model.
      proxy: rows that the adversary has.
      bias: path of the last layer's bias; None where no layer names labels.
      files: what was read.
    """

    name: str
    model_name: str
    model: Model
    loss_fn: losses.LossFn
    classes: tuple[str, ...]
    look_up: Callable[[jax.Array], PyTree]
    proxy: Pool
    bias: tuple[str, ...] | None
    files: tuple[data.FileRecord, ...]

    def init(self, seed: int) -> Params:
        """The model of a seed before any training."""
        return jax.jit(self.model.init)(jax.random.fold_in(jax.random.key(seed), 0))


def load(settings: Settings) -> tuple[Task, Pool]:
    """Reads the images and builds the model; the task, and the attacked clients' rows.

    Raises:
      ConfigError: the pools cannot be formed.
    """
    images = load_images(settings.data)
    near, far = [images.train, images.validation], images.test
    if far is None:
        near, far = near[:1], images.validation
    proxy = [np.concatenate(part) for part in zip(*near, strict=True)]
    try:
        mine, theirs = (
            shadow_clients.pool(*part, len(images.classes)) for part in (proxy, far)
        )
    except ValueError as error:
        raise ConfigError(f"--data_name={settings.data.name}: {error}") from None
    model, loss_fn, look_up, bias = _model(settings, images)
    task = Task(
        images.name, settings.run.model, model, loss_fn, images.classes, look_up, mine,
        bias, images.files,
    )  # fmt: skip
    return task, theirs


def _model(settings: Settings, images: data.Images):
    white, labels = images.white, len(images.classes)

    def unit(x):
        return jnp.asarray(x).astype(jnp.float32) / white

    def flat(x):
        pixels = unit(x).reshape(*x.shape[:-3], -1)
        return Features(pixels, jnp.zeros((*x.shape[:-3], 0), jnp.int32))

    def reconstruction(params, x, y):
        del y
        return jnp.mean(jnp.square(model.apply(params, x) - x))

    match settings.run.model:
        case "mlp":
            hidden = settings.run.hidden
            pixels = int(np.prod(images.shape))
            model = models.mlp(pixels, hidden=hidden, outputs=labels)
            last = f"Dense_{len(hidden) - 1}" if hidden else "TabularDense_0"
            loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
            return model, loss_fn, flat, (last, "bias")
        case "cnn":
            small = min(images.shape[:2]) < 10
            model = models.cnn(images.shape, labels, padding=int(small), use_bias=True)
            loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
            return model, loss_fn, unit, ("Dense_0", "bias")
        case _:
            model = models.autoencoder(images.shape)
            return model, reconstruction, unit, None

"""The rows of a Fed-CDP federation: one pool of inputs, clients that point into it.

Clients overlap, so that none holds inputs of its own: `Rows.x` are positions in the
pool, whose images stay bytes until a batch is looked up.

Learning rates are chosen on validation rows and accuracies reported on others: the
publisher's test rows where there are some, else the paper's validation rows are halved.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.fed_cdp.settings import Config, DataConfig
from fljax import data, losses, metrics, models, partition
from fljax.driver.config import ConfigError
from fljax.driver.image_flags import load_images
from fljax.types import Array, Features, Model, PyTree, Rows

_TABLES = {
    "adult": {"features": "all", "sensitive": None},
    "breast_cancer": {},
}
_SPLIT_SEED = 0  # of tables: all seeds share the split, as those of images do


class Task(NamedTuple):
    """A classification task.

    Attributes:
      name: of the data.
      model_name: `cnn` or `mlp`.
      model: to train.
      loss_fn: cross-entropy of one example, whose input has been looked up.
      pool: inputs of all rows, leaves `[N, ...]`.
      white: largest value of a pixel; None for tables.
      labels: `[N]` int32 classes.
      train: positions that clients may hold.
      validation: positions that choose the learning rate.
      test: positions that the accuracy is reported on.
      files: what was read.
    """

    name: str
    model_name: str
    model: Model
    loss_fn: losses.ExampleLoss
    pool: PyTree
    white: int | None
    labels: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    files: tuple[data.FileRecord, ...]

    @property
    def majority(self) -> float:
        """Accuracy of always naming the most frequent class of the test rows."""
        labels = self.labels[self.test]
        return metrics.majority(labels, np.ones(len(labels), bool))


def load(settings: DataConfig, run: Config) -> Task:
    """Reads the data and builds the model."""
    task = _table(settings, run) if settings.name in _TABLES else _images(settings, run)
    if run.eval_rows is not None:
        task = task._replace(validation=task.validation[: run.eval_rows])
    return task


def look_up(pool: PyTree, white: int | None, positions: Array) -> PyTree:
    """Inputs at `positions` of any shape, images as floats from 0 to 1; traceable."""
    x = jax.tree.map(lambda leaf: leaf[positions], pool)
    return x if white is None else x.astype(jnp.float32) / white


def deal(task: Task, run: Config, num_clients: int, seed: int) -> tuple[Rows, int]:
    """Clients' rows, one client after another, and how many each has.

    Raises:
      ConfigError: the partition does not fit the data.
    """
    rng = np.random.default_rng([seed, 1])
    labels, rows = task.labels[task.train], run.rows_per_client
    few = run.classes_per_client
    try:
        match run.partition:
            case "classes":
                parts = partition.class_shards(rng, labels, num_clients, rows, few)
            case "buckets":
                buckets = len(np.unique(labels))
                parts = partition.bucket_shards(
                    rng, labels, num_clients, rows, num_buckets=buckets
                )
            case "few_classes":
                parts = partition.few_classes(rng, labels, num_clients, rows, few)
            case "random":
                parts = partition.resampled(rng, len(labels), num_clients, rows)
            case _:
                parts = partition.copies(len(labels), num_clients)
    except ValueError as error:
        raise ConfigError(f"--partition={run.partition}: {error}") from None
    positions = task.train[np.concatenate(parts)].astype(np.int32)
    return Rows(positions, task.labels[positions]), len(parts[0])


def _images(settings: DataConfig, run: Config) -> Task:
    images = load_images(settings)
    parts = [images.train, images.validation]
    parts += [] if images.test is None else [images.test]
    small = min(images.shape[:2]) < 10
    model = models.cnn(
        images.shape,
        len(images.classes),
        padding=int(small),
        use_bias=run.biases,
    )
    return _task(
        images.name, "cnn", model, np.concatenate([p.x for p in parts]), images.white,
        [p.y for p in parts], images.files,
    )  # fmt: skip


def _table(settings: DataConfig, run: Config) -> Task:
    table = data.load(settings.name, data_dir=settings.dir, **_TABLES[settings.name])
    preset = data.preset(settings.name, "fed_cdp")
    dataset = data.prepare(table, preset, seed=_SPLIT_SEED)
    parts = [dataset.train, dataset.test]
    x = Features(*map(np.concatenate, zip(*[p.x for p in parts], strict=True)))
    labels = [p.y.astype(np.int32) for p in parts]
    model = models.mlp(
        dataset.num_numeric,
        x.codes.shape[1],
        hidden=run.hidden,
        outputs=int(np.concatenate(labels).max()) + 1,
        num_onehot=dataset.num_onehot,
        initialisation="glorot",
        use_bias=run.biases,
    )
    return _task(table.name, "mlp", model, x, None, labels, table.files)


def _task(name, model_name, model, pool, white, labels, files) -> Task:
    ends = np.cumsum([len(part) for part in labels])
    train, validation, *test = np.split(np.arange(ends[-1]), ends[:-1])
    if not test:
        mixed = np.random.default_rng(_SPLIT_SEED).permutation(validation)
        validation, *test = np.split(mixed, [len(mixed) // 2])
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    return Task(
        name, model_name, model, loss_fn, pool, white,
        np.concatenate(labels).astype(np.int32), train, validation, test[0], files,
    )  # fmt: skip

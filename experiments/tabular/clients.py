"""From flags to clients: load, split and encode the data, deal the rows.

Everything gets a leading axis over seeds, whose splits and partitions differ. What the
federation has, what an adversary knows and the truth are three objects.
"""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np

from experiments.tabular import dealing, settings
from experiments.tabular.targets import Targets
from fljax import data
from fljax.attacks.attribute import conceal
from fljax.driver.config import ConfigError
from fljax.driver.naming import named_as_flags
from fljax.types import Features, Known, Rows


class Clients(NamedTuple):
    """Clients and the rows that they train on, `[seeds, ...]`: no attack has this.

    Attributes:
      datasets: encoded data of each seed.
      rows: `Rows` with leaves `[seeds, N, ...]`, padded at the end.
      sizes: `[seeds, C]` rows of each client.
      test: `Rows` `[seeds, M, ...]`, or None.
      test_mask: `[seeds, M]`.
      names: of the clients of each seed, `hospital: Nord` where --partition_kind is
        by_column; empty where clients have none.
    """

    datasets: list[data.Dataset]
    rows: Rows
    sizes: np.ndarray
    test: Rows | None
    test_mask: np.ndarray
    names: tuple[tuple[str, ...], ...] = ()

    def name(self, seed: int, client: int) -> str:
        """What the data call a client, its number where they have no name."""
        return self.names[seed][client] if self.names else str(client)


class Dealt(NamedTuple):
    """What came of dealing rows.

    Attributes:
      clients: the federation.
      known: `Known` with leaves `[seeds, C, n, ...]`, what an adversary knows.
      targets: the sensitive column, for scoring only; None without one.
    """

    clients: Clients
    known: Known
    targets: Targets | None


def load_table(config: settings.DataConfig) -> data.Table:
    """Loads the data set; refuses options that it does not know."""
    ignored = ("name", "dir", "preset", "also_sensitive")
    chosen = {
        field: value
        for field, value in vars(config).items()
        if field not in ignored and value not in (None, ())
    }
    if config.path is not None and "path" not in data.options(config.name):
        raise ConfigError(
            f"--data_path: {config.name} reads no file of yours; for {config.path} "
            "choose --data_name=csv"
        )
    known = data.options(config.name)
    for field in chosen.keys() - known.keys():
        ours = [f"--data_{name}" for name in known if name in vars(config)]
        raise ConfigError(
            f"--data_{field}: {config.name} has no such option, it has "
            f"{', '.join(ours) or 'none'}"
        )
    with named_as_flags(config.name, "data"):
        table = data.load(config.name, data_dir=config.dir, **chosen)
        return dataclasses.replace(table, also_sensitive=config.also_sensitive)


def deal(
    table: data.Table, config: settings.DataConfig, model: settings.ModelConfig,
    split: settings.PartitionConfig, seeds: tuple[int, ...],
) -> Dealt:  # fmt: skip
    """Encodes and deals the rows of every seed.

    Raises:
      ConfigError: the rows cannot be dealt so, or a flag is of another kind of partition.
    """
    which = config.preset or ("linear" if model.name == "linear" else "neural")
    preset = data.preset(config.name, which)
    datasets = [data.prepare(table, preset, seed=seed) for seed in seeds]
    parts = [
        dealing.deal(d, split, seed) for d, seed in zip(datasets, seeds, strict=True)
    ]
    if len({len(p) for p in parts}) > 1:
        raise ConfigError(
            "--seeds: seeds differ in the number of clients, run them apart"
        )
    sizes = np.array([[len(rows) for rows in p] for p in parts])
    most = int(sizes.max())
    per_client = [
        [_pad_rows(_take(d.train, rows), most) for rows in p]
        for d, p in zip(datasets, parts, strict=True)
    ]
    x, y, value, mask = _stack([_stack(clients) for clients in per_client])
    flat = [
        _take(d.train, np.concatenate(p)) for d, p in zip(datasets, parts, strict=True)
    ]
    total = int(sizes.sum(axis=1).max())
    flat_x, flat_y, _, _ = _stack([_pad_rows(rows, total) for rows in flat])
    names = tuple(
        dealing.names(d, split, p) for d, p in zip(datasets, parts, strict=True)
    )
    clients = Clients(
        datasets,
        Rows(flat_x, flat_y),
        sizes,
        *_test_rows(datasets),
        names=names if all(names) else (),
    )
    attribute = datasets[0].attribute
    known = conceal(x, y, mask, width=attribute.width if attribute else 0)
    known = jax.tree.map(np.ascontiguousarray, known)  # no view of the whole rows
    return Dealt(clients, known, _targets(clients, known, value, seeds))


def outputs(table: data.Table) -> int:
    """Outputs of a model of this table: one for each class, else 1."""
    if table.task != "multiclass":
        return 1
    return int(table.frame[table.target].max()) + 1


def row_mask(clients: Clients) -> np.ndarray:
    """`[seeds, N]`, True where `clients.rows` holds a real row."""
    total = clients.rows.y.shape[1]
    return np.arange(total) < clients.sizes.sum(axis=1)[:, None]


def _targets(
    clients: Clients, known: Known, value: np.ndarray, seeds: tuple[int, ...]
) -> Targets | None:
    attributes = [each.attribute for each in clients.datasets]
    if attributes[0] is None:
        return None
    return Targets(
        value=value,
        mask=np.asarray(known.mask),
        weights=clients.sizes,
        continuous=attributes[0].kind == "continuous",
        unit=np.array([float(each.encoder.scale[-1]) for each in clients.datasets]),
        known=known,
        candidates=np.stack([each.candidates for each in attributes]),
        parts=attributes[0].parts,
        seeds=seeds,
    )


def _take(split: data.Split, rows: np.ndarray):
    x = Features(split.x.numeric[rows], split.x.codes[rows])
    return x, split.y[rows], split.truth[rows], np.ones(len(rows), bool)


def _pad_rows(tree, length: int):
    return jax.tree.map(
        lambda a: np.pad(a, ((0, length - len(a)), *[(0, 0)] * (a.ndim - 1))), tree
    )


def _stack(trees):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def _test_rows(datasets):
    most = max(len(d.test.y) for d in datasets)
    if not most:
        return None, np.zeros((len(datasets), 0), bool)
    taken = [_take(d.test, np.arange(len(d.test.y))) for d in datasets]
    x, y, _, mask = _stack([_pad_rows(rows, most) for rows in taken])
    return Rows(x, y), mask

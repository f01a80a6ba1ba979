"""Which rows each client gets, as the flags of the partition say."""

import warnings

import numpy as np

from experiments.tabular.settings import PartitionConfig
from fljax import data, partition
from fljax.data.vocabulary import label
from fljax.driver.config import ConfigError

_FLAG_OF = {  # of what the library calls otherwise
    "num_clients": "clients", "rows_per_client": "rows", "shards_per_client": "shards",
}  # fmt: skip


def deal(dataset: data.Dataset, config: PartitionConfig, seed: int) -> list[np.ndarray]:
    """Row indices of each client; the draws do not depend on any other seed.

    Raises:
      ConfigError: the rows cannot be dealt so.
    """
    try:
        if config.kind in ("dirichlet", "label_shards", "dominant_label"):
            return _deal_by_label(dataset, config, seed)
        return _deal_rows(dataset, config, seed)
    except ValueError as error:
        name, _, rest = str(error).partition(": ")
        if name in _FLAG_OF:
            flag = f"--partition_{_FLAG_OF[name]}"
            raise ConfigError(
                f"{flag}: {rest}, with --partition_kind={config.kind}"
            ) from None
        raise ConfigError(f"--partition_kind={config.kind}: {error}") from None


def names(
    dataset: data.Dataset, config: PartitionConfig, parts: list[np.ndarray]
) -> tuple[str, ...]:
    """What the file calls each client, nothing unless a column deals the rows."""
    if config.kind != "by_column":
        return ()
    column = dataset.train.frame[config.column]
    return tuple(f"{config.column}: {label(column.iloc[part[0]])}" for part in parts)


def _deal_rows(dataset, config: PartitionConfig, seed: int):
    rng = np.random.default_rng([seed, 1])
    train, count = dataset.train, _number(config)
    match config.kind:
        case "iid":
            return partition.iid(rng, len(train.y), count)
        case "sampled":
            return partition.sampled(rng, len(train.y), count, config.rows)
        case "contiguous":
            return partition.contiguous(len(train.y), count)
        case "ordered":
            column, own = _raw_column(train.frame, config.column)
            return [own[part] for part in partition.ordered(column, count)]
        case "by_column":
            if (
                dataset.attribute is not None
                and dataset.attribute.name == config.column
            ):
                warnings.warn(
                    f"--partition_column={config.column} is the sensitive column: every "
                    "client has one value of it, which whoever knows her knows",
                    stacklevel=2,
                )
            column, own = _raw_column(train.frame, config.column)
            column, own = _of_values(column, own, config)
            return [own[part] for part in _by_column(column, config)]
        case "correlation":
            if dataset.attribute is None or dataset.attribute.kind != "binary":
                raise ValueError("needs a binary sensitive attribute")
            # Algorithm 5 speaks of men, who are the first category.
            return partition.correlation(
                rng, train.y, train.truth == 0, count, config.heterogeneity
            )
    raise ValueError(f"no partition {config.kind!r}")


def _deal_by_label(dataset, config: PartitionConfig, seed: int):
    rng = np.random.default_rng([seed, 1])
    labels, count = dataset.train.y, _number(config)
    if dataset.table.task == "regression":
        raise ValueError("needs class labels, the target is a number")
    if config.kind == "dirichlet":
        return partition.dirichlet(rng, labels, count, config.alpha)
    if config.kind == "label_shards":
        return partition.label_shards(rng, labels, count, config.shards)
    return partition.dominant_label(rng, labels, count, config.rows, config.share)


def _number(config: PartitionConfig) -> int:
    return 2 if config.clients is None else config.clients


def _raw_column(frame, name: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Values of a column, input or not, and the rows that have one: others have no owner."""
    if name not in frame.columns:
        raise ConfigError(
            f"--partition_column: expected one of {', '.join(frame.columns)}, got {name}"
        )
    there = frame[name].notna().to_numpy()
    if not there.any():
        raise ConfigError(f"--partition_column: {name} has no value in any row")
    if not there.all():
        warnings.warn(
            f"--partition_column={name}: {(~there).sum()} rows without a value belong to "
            "no client",
            stacklevel=2,
        )
    return frame[name].to_numpy()[there], np.flatnonzero(there)


def _of_values(column: np.ndarray, own: np.ndarray, config: PartitionConfig):
    """The rows with values that are clients."""
    if not config.values:
        return column, own
    labels = np.array([label(value) for value in column])
    lacking = sorted({*config.values} - {*labels})
    if lacking:
        raise ConfigError(
            f"--partition_values: expected values of {config.column}, got {lacking[0]!r}"
        )
    named = np.isin(labels, config.values)
    return column[named], own[named]


def _by_column(column: np.ndarray, config: PartitionConfig):
    distinct = len(np.unique(column))
    parts = partition.by_column(column, min(config.clients or distinct, distinct))
    if config.clients and config.clients > distinct:
        warnings.warn(
            f"--partition_clients={config.clients}: {config.column} has {distinct} values, "
            "of which each makes a client",
            stacklevel=2,
        )
    if distinct > len(parts):
        rest = len(column) - sum(map(len, parts))
        warnings.warn(
            f"{rest} rows have no client: {config.column} has {distinct} values, "
            f"--partition_clients={config.clients} takes the largest",
            stacklevel=2,
        )
    return parts

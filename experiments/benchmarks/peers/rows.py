"""The people of the federation: a table as numbers, dealt to clients of equal size."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from fljax import data
from fljax.driver.config import ConfigError

_OPTIONS = data.Preprocessing(
    binary="zero_one", categorical="dummies", target="standardise_numbers"
)
# What is inferred where nobody says.
_SENSITIVE = {"diabetes": "sex", "medical": "smoker", "breast_cancer": "high_texture"}


class Rows(NamedTuple):
    """Some people.

    Attributes:
      x: `[n, inputs]` float32.
      y: `[n]` float32.
    """

    x: np.ndarray
    y: np.ndarray


class People(NamedTuple):
    """A federation's.

    Attributes:
      clients: of equally many rows each.
      held_out: nobody trains on them.
      frame: the clients' rows under their names, with the columns `target` and `client`;
        the sensitive column is 0 or 1.
      target: name of that column.
      sensitive: likewise.
      task: `regression` or `binary`.
    """

    clients: tuple[Rows, ...]
    held_out: Rows
    frame: pd.DataFrame
    target: str
    sensitive: str
    task: str


def load(name: str, data_dir: str | None = None, **csv: str | None) -> data.Table:
    """One of the three tables, or a CSV file.

    Args:
      name: `diabetes`, `medical`, `breast_cancer` or `csv`.
      data_dir: folder of local copies.
      **csv: `path`, `target` and `sensitive` of a CSV file.

    Raises:
      ConfigError: a CSV file lacks one of these.
    """
    if name != "csv":
        chosen = {"sensitive": csv.get("sensitive") or _SENSITIVE[name]}
        return data.load(name, data_dir=data_dir, **chosen)
    for flag, value in csv.items():
        if not value:
            raise ConfigError(f"--data_{flag}: expected it with --data_name=csv")
    return data.load("csv", data_dir=data_dir, **csv)


def deal(table: data.Table, num_clients: int, seed: int) -> People:
    """Splits, encodes and deals a table.

    Args:
      table: with a sensitive column of two values.
      num_clients: who get equally many rows; the last few rows are left over.
      seed: of the split, which also shuffles.

    Raises:
      ConfigError: the column has other values, or the target more than two classes.
    """
    dataset = data.prepare(table, _OPTIONS, seed=seed)
    attribute = dataset.attribute
    if attribute is None or attribute.width != 1 or attribute.kind == "continuous":
        raise ConfigError(
            f"{table.name}: expected a sensitive column of two values, got "
            f"{table.sensitive!r}"
        )
    if table.task == "multiclass":
        raise ConfigError(f"{table.name}: expected a target of numbers or two classes")
    size = len(dataset.train.y) // num_clients
    x, y = dataset.train.x.numeric, dataset.train.y.astype(np.float32)
    parts = [slice(c * size, (c + 1) * size) for c in range(num_clients)]
    names = dataset.numeric_names
    frame = pd.DataFrame(x[: num_clients * size], columns=list(names))
    frame[names[-1]] = frame[names[-1]].astype(int)
    frame[table.target] = y[: num_clients * size]
    if table.task == "binary":
        frame[table.target] = frame[table.target].astype(int)
    frame["client"] = np.repeat(np.arange(num_clients), size)
    return People(
        clients=tuple(Rows(x[part], y[part]) for part in parts),
        held_out=Rows(dataset.test.x.numeric, dataset.test.y.astype(np.float32)),
        frame=frame,
        target=table.target,
        sensitive=names[-1],
        task=table.task,
    )

"""Generated federations, three of them with the shapes of published experiments.

The sizes, inputs and batches are those of the Medical, Income-L and Income-A settings
of Diana et al., AAAI 2025 (https://arxiv.org/abs/2411.12697), and a thousand clients of 50
rows; the numbers are drawn.
The last numeric column is binary and drives the target: it is what attacks look for.
"""

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import jax
import numpy as np
from scipy import stats

from fljax import models
from fljax.types import Features, Known, Model, Params, Rows

Name = Literal["medical", "income_l", "income_a", "thousand"]
PUBLISHED: tuple[Name, ...] = ("medical", "income_l", "income_a")
NAMES: tuple[Name, ...] = (*PUBLISHED, "thousand")
BATCH_SIZE = 32
LEARNING_RATE = 0.01
_SHARE = 0.2  # of the rows that have the high value of the sensitive column
_LOW, _HIGH = -0.5, 2.0  # that column with mean 0 and variance 1
_LAYERS = {"hidden": "TabularDense_0", "output": "Dense_0"}


class Shape(NamedTuple):
    """What a federation looks like.

    Attributes:
      sizes: rows of each client.
      num_numeric: numeric columns, the sensitive one included.
      cardinalities: categories of each categorical column.
    """

    sizes: tuple[int, ...]
    num_numeric: int
    cardinalities: tuple[int, ...] = ()

    @property
    def num_onehot(self) -> int:
        return sum(self.cardinalities)

    @property
    def num_inputs(self) -> int:
        return self.num_numeric + self.num_onehot


def shape(name: Name, smoke: bool = False) -> Shape:
    """The shape of that name; `smoke` leaves few rows."""
    match name:
        case "medical":
            return Shape((70 if smoke else 602,) * 2, 8)
        case "income_l":
            return Shape((40 if smoke else 1438,) * 10, 4, (7, 4, 508, 17, 8))
        case "income_a":
            sizes = (
                log_normal_sizes(51, total=3000, low=20, high=200)
                if smoke
                else log_normal_sizes(51, total=300_000, low=600, high=23_453)
            )
            return Shape(sizes, 4, (7, 4, 528, 17, 8))
        case "thousand":
            return Shape((40 if smoke else 50,) * (10 if smoke else 1000), 8)
    raise ValueError(f"name must be one of {', '.join(NAMES)}, got {name!r}")


def log_normal_sizes(
    num_clients: int, *, total: int, low: int, high: int
) -> tuple[int, ...]:
    """Quantiles of a log-normal distribution, clipped, scaled to about `total`."""
    places = (np.arange(num_clients) + 0.5) / num_clients
    spread = np.exp(stats.norm.ppf(places))

    def sizes(scale):
        return np.clip(np.rint(scale * spread), low, high).astype(int)

    least, most = 0.0, float(high / spread[0])
    for _ in range(60):
        middle = (least + most) / 2
        least, most = (middle, most) if sizes(middle).sum() < total else (least, middle)
    return tuple(int(size) for size in sizes(most))


def generate(of: Shape, seed: int) -> Rows:
    """Rows of all clients, flat `[N, ...]` NumPy arrays; the target has variance 1."""
    rng = np.random.default_rng(seed)
    num_rows = sum(of.sizes)
    numeric = rng.standard_normal((num_rows, of.num_numeric), np.float32)
    numeric[:, -1] = np.where(rng.random(num_rows) < _SHARE, _HIGH, _LOW)
    codes = rng.integers(of.cardinalities, size=(num_rows, len(of.cardinalities)))
    offsets = np.cumsum((0, *of.cardinalities))[:-1]
    codes = (codes + offsets.astype(int)).astype(np.int32)
    weights = rng.normal(0, 0.3, of.num_inputs)
    weights[of.num_numeric - 1] = 1.0
    y = numeric @ weights[: of.num_numeric]
    y = y + weights[of.num_numeric :][codes].sum(1) + rng.normal(0, 0.1, num_rows)
    y = (y - y.mean()) / y.std()
    return Rows(Features(numeric, codes), y.astype(np.float32))


def model(of: Shape) -> Model:
    """One hidden layer of 128 units with PyTorch's initialisation."""
    return models.mlp(of.num_numeric, len(of.cardinalities), num_onehot=of.num_onehot)


def candidates() -> np.ndarray:
    """`[2, 1]` values of the sensitive column."""
    return np.array([[_LOW], [_HIGH]], np.float32)


def split(rows: Rows, sizes: Sequence[int]) -> list[Rows]:
    """The rows of each client."""
    bounds = itertools.pairwise(np.cumsum((0, *sizes)))
    places = [slice(*pair) for pair in bounds]
    return [jax.tree.map(operator.itemgetter(place), rows) for place in places]


def known(rows: Rows) -> Known:
    """What the adversary knows of these rows."""
    public = rows.x._replace(numeric=rows.x.numeric[..., :-1])
    return Known(public, rows.y, np.ones(rows.y.shape, bool))


def truth(rows: Rows) -> np.ndarray:
    """Candidate of the sensitive column in each row."""
    return (rows.x.numeric[..., -1] > 0).astype(np.int32)


def dense(rows: Rows, of: Shape) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each client's `x [n, inputs]` with one-hot columns, as PyTorch users have it."""
    for mine in split(rows, of.sizes):
        onehot = np.zeros((len(mine.y), of.num_onehot), np.float32)
        np.put_along_axis(onehot, mine.x.codes, 1, axis=1)
        yield np.concatenate([mine.x.numeric, onehot], axis=1), mine.y


def to_arrays(params: Params) -> dict[str, np.ndarray]:
    """Params of `model` under the names of the baseline."""
    return {
        f"{ours}_{leaf}": np.asarray(params[theirs][leaf])
        for ours, theirs in _LAYERS.items()
        for leaf in ("kernel", "bias")
    }

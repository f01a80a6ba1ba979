"""A small table, whose rows a network is asked about."""

from typing import NamedTuple

import jax
import numpy as np
import pytest

from fljax import losses
from fljax.attacks import rows
from fljax.losses import LossFn
from fljax.models import mlp
from fljax.types import Params

_ROWS, _COLUMNS = 4, 12


class Problem(NamedTuple):
    """A batch `[4, 12]` in the table's units, and the network that is trained on it."""

    schema: rows.Schema
    raw: np.ndarray
    y: np.ndarray
    params: Params
    loss_fn: LossFn

    def message(self) -> Params:
        """The mean gradient of the batch."""
        asked = rows.Network(self.params, self.loss_fn)
        shares = np.full(_ROWS, 1 / _ROWS)
        return asked.message(self.schema.encode(self.raw), self.y, shares)


def _schema() -> rows.Schema:
    """Three groups, one with a reference and one of a single column, and two numbers."""
    mean, scale = np.zeros(_COLUMNS), np.ones(_COLUMNS)
    mean[10:], scale[10:] = (40, 10), (12, 30)
    mean[:5], scale[:5] = 0.2, 0.4
    return rows.Schema(
        groups=(
            rows.Group((0, 1, 2, 3, 4)),
            rows.Group((5, 6, 7, 8), reference=True),
            rows.Group((9,), reference=True),
        ),
        numbers=np.array([10, 11]),
        mean=mean,
        scale=scale,
        low=np.array([18, 0]),
        high=np.array([90, 200]),
        whole=np.array([True, True]),
    )


def _table(schema: rows.Schema, seed: int) -> np.ndarray:
    draws = np.random.default_rng(seed)
    raw = np.zeros((_ROWS, _COLUMNS))
    raw[np.arange(_ROWS), draws.permutation(5)[:_ROWS]] = 1
    last = draws.integers(0, 5, _ROWS)
    for row, column in enumerate(last):
        raw[row, 5 + column : 6 + column] = column < 4
    raw[:, 9] = draws.integers(0, 2, _ROWS)
    raw[:, 10] = draws.integers(18, 91, _ROWS)
    raw[:, 11] = draws.integers(0, 2, _ROWS) * draws.integers(1, 200, _ROWS)
    return raw


@pytest.fixture
def problem():
    """`(hidden, outputs, seed, **network) -> Problem`."""

    def make(hidden: tuple[int, ...], outputs: int, seed: int, **network) -> Problem:
        schema = _schema()
        y = np.random.default_rng(seed).integers(0, 2, _ROWS)
        model = mlp(_COLUMNS, hidden=hidden, outputs=outputs, **network)
        element = losses.logistic if outputs == 1 else losses.cross_entropy
        loss_fn = losses.example_loss(model.apply, element)
        params = jax.device_get(model.init(jax.random.key(seed)))
        return Problem(schema, _table(schema, seed), y, params, loss_fn)

    return make

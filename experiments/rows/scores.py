"""How much of a batch was read, rows being matched as well as they can be."""

from typing import NamedTuple

import numpy as np
from scipy import optimize

from experiments.rows.batches import Batch
from fljax.attacks import rows

_SAME = 1e-4  # deviations, of a number that is no integer, or a target


class Score(NamedTuple):
    """Percent of a batch.

    Attributes:
      accuracy: cells that were read: categories, and numbers within a tolerance.
      within: rows of which every cell is read so, the exact match rate of Osterberg
        Nilsson et al., "Profiling Privacy Preservation Against Gradient Inversion Attacks
        in Tabular Federated Learning", 2026.
      exact: rows of which every cell is right.
      labelled: rows of which the target is, too.
    """

    accuracy: float
    within: float
    exact: float
    labelled: float


def score(
    schema: rows.Schema,
    found: np.ndarray,
    y: np.ndarray,
    batch: Batch,
    tolerance: float,
) -> Score:
    """Compares rows `[n, D]` and their targets `[n]` with a batch.

    Rows that were not found count as the mean of the table.
    """
    size = len(batch.raw)
    missing = np.zeros((size - len(found), len(schema.scale)))
    guess = np.concatenate([found, schema.read(missing)])
    y = np.concatenate([y, np.full(len(missing), np.nan)])
    right = _right(schema, guess, batch.raw, tolerance)
    pairs = optimize.linear_sum_assignment(-right.mean(axis=2))
    exact = _right(schema, guess, batch.raw, _SAME, whole=True).all(axis=2)
    known = np.isclose(y[:, None], batch.y[None], rtol=_SAME, atol=_SAME)
    return Score(
        100 * float(right.mean(axis=2)[pairs].mean()),
        100 * _matched(right.all(axis=2)) / size,
        100 * _matched(exact) / size,
        100 * _matched(exact & known) / size,
    )


def _right(
    schema, guess, truth, tolerance: float, *, whole: bool = False
) -> np.ndarray:
    """Which cells `[n, B, columns]` of each pair of rows agree."""
    every = []
    for group in schema.groups:
        at = list(group.columns)
        every.append((guess[:, None, at] == truth[None, :, at]).all(axis=2))
    for place, integer in zip(schema.numbers, schema.whole, strict=True):
        allowed = tolerance * schema.scale[place]
        if whole and integer:
            allowed = 0.5
        every.append(np.abs(guess[:, None, place] - truth[None, :, place]) <= allowed)
    return np.stack(every, axis=2)


def _matched(agree: np.ndarray) -> int:
    """Pairs of rows that agree, each row in one of them."""
    return int(agree[optimize.linear_sum_assignment(-agree.astype(float))].sum())

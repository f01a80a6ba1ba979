"""Two attacks on sums of updates of the first layer."""

from collections.abc import Sequence

import numpy as np

from fljax.attacks.rows import intersections

COMMON, EXCLUSIVE = "common_to_rounds", "exclusive_neurons"
_NEAR = 0.05  # of the step between two values, as SRATTA's own oracle
_LEAST = 1e-5  # of an update's bias, below which it is not looked at


def common(updates: Sequence[np.ndarray], white: int) -> np.ndarray:
    """Rows `[n, D]` that the spans of several rounds have in common.

    Args:
      updates: `[1 + D, H]` of every round.
      white: largest value of an input, all of which are integers divided by it.
    """
    found = intersections.recover(updates).x
    return np.round(found * white)[_on_grid(found, white, 0.5)]


def exclusive(updates: Sequence[np.ndarray], white: int) -> np.ndarray:
    """Rows of neurons that a single row of a round has switched on (SRATTA, 2023)."""
    found = []
    for update in updates:
        bias, kernel = update[0], update[1:]
        chosen = np.abs(bias) > _LEAST
        rows = (kernel[:, chosen] / bias[chosen]).T
        found.append(np.round(rows[_on_grid(rows, white, _NEAR)] * white))
    return np.unique(np.concatenate(found), axis=0)


def _on_grid(rows: np.ndarray, white: int, near: float) -> np.ndarray:
    """Which rows `[n, D]` have values that may occur, and are not all the same."""
    values = rows * white
    off = np.abs(values - np.clip(np.round(values), 0, white)).max(axis=1, initial=0)
    return (off < near) & (np.ptp(values, axis=1) > 1)

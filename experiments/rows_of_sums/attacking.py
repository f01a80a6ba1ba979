"""Two attacks on sums of updates, and which of the rows they find are of one client."""

from collections.abc import Sequence

import numpy as np

from fljax.attacks.rows import clients, sums
from fljax.attacks.rows.clients import Round

COMMON, EXCLUSIVE = "common_to_rounds", "exclusive_neurons"
_NEAR = 0.05  # of the step between two values, as SRATTA's own oracle
_LEAST = 1e-5  # of an update's bias, below which it is not looked at


common = sums.recover


def exclusive(rounds: Sequence[Round], white: int) -> np.ndarray:
    """Rows of neurons that a single row of a round has switched on (SRATTA, 2023).

    Args:
      rounds: what the server has of each.
      white: largest value of an input, all of which are integers divided by it.
    """
    found = []
    for each in rounds:
        bias, kernel = each.update[0], each.update[1:]
        chosen = np.abs(bias) > _LEAST
        rows = (kernel[:, chosen] / bias[chosen]).T
        found.append(np.round(rows[_on_grid(rows, white)] * white))
    return np.unique(np.concatenate(found), axis=0)


def group(rounds: Sequence[Round], rows: np.ndarray, white: int) -> np.ndarray:
    """Numbers `[n]`, equal for rows `[n, D]` that are told to be of one client."""
    return clients.group(rounds, np.float32(rows) / np.float32(white))


def _on_grid(rows: np.ndarray, white: int) -> np.ndarray:
    """Which rows `[n, D]` have values that may occur, and are not all the same."""
    values = rows * white
    off = np.abs(values - np.clip(np.round(values), 0, white)).max(axis=1, initial=0)
    return (off < _NEAR) & (np.ptp(values, axis=1) > 1)

"""Rows of whole numbers that a neuron has for itself in a sum of many clients' updates.

What a neuron that one row alone has switched on adds is that row times a number, and the
number is in its bias: Marchand et al., "SRATTA: Sample Re-ATTribution Attack of Secure
Aggregation in Federated Learning", 2023, https://arxiv.org/abs/2306.07644. Whether it was
alone they ask an oracle, which is told here by the row being of whole numbers.
"""

from collections.abc import Sequence

import numpy as np

from fljax.attacks.rows.clients import Round

_NEAR = 0.05  # of the step between two values, as the paper's own oracle
_LEAST = 1e-5  # of an update's bias, below which it is not looked at


def recover(rounds: Sequence[Round], white: int) -> np.ndarray:
    """Rows `[n, D]` of integers.

    Args:
      rounds: what the server has of each.
      white: largest value of an input, all of which are integers divided by it.

    Raises:
      ValueError: there is no round, or `white` is below 1.
    """
    if not len(rounds) or white < 1:
        raise ValueError(
            f"rounds, white: expected one or more, got {len(rounds)} and {white}"
        )
    found = []
    for each in rounds:
        bias, kernel = each.update[0], each.update[1:]
        chosen = np.abs(bias) > _LEAST
        rows = (kernel[:, chosen] / bias[chosen]).T
        found.append(np.round(rows[_on_grid(rows, white)] * white))
    return np.unique(np.concatenate(found), axis=0)


def _on_grid(rows: np.ndarray, white: int) -> np.ndarray:
    """Which rows `[n, D]` have values that may occur, and are not all the same."""
    values = rows * white
    off = np.abs(values - np.clip(np.round(values), 0, white)).max(axis=1, initial=0)
    return (off < _NEAR) & (np.ptp(values, axis=1) > 1)

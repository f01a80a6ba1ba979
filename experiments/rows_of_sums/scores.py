"""How many rows an attack finds and how well it groups them, by the truth."""

from typing import NamedTuple

import numpy as np
from sklearn.metrics import v_measure_score

from experiments.rows_of_sums.reporting import (
    FOUND,
    MISPAIRED,
    PAIRED,
    V_MEASURE,
    WRONG,
)


class Answer(NamedTuple):
    """What an attack says.

    Attributes:
      rows: `[m, D]` integers.
      groups: `[m]` numbers, equal for rows of one client.
    """

    rows: np.ndarray
    groups: np.ndarray


class Truth(NamedTuple):
    """What is.

    Attributes:
      rows: `[C * n, D]` integers, client by client.
      each: n, of every client.
    """

    rows: np.ndarray
    each: int


def score(answer: Answer, truth: Truth) -> dict[str, float]:
    """Rows found and invented, and pairs of one client found, in percent of all there are.

    And pairs of different clients, in percent of those that are said to be of one.
    """
    true = {row.tobytes(): i for i, row in enumerate(truth.rows.astype(np.int64))}
    place = [true.get(row.tobytes(), -1) for row in answer.rows.astype(np.int64)]
    ours = {row.tobytes() for row in answer.rows.astype(np.int64)}
    rows = {
        FOUND: 100 * len(ours & true.keys()) / len(true),
        WRONG: 100 * len(ours - true.keys()) / len(true),
    }
    owner = np.arange(len(truth.rows)) // truth.each
    return rows | _grouped(np.array(place, int), answer.groups, owner)


def _grouped(
    place: np.ndarray, groups: np.ndarray, owner: np.ndarray
) -> dict[str, float]:
    """How well rows are grouped, those that are not found being alone.

    Args:
      place: `[m]` of a row among all, -1 where it is none.
      groups: `[m]`.
      owner: `[n]` of all rows.
    """
    joined = np.triu(groups[:, None] == groups[None], 1)
    theirs = np.where(place < 0, -1 - np.arange(len(place)), owner[place])
    right = np.sum(joined & (theirs[:, None] == theirs[None]))
    possible = max(np.triu(owner[:, None] == owner[None], 1).sum(), 1)
    guessed = groups.max(initial=0) + 1 + np.arange(len(owner))
    guessed[place[place >= 0]] = groups[place >= 0]
    return {
        PAIRED: 100 * float(right / possible),
        MISPAIRED: 100 * float((joined.sum() - right) / max(joined.sum(), 1)),
        V_MEASURE: 100 * float(v_measure_score(owner, guessed)),
    }

"""Which rows behind sums of updates are of one client: the sums tell that, too.

A row's part of the update, `m` of its sum `(1, x) m^T`, is the gradient at the first
layer's outputs where the client stood when it used the row. That shows in two ways which
rows the same client had used before:

* A neuron that the row has switched on, though the round's model has it off for the row,
  was moved by a row of that client which the model itself has on. If there is but one
  such row, or all of them are known to be of one client, so is this one (Marchand et al.,
  "SRATTA: Sample Re-ATTribution Attack of Secure Aggregation in Federated Learning",
  2023, https://arxiv.org/abs/2306.07644, whose graph of rows this is).
* With one hidden layer, `m = V r` where the row has the neurons on, `V` being the weights
  of the outputs and `r` the loss's gradient there. In a client's first batch `V` is the
  round's. In its second it has moved by a multiple of `a_i r_i^T` for each row of the
  first, `a_i` being what that row makes of the round's model: so `m` is a sum of the
  columns of `V` and of those `a_i`, exactly, and of no other client's. Neither the rate
  nor batch size, number of clients or labels has to be known.

Each row is taken to be one client's: clients who have one in common become a single one.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fljax.attacks.rows import span

_SURE = 12.0  # standard errors, above which a number is not zero
_EXACT = 3e-5  # of a row's part, below which is what rounding leaves
_NEURONS = 6  # by which, at least, a weight of a fit is told
_SPARE = 10  # equations more than unknowns, without which no fit says anything


class Round(NamedTuple):
    """What the server has of one round.

    Attributes:
      update: `[1 + D, H]` change of the first layer, the bias first.
      first: `[1 + D, H]` that layer as it was sent out.
      second: `[H, K]` kernel of the next one, as it was sent out.
    """

    update: np.ndarray
    first: np.ndarray
    second: np.ndarray


class _Parts(NamedTuple):
    """Parts `m` `[n, H]` of the rows, and which of them are not zero, where told."""

    values: np.ndarray
    on: np.ndarray
    before: np.ndarray  # `[n, H]` what the round's model gives out, before the ReLU
    told: np.ndarray  # `[H]` neurons that no other row has moved


def group(rounds: Sequence[Round], x: np.ndarray) -> np.ndarray:
    """Numbers `[n]`, equal for rows that are told to be of the same client.

    Args:
      rounds: of one training or more.
      x: `[n, D]` rows that were found; of more than D nothing is told.
    """
    if len(x) > x.shape[1]:
        return np.arange(len(x))
    rows = span.with_ones(x)
    links, rules, doubtful = _Links(len(x)), [], []
    solve = np.linalg.pinv(rows.T, rcond=1e-10)
    for each in rounds:
        parts = _parts(each, rows, solve)
        for some, twice in _second_steps(parts, each.second):
            if twice:
                links.join(some)
            else:
                doubtful.append(some)
        rules += _activations(parts)
    links.follow(rules)
    for some in doubtful:
        if links.groups(some) < 2:
            links.join(some)
    links.follow(rules)
    return links.names


class _Links:
    """Rows joined to groups, each named by its first one."""

    def __init__(self, count: int):
        self.names = np.arange(count)

    def join(self, rows: np.ndarray) -> bool:
        """Makes one of the groups of these rows; says whether that is new."""
        names = np.unique(self.names[rows])
        self.names[np.isin(self.names, names)] = names[0]
        return len(names) > 1

    def groups(self, rows: np.ndarray) -> int:
        """How many groups of several rows these are in."""
        names, counts = np.unique(self.names, return_counts=True)
        return int(np.isin(names[counts > 1], self.names[rows]).sum())

    def follow(self, rules: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
        """Joins rows wherever others are joined, as long as that says anything new."""
        while sum(self.join(then) for now, then in rules if self.joined(now)):
            pass

    def joined(self, rows: np.ndarray) -> bool:
        """Whether these are of one group."""
        return bool((self.names[rows] == self.names[rows[0]]).all())


def _parts(each: Round, rows: np.ndarray, solve: np.ndarray) -> _Parts:
    update = np.asarray(each.update, np.float64)
    first = np.asarray(each.first, np.float64)
    values = solve @ update
    left = np.sqrt(np.mean((update - rows.T @ values) ** 2, axis=0))
    noise = np.finfo(np.float32).eps * np.sqrt(np.mean(first**2, axis=0))
    told = left < noise
    errors = np.linalg.norm(solve, axis=1)[:, None] * np.maximum(left, noise / 10)
    return _Parts(values, told & (np.abs(values) > _SURE * errors), rows @ first, told)


def _activations(parts: _Parts) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows that switch a neuron on at once, and those with the ones that do later."""
    at_once = parts.on & (parts.before > 0)
    later = parts.on & ~at_once
    for neuron in np.flatnonzero(at_once.any(axis=0) & later.any(axis=0)):
        yield np.flatnonzero(at_once[:, neuron]), np.flatnonzero(parts.on[:, neuron])


def _second_steps(
    parts: _Parts, second: np.ndarray
) -> Iterator[tuple[np.ndarray, bool]]:
    """Rows of a first batch, with those of the second of the same client that tell so.

    And whether several do: what a single row tells may have come about by rounding.
    """
    second = np.asarray(second, np.float64)
    fits = [_fit(second, part, on) for part, on in zip(parts.values, parts.on)]
    first = np.array([fit is not None for fit in fits], bool)
    outputs = np.maximum(parts.before[first], 0).T
    columns = np.concatenate([second, outputs], axis=1)
    told: dict[bytes, list[int]] = {}
    for row in np.flatnonzero(~first):
        used = _fit(columns, parts.values[row], parts.on[row])
        if used is not None and (earlier := used[second.shape[1] :]).any():
            batch = np.flatnonzero(first)[earlier]
            told.setdefault(batch.tobytes(), []).append(int(row))
    for batch, rows in told.items():
        yield np.concatenate([np.frombuffer(batch, np.int64), rows]), len(rows) > 1


def _fit(columns: np.ndarray, part: np.ndarray, on: np.ndarray) -> np.ndarray | None:
    """Which columns `[k]` a part is a sum of, or None where it is none."""
    if on.sum() < columns.shape[1] + _SPARE:
        return None
    scale = np.maximum(np.linalg.norm(columns[on], axis=0), np.finfo(np.float32).tiny)
    solve = np.linalg.pinv(columns[on] / scale, rcond=1e-10)
    weights = solve @ part[on]
    left = np.linalg.norm(part[on] - (columns[on] / scale) @ weights)
    allowed = _EXACT * np.linalg.norm(part[on])
    if left > allowed:
        return None
    # What of an error may lie in the columns' span does not show in what is left, and a
    # weight that few neurons tell may stand for a row that is not there.
    square = solve**2
    told = square.sum(axis=1) ** 2 > _NEURONS * (square**2).sum(axis=1)
    return told & (np.abs(weights) > np.linalg.norm(solve, axis=1) * allowed)

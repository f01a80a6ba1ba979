"""Whether the rows of a batch have its message with other targets, too.

A row's target may not matter to its gradient, as to a loss that knows the sign of an error
alone. Or changes of several rows cancel: two equal rows with the targets 1 and 3 are, under
a squared loss, in no message told from two with 2 and 2, and four rows whose sums are equal
two by two may exchange targets where they switch on the same units.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg

from fljax.attacks.rows import network as network_lib
from fljax.attacks.rows.network import Network
from fljax.types import Params

_BACK = 0.01  # of all targets' range, from where a target is another one
_OPEN = 1e-9  # of the largest eigenvalue, below which changes of targets cancel
_INDEPENDENT = 1e-5  # of the largest singular value, above which inputs are
_PARALLEL = 1e-4  # less than this of 1 lacks the cosine of parallel changes
_SMALL = 1e-6  # of the largest change of a direction
_PAIRED = 30  # directions at most, of which two are tried together
_TRIED = 3  # combinations along a direction


def exist(
    network: Network, message: Params, x: np.ndarray, y: np.ndarray, targets: np.ndarray
) -> bool:
    """Whether another choice of targets gives the message, to rounding.

    Another one moves a target by more than a hundredth of the range of all. Looked for are
    those of one row, and those along a direction in which changes cancel, or along two.

    Args:
      network: at which it was taken.
      message: mean gradient of the batch.
      x: `[B, D]` encoded rows with this message, all of the batch.
      y: `[B]` their targets.
      targets: `[t]` what a target may be.
    """
    y, targets = (np.asarray(each) * 1 for each in (y, targets))  # also of True
    others = itertools.chain(
        _of_one(network, message, x, y, targets), _of_several(network, x, y, targets)
    )
    shares = np.full(len(x), 1 / len(x))
    return any(
        network_lib.missed(network.message(x, other, shares), message)
        < network_lib.ROUNDING
        for other in others
    )


def _of_one(network: Network, message: Params, x, y, targets) -> Iterator[np.ndarray]:
    """Targets `[B]` of which one is another, of a row that hardly notices."""
    every, size = np.unique(targets), network_lib.size(message)
    for row, (mine, delta) in enumerate(zip(y, network.deltas(x, y), strict=True)):
        others = every[np.abs(every - mine) > _BACK * np.ptp(every)]
        moved = network.deltas(np.tile(x[row], (len(others), 1)), others) - delta
        off = np.linalg.norm(moved, axis=1) / len(x)
        alike = others[off < network_lib.ROUNDING * size]
        # The nearest and the furthest stand for those between.
        for at in np.argsort(np.abs(alike - mine))[[0, -1][: len(alike)]]:
            yield np.where(np.arange(len(x)) == row, alike[at], y)


def _of_several(network: Network, x, y, targets) -> Iterator[np.ndarray]:
    """Targets `[B]` of which several are others, whose changes cancel."""
    for values, rows in _lines(network, x, y, np.unique(targets)):
        for direction in _cancelling(network, x[rows], y[rows], values):
            some = rows[np.abs(direction) > _SMALL]
            moves = direction[np.abs(direction) > _SMALL]
            for other in _along(moves, x[some], y[some], values):
                changed = np.array(y)
                changed[some] = other
                yield changed


def _lines(
    network: Network, x, y, every: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Targets `[v]` along which deltas move in one direction, and rows `[n]` of them.

    All numbers are, and two of several classes.
    """
    if len(every) < 2:
        return
    first, *rest = (network.deltas(x, each).ravel() for each in every[[0, -2, -1]])
    one, other = (each - first for each in rest)
    length = np.linalg.norm(one) * np.linalg.norm(other)
    if len(every) == 2 or one @ other >= (1 - _PARALLEL) * length:
        yield every, np.arange(len(y))
        return
    for pair in itertools.combinations(np.unique(y), 2):
        yield np.array(pair), np.flatnonzero(np.isin(y, pair))


def _cancelling(network: Network, x, y, values) -> np.ndarray:
    """Changes of targets `[k, n]` that cancel in the first layer, each of few rows.

    Rows whose targets do not matter there are left as they are.
    """
    nothing, inputs = np.zeros((0, len(x))), np.column_stack([np.ones(len(x)), x])
    if np.linalg.matrix_rank(inputs, rtol=_INDEPENDENT) == len(x):
        return nothing
    far = np.where(
        np.abs(values[-1] - y) > np.abs(values[0] - y), values[-1], values[0]
    )
    slope = (network.deltas(x, far) - network.deltas(x, y)) / (far - y)[:, None]
    inner = (slope @ slope.T) * (inputs @ inputs.T)
    length = np.sqrt(np.diag(inner))
    matter = np.flatnonzero(length > 0)
    if len(matter) < 2:
        return nothing
    inner, length = inner[np.ix_(matter, matter)], length[matter]
    ratio, vectors = np.linalg.eigh(inner / np.outer(length, length))
    free = vectors[:, ratio < _OPEN * ratio[-1]] / length[:, None]
    if not free.size:
        return nothing
    # As many rows as directions stand for one direction each.
    pivoted: Any = linalg.qr(free.T, mode="r", pivoting=True)
    at = pivoted[1][: free.shape[1]]
    single = np.linalg.solve(free[at].T, free.T)
    pairs = list(itertools.combinations(single[:_PAIRED], 2))
    both = [one + sign * other for one, other in pairs for sign in (1, -1)]
    found = np.zeros((len(single) + len(both), len(x)))
    found[:, matter] = [*single, *both]
    return found / np.abs(found).max(axis=1, keepdims=True)


def _along(direction: np.ndarray, x, y, values: np.ndarray) -> np.ndarray:
    """Targets `[c, n]` that may be, of another batch than this one."""
    row, range_ = int(np.abs(direction).argmax()), np.ptp(values)
    steps = (values - y[row]) / direction[row]
    moved = y + steps[:, None] * direction
    near = np.clip(np.searchsorted(values, moved), 1, len(values) - 1)
    below, above = values[near - 1], values[near]
    snapped = np.where(moved - below < above - moved, below, above)
    off = np.abs(snapped - moved).max(axis=1)
    found = snapped[off < _BACK * range_]
    other = (
        np.abs(_in_order(x, found) - _in_order(x, y[None])).max(axis=1) > _BACK * range_
    )
    nearest = np.argsort(off[off < _BACK * range_][other])
    return found[other][nearest[:_TRIED]]


def _in_order(x: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Targets `[c, n]`, those of equal rows in their order, whichever row has which."""
    _, group = np.unique(x, axis=0, return_inverse=True)
    at = np.lexsort((targets, np.broadcast_to(group.ravel(), targets.shape)), axis=1)
    return np.take_along_axis(targets, at, axis=1)

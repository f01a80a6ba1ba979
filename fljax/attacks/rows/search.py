"""Rows found one after another: those that are found leave the span.

The fewer rows it still holds, the fewer combinations of categories lie in it. Rows are
told by their hidden units where the second layer's gradient allows it, otherwise by
their deltas.
"""

from typing import NamedTuple

import numpy as np

from fljax.attacks.rows import categories, forward, numbers, span
from fljax.attacks.rows.categories import Rows
from fljax.attacks.rows.forward import Hidden
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.schema import Schema
from fljax.attacks.rows.span import Sent

_UNITS = 1e-4  # distance at which hidden units count as a row's
_LADDER = (1e-5, 1e-4, 1e-3, 1e-2)  # distances at which a delta does, in turn
_SAME = 1e-3  # deviations between two solutions for one row
_NEW = 1e-2  # of a delta outside of those found, that makes it another one


class Effort(NamedTuple):
    """How hard to look.

    Attributes:
      combinations: of categories that are looked at in a round, at most.
      nearest: combinations whose numbers are solved for thoroughly.
      points: at which numbers are tried in a round, where deltas tell rows.
      rounds: of search at most.
      patience: rounds that may find nothing.
    """

    combinations: int = 30_000
    nearest: int = 2_000
    points: int = 400_000
    rounds: int = 24
    patience: int = 4


def different(sent: Sent, hidden: Hidden | None) -> int:
    """Different rows in the batch, as far as its gradient tells."""
    return sent.rank if hidden is None else hidden.rank


def search(
    network: Network,
    sent: Sent,
    hidden: Hidden | None,
    schema: Schema,
    targets: np.ndarray,
    seed: int,
    effort: Effort,
) -> np.ndarray:
    """Encoded rows `[n, D]`, each once.

    Args:
      network: whose gradient was sent.
      sent: what was sent of the first layer.
      hidden: and of the second.
      schema: of the table.
      targets: whose deltas differ in direction.
      seed: of what is drawn.
      effort: how hard to look.
    """
    draws = np.random.default_rng(seed)
    x = np.zeros((0, len(schema.scale)))
    deltas = np.zeros((0, sent.gradient.shape[1]))
    idle = 0
    for _ in range(effort.rounds):
        enough = len(x) >= different(sent, hidden) or len(deltas) >= sent.rank
        if enough or idle >= effort.patience:
            break
        left = span.without(sent, deltas)
        try:
            most = effort.combinations
            rows = categories.consistent(schema, left, sent.gradient, most)
        except categories.TooMany:
            break
        if hidden is not None:
            found = _by_units(rows, schema, hidden, draws, effort, idle, x)
            step = _LADDER[-2]
        else:
            step = _LADDER[min(idle, len(_LADDER) - 1)]
            found = _by_deltas(
                rows, schema, network, sent, targets, draws, effort, step
            )
        before = len(x)
        for row in _once(found, x):
            delta = _delta(network, sent, row, targets, step)
            if hidden is not None or _is_new(delta, deltas):
                x = np.concatenate([x, row[None]])
                if delta is not None and _is_new(delta, deltas):
                    deltas = np.concatenate([deltas, delta[None]])
        idle = 0 if len(x) > before else idle + 1
    return x


def _by_units(
    rows: Rows, schema, hidden: Hidden, draws, effort: Effort, idle: int, known
) -> np.ndarray:
    """Rows whose hidden units lie in the span, the nearest first."""
    begun = numbers.begun(rows, schema, draws if idle else None)
    x, far = forward.solved(begun, schema.numbers, hidden, effort.nearest, known)
    near = np.flatnonzero(far < _UNITS)
    return x[near[np.argsort(far[near])]]


def _by_deltas(
    rows, schema, network, sent, targets, draws, effort: Effort, step: float
):
    """Rows whose deltas do."""
    found = []
    for target in targets:

        def distance(x, target=target):
            return sent.distance(network.directions(x, target))

        scored = numbers.filled(rows, schema, distance, draws, effort.points)
        near = np.flatnonzero(scored.distance < step)
        found.append(scored.x[near[np.argsort(scored.distance[near])]])
    return np.concatenate(found)


def _delta(
    network: Network, sent: Sent, row, targets, step: float
) -> np.ndarray | None:
    """The delta `[H]` of a row, None where it does not lie in the span."""
    found = network.directions(np.tile(row, (len(targets), 1)), targets)
    far = sent.distance(found)
    return found[far.argmin()] if far.min() < step else None


def _is_new(delta: np.ndarray | None, deltas: np.ndarray) -> bool:
    if delta is None or not len(deltas):
        return delta is not None
    known = np.linalg.qr(deltas.T)[0]
    return bool(np.linalg.norm(delta - known @ (known.T @ delta)) > _NEW)


def _once(found: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Each of the rows found `[n, D]` once, the first of it, if it is not in `x`."""
    kept = []
    for row in x:
        found = found[np.abs(found - row).max(axis=1) > _SAME]
    while len(found):
        kept.append(found[0])
        found = found[np.abs(found - kept[-1]).max(axis=1) > _SAME]
    return np.reshape(kept, (-1, x.shape[1]))

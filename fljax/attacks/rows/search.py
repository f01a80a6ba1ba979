"""Rows found one after another by their deltas: those that are found leave the span.

The fewer rows it still holds, the fewer combinations of categories lie in it. For networks
whose second layer does not tell rows apart; else `units` finds more.
"""

from typing import NamedTuple

import numpy as np

from fljax.attacks.rows import categories, numbers, span
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.schema import Schema
from fljax.attacks.rows.span import Sent

_LADDER = (1e-5, 1e-4, 1e-3, 1e-2)  # distances at which a delta counts, in turn
_SAME = 1e-3  # deviations between two solutions for one row
_NEW = 1e-2  # of a delta outside of those found, that makes it another one


class Effort(NamedTuple):
    """How hard to look.

    Attributes:
      combinations: of categories that are looked at in a round, at most.
      nearest: combinations whose numbers are solved for thoroughly.
      points: at which numbers are tried in a round, where deltas tell rows.
      rounds: of search at most.
      patience: rounds through all combinations that may find nothing.
    """

    combinations: int = 30_000
    nearest: int = 2_000
    points: int = 400_000
    rounds: int = 60
    patience: int = 4


def search(
    network: Network,
    sent: Sent,
    schema: Schema,
    targets: np.ndarray,
    most: int,
    seed: int,
    effort: Effort,
) -> np.ndarray:
    """Encoded rows `[n, D]`, each once.

    Args:
      network: whose gradient was sent.
      sent: what was sent of the first layer.
      schema: of the table.
      targets: whose deltas differ in direction.
      most: rows that are enough.
      seed: of what is drawn.
      effort: how hard to look.
    """
    draws = np.random.default_rng(seed)
    x = np.zeros((0, len(schema.scale)))
    deltas = np.zeros((0, sent.gradient.shape[1]))
    idle = 0
    for _ in range(effort.rounds):
        if len(x) >= most or idle >= effort.patience:
            break
        left = span.without(sent, deltas)
        try:
            rows, _ = categories.consistent(schema, left, sent, effort.combinations)
        except categories.TooMany:
            break
        step = _LADDER[min(idle, len(_LADDER) - 1)]
        before = len(x)
        near = _by_deltas(
            rows, schema, network, sent, targets, draws, points=effort.points, step=step
        )
        for row in once(near, x):
            delta = _delta(network, sent, row, targets)
            if len(x) < most and _is_new(delta, deltas):
                x = np.concatenate([x, row[None]])
                deltas = np.concatenate([deltas, delta[None]])
        idle = 0 if len(x) > before else idle + 1
    return x


def _by_deltas(
    rows, schema, network, sent, targets, draws, *, points: int, step: float
):
    """Rows whose deltas do, within a step."""
    found = []
    for target in targets:

        def distance(x, target=target):
            return sent.distance(network.directions(x, target))

        scored = numbers.filled(rows, schema, distance, draws, points)
        near = np.flatnonzero(scored.distance < step)
        found.append(scored.x[near[np.argsort(scored.distance[near])]])
    return np.concatenate(found)


def _delta(network: Network, sent: Sent, row, targets) -> np.ndarray:
    """The delta `[H]` of a row that is nearest to the span."""
    found = network.directions(np.tile(row, (len(targets), 1)), targets)
    return found[sent.distance(found).argmin()]


def _is_new(delta: np.ndarray, deltas: np.ndarray) -> bool:
    if not len(deltas):
        return True
    known = np.linalg.qr(deltas.T)[0]
    return bool(np.linalg.norm(delta - known @ (known.T @ delta)) > _NEW)


def once(found: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Each of the rows found `[n, D]` once, the first of it, if it is not in `x`."""
    kept = []
    for row in x:
        found = found[np.abs(found - row).max(axis=1) > _SAME]
    while len(found):
        kept.append(found[0])
        found = found[np.abs(found - kept[-1]).max(axis=1) > _SAME]
    return np.reshape(kept, (-1, x.shape[1]))

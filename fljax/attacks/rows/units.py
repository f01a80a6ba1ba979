"""Rows found one after another by their hidden units.

What is found is subtracted from the first layer's gradient, and the fewer rows that is
left of, the fewer combinations of categories lie in its span.
"""

import numpy as np

from fljax.attacks.rows import categories, forward, numbers, span, weights
from fljax.attacks.rows.forward import Hidden
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.schema import Schema
from fljax.attacks.rows.search import Effort, once
from fljax.attacks.rows.span import Sent, Span

_UNITS = 1e-4  # distance at which hidden units count as a row's
_STRICT = 1e-5  # the same where near misses are many
_SAME = 2e-2  # between those of two solutions for one row of numbers


def search(
    network: Network,
    sent: Sent,
    hidden: Hidden,
    schema: Schema,
    targets: np.ndarray,
    rows: int,
    most: int,
    seed: int,
    effort: Effort,
) -> np.ndarray:
    """Encoded rows `[n, D]`, each once.

    Args:
      network: whose gradient was sent.
      sent: what was sent of the first layer.
      hidden: and of the second.
      schema: of the table.
      targets: what a target may be.
      rows: of the batch.
      most: rows that are enough.
      seed: of what is drawn.
      effort: how hard to look.
    """
    draws = np.random.default_rng(seed)
    x = np.zeros((0, len(schema.scale)))
    quiet, parts = 0, 1
    for turn in range(effort.rounds):
        if len(x) >= most or quiet >= effort.patience * parts:
            break
        # Without categories the span rules nothing out that hidden units do not.
        known = x if schema.groups else x[:0]
        left = _left(network, sent, hidden, schema, targets, known, rows)
        try:
            at_once = effort.combinations
            every, parts = categories.consistent(schema, left, sent, at_once, turn)
        except categories.TooMany:
            break
        begun = numbers.begun(every, schema, draws if quiet >= parts else None)
        tried, far = forward.solved(begun, schema.numbers, hidden, effort.nearest, x)
        # Of numbers alone there are many near misses: better ones first.
        strict = not schema.groups and quiet < 2
        near = np.flatnonzero(far < (_STRICT if strict else _UNITS))
        tried = tried[near[np.argsort(far[near])]]
        new = once(tried, x) if schema.groups else _once(tried, x, hidden)
        new = new[: most - len(x)]
        x = np.concatenate([x, new])
        quiet = 0 if len(new) else quiet + 1
    return x


def _once(found: np.ndarray, x: np.ndarray, hidden: Hidden) -> np.ndarray:
    """Each of the rows found once, if its hidden units are those of no row of `x`."""
    every = hidden.directions(np.concatenate([x, found]))
    kept = list(range(len(x)))
    for row in range(len(x), len(every)):
        off = np.linalg.norm(every[kept] - every[row], axis=1)
        if not (off < _SAME).any():
            kept.append(row)
    return found[np.array(kept[len(x) :], int) - len(x)]


def _left(
    network, sent: Sent, hidden: Hidden, schema: Schema, targets, x, rows: int
) -> Span:
    """The span of the rows that are still to be found."""
    remaining = sent.gradient
    if len(x):
        x = schema.snapped(x)
        y, counts = weights.second(network, hidden, x, targets, rows)
        deltas = network.deltas(x, y) * (counts / rows)[:, None]
        remaining = remaining - span.with_ones(x).T @ deltas
    return span.of(remaining, hidden.rank - len(x), sent.noise)

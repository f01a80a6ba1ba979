"""The attack: rows found one after another, then all of them solved for at once.

What is found leaves the span, and the fewer rows it still holds, the fewer combinations
lie in it. When all deltas are known, the rows are a linear solution whose categories and
integers come out by themselves; their own gradient shows whether they are the batch.
"""

from typing import NamedTuple

import jax
import numpy as np

from fljax.attacks.rows import forward, search, span
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.schema import Schema
from fljax.attacks.rows.search import Effort
from fljax.attacks.rows.span import Sent
from fljax.losses import LossFn
from fljax.types import Params

_NEAR = 1e-2  # of a delta to the span
_EXACT = 1e-5  # of the message, that recomputing it may miss
_TINY = 1e-30
_EFFORT = Effort()


class Found(NamedTuple):
    """Rows of a batch.

    Attributes:
      raw: `[n, D]` rows in the table's units, n at most the rows of the batch.
      y: `[n]` their targets.
      explained: share of the message that they explain, 1 if they are the batch.
      exact: whether their own message is the one that came, to rounding: the proof.
    """

    raw: np.ndarray
    y: np.ndarray
    explained: float
    exact: bool


def recover(
    params: Params,
    message: Params,
    loss_fn: LossFn,
    schema: Schema,
    rows: int,
    targets: np.ndarray,
    *,
    seed: int = 0,
    effort: Effort = _EFFORT,
) -> Found:
    """Rows behind the mean gradient of a batch.

    Args:
      params: at which it was taken, of a model with a first `TabularDense` layer.
      message: the gradient, in the precision that it travelled in.
      loss_fn: of one example.
      schema: how the table is encoded.
      rows: of the batch.
      targets: `[t]` what a row's target may be: all classes, or those of the batch.
      seed: of what the search draws.
      effort: how hard to look.

    Returns:
      What was found, all, some or none of the rows, and whether it is certain.
    """
    network = Network(params, loss_fn)
    targets = np.unique(np.asarray(targets))
    # With one output or two classes a target changes no more than a delta's length.
    ways = network.distinct(schema.off, targets)
    sent = span.sent(network.layer.gradient(message), rows)
    hidden = forward.hidden(params, message, network.layer.name, rows)
    x = search.search(network, sent, hidden, schema, ways, seed, effort)
    x = schema.encode(schema.read(x))
    distinct = search.different(sent, hidden)
    best = _judged(network, sent, message, schema, x, targets, rows, distinct)
    if len(x) == distinct:
        x = schema.encode(schema.read(_solved(network, sent, x, ways)))
        again = _judged(network, sent, message, schema, x, targets, rows, distinct)
        best = max(best, again, key=lambda found: found.explained)
    return best


def _deltas(network: Network, sent: Sent, x: np.ndarray, targets) -> np.ndarray:
    """Deltas `[n, H]` of length 1, of the target that is nearest to the span."""
    found = np.stack([network.directions(x, y) for y in targets])
    nearest = np.stack([sent.distance(each) for each in found]).argmin(axis=0)
    return found[nearest, np.arange(len(x))]


def _solved(network: Network, sent: Sent, x: np.ndarray, targets) -> np.ndarray:
    """Encoded rows by least squares from the deltas of all rows."""
    solved = sent.gradient @ np.linalg.pinv(_deltas(network, sent, x, targets))
    return (solved[1:] / solved[0]).T


def _told(network: Network, sent: Sent, x: np.ndarray, targets, rows: int):
    """The target `[n]` of each row and how often it is in the batch `[n]`.

    In a sum of matrices whose ranks add up, each has the weight `1 / (d^T G^+ x)`.
    """
    left, values, right = np.linalg.svd(sent.gradient, full_matrices=False)
    rank = sent.rank
    inverse = (right[:rank].T / values[:rank]) @ left[:, :rank].T
    behind = np.concatenate([np.ones((len(x), 1)), x], axis=1) @ inverse.T
    counts = []
    for target in targets:
        deltas = network.deltas(x, target)
        length = np.linalg.norm(deltas, axis=1, keepdims=True)
        far = sent.distance(deltas / np.maximum(length, _TINY)) > _NEAR
        count = rows / np.einsum("nh,nh->n", deltas, behind)
        counts.append(np.where(far & (len(targets) > 2), np.inf, count))
    many = np.stack(counts)
    off = np.abs(many - np.clip(np.round(many), 1, rows))
    chosen = np.where(np.isfinite(off), off, np.inf).argmin(axis=0)
    nearest = np.clip(np.round(many[chosen, np.arange(len(x))]), 1, rows)
    return targets[chosen], nearest.astype(int)


def _judged(
    network, sent, message, schema: Schema, x, targets, rows: int, distinct: int
) -> Found:
    """Recomputes the message from the rows, as often as they are there."""
    if not len(x):
        return Found(schema.read(x), targets[:0], 0.0, False)
    y, counts = _told(network, sent, x, targets, rows)
    if distinct == rows:
        counts = np.ones_like(counts)
    places = np.repeat(np.arange(len(x)), counts)[:rows]
    weights = np.zeros(rows)
    weights[: len(places)] = 1 / rows
    padded = np.concatenate([places, np.zeros(rows - len(places), int)])
    ours = network.message(x[padded], y[padded], weights)
    share = (
        _square(jax.tree.map(np.subtract, ours, message)) / _square(message)
    ) ** 0.5
    exact = bool(len(places) == rows and share < _EXACT)
    return Found(schema.read(x[places]), y[places], max(0.0, 1 - share), exact)


def _square(tree: Params) -> float:
    return sum(
        float(np.square(leaf).sum(dtype=float)) for leaf in jax.tree.leaves(tree)
    )

"""Whole rows from one message of several local steps, all over the same rows.

A step's gradient of the first layer is `sum_i (1, x_i) d_i^T`, so that of all steps still
spans the rows, and few rows with one category of each group lie in there. But the layers
behind the first have moved on the way, and hidden units and gradients of the sent network
fit only roughly. What stays is which units are off for a row: those that are far below
zero add nothing for it in any step. Rows that the message can do without, unit by unit,
are left out until as many are left as it spans. What is found is proven by the steps
themselves, taken again.
"""

import numpy as np

from fljax.attacks.rows import categories, network, span
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.recovery import EFFORT, Found, check_counts
from fljax.attacks.rows.schema import Schema
from fljax.attacks.rows.search import Effort
from fljax.attacks.rows.span import Sent
from fljax.attacks.rows.steps import Steps, moved
from fljax.losses import LossFn
from fljax.types import Params

_OFF = -0.1  # below which no step switches a unit on
_MANY = 60  # rows in the span, of which it is not tried which are the batch's
_CUT = 1e-9  # of singular values


def recover(
    params: Params,
    message: Params,
    loss_fn: LossFn,
    steps: Steps,
    schema: Schema,
    rows: int,
    targets: np.ndarray,
    *,
    effort: Effort = EFFORT,
) -> Found:
    """Rows behind a message of `moved`; none where categories leave numbers open.

    Args:
      params: that were sent, of a model with a first `TabularDense` layer.
      message: that came back.
      loss_fn: of one example.
      steps: that the client has taken.
      schema: how the table is encoded.
      rows: of the batch.
      targets: `[t]` what a row's target may be.
      effort: how hard to look; the combinations of categories count.

    Raises:
      ValueError: another model, no rows or targets, or numbers that are not finite.
    """
    check_counts(rows, targets)
    asked = Network(params, loss_fn)
    if not network.says_something(params, message):
        return Found.nothing(schema)
    if not np.any(asked.layer.gradient(message)):
        return Found.nothing(schema)  # the layers behind it were off
    sent = span.sent(asked.layer.gradient(message), rows)
    x = _candidates(schema, sent, effort.combinations)
    if not sent.rank <= len(x) <= _MANY:
        return Found.nothing(schema)
    first = asked.layer.gradient(params)
    ones = span.with_ones(x)
    x = x[_needed(sent.gradient, ones, ones @ first > _OFF, sent.rank)]
    y = _targets(asked, sent.gradient, x, np.unique(np.asarray(targets)))

    def judged(x: np.ndarray) -> tuple[Found, np.ndarray]:
        ours = moved(params, loss_fn, x, y, steps)
        missed = network.missed(ours, message)
        exact = len(x) == rows and missed < network.ROUNDING
        found = Found.of(schema.read(x), y, missed, exact)
        return found, _parts(asked.layer.gradient(ours), x)

    found, parts = judged(x)
    if not parts.any(axis=1).all():
        return found  # of a row that adds nothing there is nothing to solve for
    solved = sent.gradient @ np.linalg.pinv(parts)
    again, _ = judged(schema.encode(schema.read((solved[1:] / solved[0]).T)))
    return max(found, again, key=lambda found: found.explained)


def _candidates(schema: Schema, sent: Sent, most: int) -> np.ndarray:
    """Rows `[n, D]` of the span, none if their numbers are not told."""
    everywhere = span.of(sent.gradient, sent.rank, sent.noise)
    try:
        found, parts = categories.consistent(schema, everywhere, sent, most)
    except categories.TooMany:
        return np.zeros((0, len(schema.scale)))
    told = parts == 1 and not found.ways.shape[1]
    return schema.encode(schema.read(found.x if told else found.x[:0]))


def _needed(update: np.ndarray, rows: np.ndarray, on: np.ndarray, count: int):
    """Places `[count]` of the rows that the update `[1 + D, H]` cannot do without.

    Args:
      update: of the first layer.
      rows: `[n, 1 + D]` in its span.
      on: `[n, H]` which units a row may have on.
      count: rows that it spans.
    """
    kept = list(range(len(rows)))
    while len(kept) > count:
        without = [[at for at in kept if at != out] for out in kept]
        kept = min(without, key=lambda some: _left(update, rows[some], on[some]))
    return np.array(kept)


def _left(update: np.ndarray, rows: np.ndarray, on: np.ndarray) -> float:
    """Of the update what the rows do not explain with the units that they have on."""
    left = 0.0
    for column, there in zip(update.T, on.T, strict=True):
        chosen = rows[there].T
        parts = np.linalg.lstsq(chosen, column, rcond=_CUT)[0]
        left = max(left, float(np.linalg.norm(column - chosen @ parts)))
    return left


def _targets(asked: Network, update: np.ndarray, x: np.ndarray, targets: np.ndarray):
    """Of each row the target `[n]` whose delta points along the row's part."""
    parts = _parts(update, x)
    along = [np.sum(asked.directions(x, y) * parts, axis=1) for y in targets]
    return targets[np.argmax(along, axis=0)]


def _parts(update: np.ndarray, x: np.ndarray) -> np.ndarray:
    """`[n, H]`, what each row adds to an update `[1 + D, H]`."""
    return np.linalg.pinv(span.with_ones(x).T, rcond=_CUT) @ update

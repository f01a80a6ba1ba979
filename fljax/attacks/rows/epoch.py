"""Whole rows from one message of local steps, each over other rows: of one epoch.

The message is the mean over all rows of gradients, each at the model that its step began
with. The first step began with the model that was sent: of all rows the first step's
alone have hidden units of that model in the second layer's span (or deltas in the
first's). With these the step is taken again; what they have added to the message is
subtracted, and the rest is a message of the steps that are left, begun at a model that is
known now. So all rows, their targets and their order are found, step by step, and the
steps, taken again, prove it.

The params that come back are rounded, which hides a large number's last digits. But the
same steps over nearly the same rows are rounded nearly alike: what our message misses is
solved for, again and again, as long as that brings it nearer.
"""

from typing import NamedTuple

import jax
import numpy as np

from fljax import precision
from fljax.attacks.rows import network, observed_gradient
from fljax.attacks.rows import steps as steps_lib
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.recovery import EFFORT, Found, check_counts
from fljax.attacks.rows.schema import Schema
from fljax.attacks.rows.search import Effort
from fljax.attacks.rows.steps import Steps
from fljax.losses import LossFn
from fljax.types import Params

_TIMES, _PATIENCE = 60, 15  # that is solved for what is missed, and without success


class _Message(NamedTuple):
    """What came back of `steps`, and the params that they began with."""

    params: Params
    moved: Params
    loss_fn: LossFn
    steps: Steps


@precision.full
def recover(
    params: Params,
    message: Params,
    loss_fn: LossFn,
    steps: Steps,
    schema: Schema,
    rows: int,
    targets: np.ndarray,
    *,
    seed: int = 0,
    effort: Effort = EFFORT,
) -> Found:
    """Rows behind a message of `steps.moved`, in the order of the steps.

    Args:
      params: that were sent, of a model with a first `TabularDense` layer.
      message: that came back.
      loss_fn: of one example.
      steps: that the client has taken, each over other rows.
      schema: how the table is encoded.
      rows: of all steps.
      targets: `[t]` what a row's target may be.
      seed: of what the search draws.
      effort: how hard to look.

    Returns:
      What was found: all rows, or those of the first steps, and whether it is certain.

    Raises:
      ValueError: no rows or targets, the steps are not over so many rows, or a message
        is not finite.
    """
    check_counts(rows, targets)
    if steps.rows < 1 or steps.count * steps.rows != rows:
        raise ValueError(
            f"steps: expected {rows} rows in all, got {steps.count} of {steps.rows}"
        )
    if not network.says_something(params, message):
        return Found.nothing(schema)
    came = _Message(params, message, loss_fn, steps)
    x, y, missed = _by_steps(came, schema, rows, targets, seed, effort)
    if len(x) == rows:
        x, missed = _nearer(came, schema, x, y)
    exact = len(x) == rows and missed < network.ROUNDING
    return Found.of(schema.read(x), y, missed, exact)


def _by_steps(came: _Message, schema: Schema, rows: int, targets, seed, effort: Effort):
    """Encoded rows `[n, D]`, their targets `[n]`, and the share that they leave."""
    count = came.steps.rows
    now, rest = came.params, came.moved
    x, y = np.zeros((0, len(schema.scale)), np.float32), np.zeros(0, targets.dtype)
    while len(x) < rows:
        left = rows - len(x)
        mean = jax.tree.map(lambda leaf, by=rows / left: leaf * np.float32(by), rest)
        seen = observed_gradient.observe(now, mean, came.loss_fn, schema, left, targets)
        new = schema.snapped(seen.search_rows(seed, effort, count))
        about = seen.weights(new)
        places = np.repeat(np.arange(len(new)), about.counts)[:count]
        step = new[places], about.y[places]
        x, y = np.concatenate([x, step[0]]), np.concatenate([y, step[1]])
        added = seen.network.message(*step, np.full(len(places), 1 / rows))
        rest = jax.tree.map(np.subtract, rest, added)
        if len(places) < count:
            break
        now = steps_lib.stepped(seen.network, now, *step, came.steps.rate)
    explained = jax.tree.map(np.subtract, came.moved, rest)
    return x, y, network.missed(explained, came.moved)


def _nearer(came: _Message, schema: Schema, x: np.ndarray, y: np.ndarray):
    """All rows `[B, D]`, solved for what their message misses, and the share of that."""
    best, least, since = x, np.inf, 0
    for _ in range(_TIMES):
        deltas, ours = _taken(came, x, y)
        missed = network.missed(ours, came.moved)
        best, least, since = (
            (x, missed, 0) if missed < least else (best, least, since + 1)
        )
        if since == _PATIENCE:
            break
        layer = network.first_layer(came.params)
        gap = layer.gradient(came.moved) - layer.gradient(ours)
        by_row = gap @ np.linalg.pinv(deltas / len(x))  # [1 + D, B]
        x = schema.encode(schema.read(x + (by_row[1:] - by_row[0] * x.T).T))
    return best, least


def _taken(came: _Message, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, Params]:
    """Deltas `[B, H]` of the rows in their steps, and the message that these make."""
    found, now = [], came.params
    for each, then in steps_lib.walked(came.params, came.loss_fn, x, y, came.steps):
        found.append(Network(now, came.loss_fn).deltas(x[each], y[each]))
        now = then
    return np.concatenate(found), steps_lib.over(came.params, now, came.steps)

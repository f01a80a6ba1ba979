"""Whole rows of one client from its gradients at the models of many rounds.

Where a batch has more rows than a layer has inputs and units, its gradient's span tells
nothing. But the same rows are behind the gradients of all rounds, each at another model
that the server knows: all of them are simulated, and rows and targets are solved for until
the simulated gradients are those that came.

The misfit has many dead ends. Out of them some rows, drawn by chance, are drawn anew, and
all are solved for again from there; what fits best is kept. The rows that give all messages
to rounding are the batch.
"""

import jax
import numpy as np

from fljax.attacks.rows import annealing, layers, network
from fljax.attacks.rows.annealing import SOFT, Bounds
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.recovery import Found
from fljax.attacks.rows.schema import Schema
from fljax.losses import ExampleLoss
from fljax.types import Params

SEARCHES = 40
_AGAIN = SOFT.index(0.1)  # stage from which some rows are looked for again
_ANEW = 4  # rows at most that are drawn anew
_SOLVED = 1e-5  # of the squares, that rows miss which are right
_EXACT, _MOST = 1e-4, 0.9  # of a message, that recomputing it may miss; of how many


def recover(
    params: Params,
    message: Params,
    loss_fn: ExampleLoss,
    schema: Schema,
    rows: int,
    targets: tuple[float, float],
    *,
    seed: int = 0,
    searches: int = SEARCHES,
) -> Found:
    """Rows behind mean gradients of the same batch at `Q` models.

    Args:
      params: of the models, leaves `[Q, ...]`: an `MLP` with biases and one output.
      message: the gradients, likewise.
      loss_fn: of one example.
      schema: how the table is encoded.
      rows: of the batch.
      targets: least and largest that a target may be.
      seed: of what is drawn.
      searches: how many at most.

    Raises:
      ValueError: the model has more than one output.
    """
    bounds = _bounds(schema, targets)
    seen = layers.seen(params, message, loss_fn.element_loss)
    size = np.sqrt(sum(np.square(each, dtype=float).sum() for each in seen.gradients))
    if not 0 < size < np.inf:
        raise ValueError(f"message: expected gradients that are not 0, got norm {size}")
    about = seen.layers, seen.gradients
    draws = np.random.default_rng(seed)
    best, least = _drawn(draws, rows, bounds), np.inf
    for number in range(searches):
        begun = best.copy()
        if number:
            count = draws.integers(1, min(_ANEW, rows) + 1)
            at = draws.choice(rows, count, replace=False)
            begun[at] = _drawn(draws, len(at), bounds)
        first = np.int32(_AGAIN if number else 0)
        z, missed = annealing.annealed(seen.element_loss, about, begun, bounds, first)
        if missed < least:
            best, least = np.asarray(z), float(missed)
        if least < _SOLVED:
            break
    return _judged(params, message, loss_fn, schema, best)


def _bounds(schema: Schema, targets: tuple[float, float]) -> Bounds:
    """Of encoded rows and of a target."""
    low, high = schema.off.astype(float), schema.on.astype(float)
    low[schema.numbers], high[schema.numbers] = schema.range(0.0)
    low, high = np.append(low, targets[0]), np.append(high, targets[1])
    return Bounds(low.astype(np.float32), high.astype(np.float32))


def _drawn(draws: np.random.Generator, rows: int, bounds: Bounds) -> np.ndarray:
    """Rows `[B, D + 1]` that may be: inputs of about one deviation."""
    z = draws.normal(size=(rows, len(bounds.low)))
    return z.clip(bounds.low, bounds.high).astype(np.float32)


def _judged(params, message, loss_fn, schema: Schema, z: np.ndarray) -> Found:
    """Recomputes the messages from the rows as they are read."""
    raw, y = schema.read(z[:, :-1].astype(float)), z[:, -1]
    x, shares = schema.encode(raw), np.full(len(z), 1 / len(z))

    def missed(number: int) -> float:
        model, came = jax.tree.map(lambda leaf: leaf[number], (params, message))
        return network.missed(Network(model, loss_fn).message(x, y, shares), came)

    every = np.array([missed(each) for each in range(len(jax.tree.leaves(params)[0]))])
    exact = float(np.mean(every < _EXACT)) >= _MOST
    return Found(raw, y, max(0.0, 1 - float(np.median(every))), exact)

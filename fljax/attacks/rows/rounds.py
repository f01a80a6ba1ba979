"""Whole rows of one client from its gradients at the models of many rounds.

Where a batch has more rows than a layer has inputs and units, its gradient's span tells
nothing. But the same rows are behind the gradients of all rounds, each at another model
that the server knows: all of them are simulated, and rows and targets are solved for until
the simulated gradients are those that came.

The misfit has many dead ends. Out of them some rows, drawn by chance, are drawn anew, and
all are solved for again from there; what fits best is kept.

Rows are proven that give nine in ten of the messages to rounding, a row that lies on the
corner of a unit being on either side of it in the others, if no rows close by give those too.
"""

import jax
import numpy as np

from fljax import precision
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
_EXACT, _MOST = 1e-4, 0.9  # of a message, that recomputing it may miss; of how many
_ALONE = 1e-6  # of the largest eigenvalue has the smallest where no other rows fit


@precision.full
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
      params: of the models, leaves `[Q, ...]`: an `MLP` with hidden layers, biases and one
        output.
      message: the gradients, likewise.
      loss_fn: of one example.
      schema: how the table is encoded; numbers are looked for near 0 in units of 1.
      rows: of the batch.
      targets: least and largest that a target may be, looked for in the same way.
      seed: of what is drawn.
      searches: how many at most.

    Returns:
      What was found; `explained` is that of the median message.

    Raises:
      ValueError: for another model, or arguments that are not finite or out of range.
    """
    _check(params, message, rows, targets, searches)
    activation = getattr(
        getattr(loss_fn.apply_fn, "module", None), "activation", "relu"
    )
    if activation != "relu":
        raise ValueError(f"loss_fn: expected a network with ReLU, got {activation}")
    bounds = _bounds(schema, targets)
    seen = layers.seen(params, message, loss_fn.element_loss)
    draws = np.random.default_rng(seed)
    best, least, found = _drawn(draws, rows, bounds), np.inf, None
    for number in range(searches):
        begun = best.copy()
        if number:
            count = int(draws.integers(1, min(_ANEW, rows) + 1))
            at = draws.choice(rows, count, replace=False)
            begun[at] = _drawn(draws, count, bounds)
        first = np.int32(_AGAIN if number else 0)
        about = seen.layers, seen.gradients
        z, missed = annealing.annealed(seen.element_loss, about, begun, bounds, first)
        if found is None or missed < least:
            best, least = np.asarray(z), float(missed)
            found = judged(params, message, loss_fn, schema, best)
        if found.exact:
            break
    assert found is not None  # there is a search at least
    return found


def _check(params, message, rows: int, targets, searches: int) -> None:
    """Refuses what no rows can be found from."""
    if rows < 1 or searches < 1:
        raise ValueError(
            f"rows, searches: expected at least 1, got {rows} and {searches}"
        )
    if not -np.inf < targets[0] < targets[1] < np.inf:
        raise ValueError(f"targets: expected least below largest, got {targets}")
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((params, message))):
        raise ValueError("params, message: expected finite numbers")
    size = sum(
        np.square(leaf, dtype=float).reshape(len(leaf), -1).sum(axis=1)
        for leaf in jax.tree.leaves(message)
    )
    if not np.all(size > 0):
        raise ValueError(
            f"message: expected no gradient of zeros, got {np.sum(size == 0)}"
        )


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


def judged(
    params: Params,
    message: Params,
    loss_fn: ExampleLoss,
    schema: Schema,
    z: np.ndarray,
) -> Found:
    """Recomputes the messages from rows and targets `[B, D + 1]`, the rows as read."""
    raw, y = schema.read(z[:, :-1].astype(float)), z[:, -1]
    x, shares = schema.encode(raw), np.full(len(z), 1 / len(z))

    def missed(number: int) -> float:
        model, came = jax.tree.map(lambda leaf: leaf[number], (params, message))
        return network.missed(Network(model, loss_fn).message(x, y, shares), came)

    every = np.array([missed(each) for each in range(len(jax.tree.leaves(params)[0]))])
    fits = every < _EXACT
    exact = bool(fits.mean() >= _MOST)
    if exact:  # what the other messages would tell is not these rows
        models, sent = jax.tree.map(lambda leaf: leaf[fits], (params, message))
        seen = layers.seen(models, sent, loss_fn.element_loss)
        exact = layers.tells_apart(seen, np.column_stack([x, y])) > _ALONE
    return Found.of(raw, y, float(np.median(every)), exact)

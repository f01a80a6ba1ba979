"""The attack: rows found one after another, then all of them solved for at once.

What is found leaves the span, and the fewer rows it still holds, the fewer combinations
lie in it. When all deltas are known, the rows are a linear solution whose categories and
integers come out by themselves; their own gradient shows whether they are the batch.
"""

from typing import NamedTuple

import numpy as np

from fljax.attacks.rows import alone, observed_gradient, other_targets, polish
from fljax.attacks.rows import network as network_lib
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.schema import Schema
from fljax.attacks.rows.search import Effort
from fljax.attacks.rows.span import Sent
from fljax.losses import LossFn
from fljax.types import Params

EFFORT = Effort()
_HALF = 0.5  # of what is missed is left at most, where numbers alone were wrong
_ENOUGH = network_lib.ROUNDING / 10  # of a message may be missed without looking closer


class Found(NamedTuple):
    """Rows of a batch.

    Attributes:
      raw: `[n, D]` rows in the table's units, n at most the rows of the batch.
      y: `[n]` their targets.
      explained: share of the message that they explain, 1 if they are the batch.
      exact: whether their own message is the one that came, to rounding, and no other
        rows with it were found close by (`alone`), nor have these with other targets
        (`other_targets`; of several steps, in `epoch` and `repeated`, others are not looked
        for): the proof, but for digits that change it by less, as the last ones of
        large numbers do.
    """

    raw: np.ndarray
    y: np.ndarray
    explained: float
    exact: bool

    @classmethod
    def of(cls, raw: np.ndarray, y: np.ndarray, missed: float, exact: bool) -> "Found":
        """Rows whose own message misses so much of the one that came."""
        return cls(raw, y, max(0.0, 1 - missed), exact)

    @classmethod
    def nothing(cls, schema: Schema) -> "Found":
        """No row at all."""
        return cls(np.zeros((0, len(schema.mean))), np.zeros(0), 0.0, False)


def recover(
    params: Params,
    message: Params,
    loss_fn: LossFn,
    schema: Schema,
    rows: int,
    targets: np.ndarray,
    *,
    seed: int = 0,
    effort: Effort = EFFORT,
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

    Raises:
      ValueError: another model, no rows or targets, or numbers that are not finite.
    """
    check_counts(rows, targets)
    if not network_lib.says_something(params, message):
        return Found.nothing(schema)
    seen = observed_gradient.observe(params, message, loss_fn, schema, rows, targets)
    network = seen.network

    def tried(x: np.ndarray) -> Found:
        about = seen.weights(x)
        places = np.repeat(np.arange(len(x)), about.counts)[:rows]
        return judged(network, message, schema, x[places], about.y[places], rows)

    x = seen.search_rows(seed, effort)
    best = tried(schema.snapped(x))
    if len(x) == seen.rank:
        for near in schema.snapped(x), x:
            solved = _solved(network, seen.sent, near, seen.distinct_targets)
            best = max(best, tried(schema.snapped(solved)), key=_explained)
    if len(best.raw) == rows and 1 - best.explained > _ENOUGH:
        near = schema.encode(best.raw), best.y
        x, y = polish.polished(network, message, *near, schema, seen.targets)
        again = judged(network, message, schema, x, y, rows)
        # Where something else is wrong, numbers that were right are bent to make up for it.
        if 1 - again.explained < _HALF * (1 - best.explained):
            best = again
    if best.exact:
        about = network, message, schema.encode(best.raw), best.y
        open_ = other_targets.exist(*about, seen.targets)
        best = best._replace(exact=not open_ and alone.alone(*about, schema))
    return best


def check_counts(rows: int, targets: np.ndarray) -> None:
    """ValueError unless there is a row to find, and a target that it may have."""
    if rows < 1 or not len(targets):
        raise ValueError(
            f"rows, targets: expected at least 1, got {rows} and {len(targets)}"
        )


def _explained(found: Found) -> float:
    return found.explained


def _deltas(network: Network, sent: Sent, x: np.ndarray, targets) -> np.ndarray:
    """Deltas `[n, H]` of length 1, of the target that is nearest to the span."""
    found = np.stack([network.directions(x, y) for y in targets])
    nearest = np.stack([sent.distance(each) for each in found]).argmin(axis=0)
    return found[nearest, np.arange(len(x))]


def _solved(network: Network, sent: Sent, x: np.ndarray, targets) -> np.ndarray:
    """Encoded rows by least squares from the deltas of all rows."""
    solved = sent.gradient @ np.linalg.pinv(_deltas(network, sent, x, targets))
    return (solved[1:] / solved[0]).T


def judged(
    network: Network,
    message: Params,
    schema: Schema,
    x: np.ndarray,
    y: np.ndarray,
    rows: int,
) -> Found:
    """Reads rows and recomputes the message from them.

    Args:
      network: at which it was taken.
      message: mean gradient of the batch.
      schema: how the table is encoded.
      x: `[n, D]` encoded rows, at most those of the batch.
      y: `[n]` their targets.
      rows: of the batch.
    """
    raw = schema.read(x)
    if not len(x):
        return Found(raw, y, 0.0, False)
    # Of the batch's size whatever was found, so that one program serves all.
    places = np.arange(rows) % len(x)
    shares = np.where(np.arange(rows) < len(x), 1 / rows, 0.0)
    ours = network.message(schema.encode(raw)[places], y[places], shares)
    missed = network_lib.missed(ours, message)
    exact = bool(len(x) == rows and missed < network_lib.ROUNDING)
    return Found.of(raw, y, missed, exact)

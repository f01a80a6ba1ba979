"""Whether a batch is the only one, as far as can be told, that has its message.

Rows that switch on the same units may be told by their mean alone: there are directions in
which the numbers of the batch can be moved and the message stays. To first order these are
what a small singular value of its Jacobian belongs to. Along each of them the rows are
moved aside and fitted to the message again: they come back, or the batch is not proven.
"""

import numpy as np
from scipy import optimize

from fljax.attacks.rows import network as network_lib
from fljax.attacks.rows import polish
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.schema import Schema
from fljax.types import Params

_LOOSE = 1e-3  # of the largest singular value, below which a direction is tried
_DIRECTIONS = 3  # of the smallest ones
_ASIDE = (0.3, 0.1, 0.03)  # how far the number is moved that is moved furthest
_BACK = 0.01  # from where a row is another one


def alone(
    network: Network, message: Params, x: np.ndarray, y: np.ndarray, schema: Schema
) -> bool:
    """Whether no other batch close by has the message, to rounding.

    A message of too many numbers is not looked at, and counts as alone. A direction in
    which nothing fits, neither these rows nor others, does not.

    Args:
      network: at which it was taken.
      message: mean gradient of the batch.
      x: `[B, D]` encoded rows with this message, all of the batch.
      y: `[B]` their targets.
      schema: how the table is encoded.
    """
    if not len(schema.numbers) or polish.too_large(message, x, schema):
        return True
    for direction in _open(network, message, x, y, schema):
        fitted = [
            z
            for far in _ASIDE
            for z in _fitted(network, message, x, y, schema, far * direction)
        ]
        if not fitted or any(_differ(z, x, y) for z in fitted):
            return False
    return True


def _open(network: Network, message: Params, x, y, schema: Schema) -> list[np.ndarray]:
    """Directions `[B, n]` in which the message hardly changes, their largest entry 1."""
    given = network.loss_fn, network.params, message, np.float32(x), y
    slope = np.asarray(polish.slopes(*given, schema.numbers)[0], float)
    values, vectors = np.linalg.eigh(slope.T @ slope)
    # <=, for a message on which no number has any influence has all directions open.
    small = np.flatnonzero(values <= _LOOSE**2 * values[-1])[:_DIRECTIONS]
    found = [vectors[:, at].reshape(len(x), -1) for at in small]
    return [each / np.abs(each).max() for each in found]


def _fitted(
    network: Network, message: Params, x, y, schema: Schema, aside: np.ndarray
) -> list[np.ndarray]:
    """Rows `[B, D]` with the message, from either side of these; none where none fit."""
    shares, found = np.full(len(x), 1 / len(x)), []
    for side in aside, -aside:
        z = np.array(x, float)
        z[:, schema.numbers] += side
        z = polish.fitted(network, message, z, y, schema)
        missed = network_lib.missed(network.message(z, y, shares), message)
        if missed < network_lib.ROUNDING:
            found.append(z)
    return found


def _differ(one: np.ndarray, other: np.ndarray, y: np.ndarray) -> bool:
    """Whether they are not the same rows `[B, D]` in another order, target by target."""
    far = np.abs(one[:, None] - other[None]).max(axis=2)
    far = np.where(y[:, None] == y[None], far, np.inf)
    far = np.minimum(far, 1 / _BACK)  # an assignment takes no infinity
    rows, columns = optimize.linear_sum_assignment(far)
    return bool(far[rows, columns].max() > _BACK)

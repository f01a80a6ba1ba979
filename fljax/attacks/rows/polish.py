"""All numbers of a batch at once, by Gauss-Newton steps on the whole message.

One row after another is found from its layer's gradient alone, whose rounding a batch
nearly as large as the layer magnifies. The whole message says many times more than the
numbers are, so that from nearby they are as exact as it is.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fljax import precision
from fljax.attacks.rows import network as network_lib
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.schema import Schema
from fljax.types import Params

_STEPS = 30
_DAMPING, _EASIER, _HARDER = 1e-3, 0.1, 10.0
_ENOUGH = network_lib.ROUNDING / 100
_FLAT = 1e-12  # of the largest, added to every eigenvalue
_MOST = 1e8  # entries of the Jacobian


def polished(
    network: Network,
    message: Params,
    x: np.ndarray,
    y: np.ndarray,
    schema: Schema,
    targets: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Encoded rows `[B, D]` and targets `[B]` whose message is nearest to what came.

    Targets that are numbers and integers are rounded one after the other, and what is left
    is moved again. Classes and categories stay, and where the message has more numbers by
    those of the batch than memory should hold, all does.

    Args:
      network: at which it was taken.
      message: mean gradient of the batch.
      x: `[B, D]` encoded rows near the batch's, all of them.
      y: `[B]` their targets.
      schema: how the table is encoded.
      targets: `[t]` what a target may be.
    """
    if too_large(message, x, schema):
        return x, y
    if np.issubdtype(targets.dtype, np.floating):
        x, y = _moved(network, message, x, y, schema.numbers, free_targets=True)
        y = _nearest(y, targets)
    return fitted(network, message, x, y, schema), y


def fitted(
    network: Network, message: Params, x: np.ndarray, y: np.ndarray, schema: Schema
) -> np.ndarray:
    """Encoded rows `[B, D]` with these targets whose message is nearest to what came.

    Args:
      network: at which it was taken.
      message: mean gradient of the batch.
      x: `[B, D]` encoded rows to begin with, whose categories stay.
      y: `[B]` their targets, which stay.
      schema: how the table is encoded.
    """
    numbers, others = schema.numbers, schema.numbers[~schema.whole]
    x, _ = _moved(network, message, x, y, numbers)
    if len(others) < len(numbers):
        x, _ = _moved(network, message, schema.snapped(x), y, others)
    return x


def too_large(message: Params, x: np.ndarray, schema: Schema) -> bool:
    """Whether the message's derivatives by all numbers are more than memory should hold."""
    size = sum(leaf.size for leaf in jax.tree.leaves(message))
    return size * len(x) * (len(schema.numbers) + 1) > _MOST


def _moved(network: Network, message, x, y, numbers, free_targets: bool = False):
    """Rows and targets after steps of these numbers, and of targets if they are free."""
    if not len(numbers) and not free_targets:
        return x, y
    shares = np.full(len(x), 1 / len(x))

    def far(rows: np.ndarray, y: np.ndarray) -> float:
        return network_lib.missed(network.message(rows, y, shares), message)

    def stepped(damping: float):
        """The rows and targets that a step leads to."""
        sizes = np.diag(square)
        step = damping * sizes + (_FLAT * sizes.max() or 1.0)  # no slope: no step
        moved = np.linalg.solve(square + np.diag(step), along).reshape(len(x), -1)
        rows = best[0].copy()
        rows[:, numbers] -= moved[:, : len(numbers)]
        return rows, best[1] - moved[:, -1] if free_targets else best[1]

    best, least, damping = (np.asarray(x, float), y), far(x, y), _DAMPING
    for _ in range(_STEPS):
        if least < _ENOUGH or damping > 1 / _DAMPING:
            break
        found = slopes(
            network.loss_fn,
            network.params,
            message,
            np.float32(best[0]),
            best[1],
            numbers,
            free_targets=free_targets,
        )
        slope, off = (np.asarray(each, float) for each in found)
        square, along = slope.T @ slope, slope.T @ off
        tried = stepped(damping)
        now = far(*tried)
        better = now < least
        best, least = (tried, now) if better else (best, least)
        damping *= _EASIER if better else _HARDER
    return best


def _nearest(y: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Each target `[B]` as the nearest of those `[t]` that it may be."""
    return targets[np.abs(y[:, None] - targets).argmin(axis=1)]


@functools.partial(jax.jit, static_argnums=0, static_argnames="free_targets")
@precision.full
def slopes(
    loss_fn: Callable, params, message, x, y, numbers, free_targets: bool = False
):
    """The misfit `[P]` by n numbers of all B rows, `[P, B * n]`, and itself.

    Args:
      loss_fn: of one example.
      params: at which the message was taken.
      message: mean gradient of the batch.
      x: `[B, D]` encoded rows.
      y: `[B]` their targets.
      numbers: `[n]` columns.
      free_targets: whether the target of a row is one more number of it.
    """

    def off(moved):
        rows = x.at[:, numbers].add(moved[:, : len(numbers)])
        told = y + moved[:, -1] if free_targets else y
        ours = network_lib.gradient(loss_fn, params, rows, told, 1 / len(x))
        return ravel_pytree(jax.tree.map(jnp.subtract, ours, message))[0]

    still = jnp.zeros((len(x), len(numbers) + free_targets))
    return jax.jacfwd(off)(still).reshape(-1, still.size), off(still)

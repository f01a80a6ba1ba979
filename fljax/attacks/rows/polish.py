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

from fljax.attacks.rows import network as network_lib
from fljax.attacks.rows.network import Network
from fljax.types import Params

_STEPS = 60
_DAMPING, _EASIER, _HARDER = 1e-3, 0.1, 10.0
_ENOUGH = network_lib.ROUNDING / 30
_FLAT = 1e-12  # of the largest, added to every eigenvalue


def polished(
    network: Network,
    message: Params,
    x: np.ndarray,
    y: np.ndarray,
    numbers: np.ndarray,
    targets: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Encoded rows `[B, D]` and targets `[B]` whose message is nearest to what came.

    Args:
      network: at which it was taken.
      message: mean gradient of the batch.
      x: `[B, D]` encoded rows near the batch's, all of them.
      y: `[B]` their targets; classes stay.
      numbers: `[Dn]` places of the numbers; categories stay.
      targets: `[t]` what a target may be.
    """
    shares = np.full(len(x), 1 / len(x))
    free = bool(np.issubdtype(targets.dtype, np.floating))

    def far(rows: np.ndarray, y: np.ndarray) -> float:
        return network_lib.missed(network.message(rows, y, shares), message)

    def stepped(damping: float):
        """The rows and targets that a step leads to."""
        step = damping * np.diag(square) + _FLAT * np.diag(square).max()
        moved = np.linalg.solve(square + np.diag(step), along).reshape(len(x), -1)
        rows = best[0].copy()
        rows[:, numbers] -= moved[:, : len(numbers)]
        return rows, best[1] - moved[:, -1] if free else best[1]

    best, least, damping = (x, y), far(x, y), _DAMPING
    for _ in range(_STEPS):
        if least < _ENOUGH or damping > 1 / _DAMPING:
            break
        sent = network.loss_fn, network.params, message
        equations = _normal(*sent, np.float32(best[0]), best[1], numbers, free)
        square, along = (np.asarray(each, float) for each in equations)
        tried = stepped(damping)
        now = far(*tried)
        better = now < least
        best, least = (tried, now) if better else (best, least)
        damping *= _EASIER if better else _HARDER
    return best[0], _nearest(best[1], targets) if free else best[1]


def _nearest(y: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Each target `[B]` as the nearest of those `[t]` that it may be."""
    return targets[np.abs(y[:, None] - targets).argmin(axis=1)]


@functools.partial(jax.jit, static_argnums=(0, 6))
def _normal(loss_fn: Callable, params, message, x, y, numbers, free: bool):
    """Normal equations `[n, n]` and `[n]` of the misfit by the n numbers of all rows."""

    def off(moved):
        rows = x.at[:, numbers].add(moved[:, : len(numbers)])
        told = y + moved[:, -1] if free else y
        ours = network_lib.gradient(loss_fn, params, rows, told, 1 / len(x))
        return ravel_pytree(jax.tree.map(jnp.subtract, ours, message))[0]

    still = jnp.zeros((len(x), len(numbers) + free))
    slope = jax.jacfwd(off)(still).reshape(-1, still.size)
    square = jnp.matmul(slope.T, slope, precision=jax.lax.Precision.HIGHEST)
    return square, jnp.matmul(slope.T, off(still), precision=jax.lax.Precision.HIGHEST)

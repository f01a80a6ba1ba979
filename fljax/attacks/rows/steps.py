"""Local steps of gradient descent, taken as a client takes them: in float32."""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from fljax.attacks.rows.network import Network
from fljax.losses import LossFn
from fljax.types import Params


class Steps(NamedTuple):
    """Steps of gradient descent on the mean loss of rows.

    Attributes:
      count: how many.
      rate: of each.
      rows: of a step, each row being in one of them; 0 for all rows in every step.
    """

    count: int
    rate: float
    rows: int = 0

    def of(self, number: int) -> slice:
        """Which rows a step is over."""
        return slice(self.rows * number, self.rows * (number + 1) or None)


def stepped(
    network: Network, params: Params, x: np.ndarray, y: np.ndarray, rate: float
) -> Params:
    """The network's params after a step over encoded rows `[B, D]`, targets `[B]`."""
    slope = network.message(x, y, np.full(len(x), 1 / len(x)))
    size = np.float32(rate)
    return jax.tree.map(lambda leaf, g: np.float32(leaf - size * g), params, slope)


def walked(
    params: Params, loss_fn: LossFn, x: np.ndarray, y: np.ndarray, steps: Steps
) -> Iterator[tuple[slice, Params]]:
    """Of each step which rows it was over, and the params after it."""
    for number in range(steps.count):
        each = steps.of(number)
        params = stepped(Network(params, loss_fn), params, x[each], y[each], steps.rate)
        yield each, params


def moved(
    params: Params, loss_fn: LossFn, x: np.ndarray, y: np.ndarray, steps: Steps
) -> Params:
    """What comes back in place of a gradient: the way moved, over count and rate.

    Args:
      params: that were sent.
      loss_fn: of one example.
      x: `[B, D]` encoded rows, in the order of the steps where these have their own.
      y: `[B]` their targets.
      steps: that are taken.
    """
    end = params
    for _, end in walked(params, loss_fn, x, y, steps):
        pass
    return over(params, end, steps)


def over(params: Params, end: Params, steps: Steps) -> Params:
    """The way from params to others, over count and rate."""
    length = np.float32(steps.count * steps.rate)
    return jax.tree.map(lambda sent, end: (sent - end) / length, params, end)

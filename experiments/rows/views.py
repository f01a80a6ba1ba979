"""What the adversary has: everything but the rows."""

from typing import NamedTuple

import numpy as np

from fljax import losses
from fljax.attacks import rows
from fljax.attacks.rows.steps import Steps
from fljax.types import Params


class Known(NamedTuple):
    """Of the federation: how the table is encoded, and the loss of one example."""

    schema: rows.Schema
    loss_fn: losses.LossFn


class OneMessage(NamedTuple):
    """One message.

    Attributes:
      params: that the server sent.
      message: mean gradient of a batch that came back, float32; of several steps the mean
        over them.
      rows: of the batch.
      targets: what a target may be: the classes, or numbers that it is among.
      seed: of what the attack draws.
      steps: that the client has taken.
    """

    params: Params
    message: Params
    rows: int
    targets: np.ndarray
    seed: int
    steps: Steps


class Rounds(NamedTuple):
    """Messages of one client's rows, all of which are in each.

    Attributes:
      params: that the server sent, leaves `[Q, ...]`.
      message: mean gradients that came back, likewise.
      rows: of the client.
      targets: least and largest one of the table.
      seed: of what the attack draws.
    """

    params: Params
    message: Params
    rows: int
    targets: tuple[float, float]
    seed: int

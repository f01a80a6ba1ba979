"""What everyone knows of a federation: the task, never a row."""

from typing import NamedTuple

import numpy as np

from fljax import data, losses
from fljax.types import Model


class Task(NamedTuple):
    """A logistic regression with a scalar logit.

    Attributes:
      name: of the data.
      model: logistic regression.
      loss_fn: of one example.
      num_inputs: of one example.
      candidates: `[K, W]` encoded values of the sensitive attribute, or None.
      attribute: its name, or None.
      files: what was read.
    """

    name: str
    model: Model
    loss_fn: losses.ExampleLoss
    num_inputs: int
    candidates: np.ndarray | None
    attribute: str | None
    files: tuple[data.FileRecord, ...]

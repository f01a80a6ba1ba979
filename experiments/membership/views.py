"""What an attack is given."""

from typing import NamedTuple

import numpy as np

from fljax.attacks.membership import Shadows, Sums
from fljax.types import Rows


class Observed(NamedTuple):
    """Of all trainings `[T, ...]`, what the observer of one client or sum sees.

    Attributes:
      rows: candidates `[n, ...]`.
      population: others `[m, ...]`.
      places: of them in the pool.
      seen: models and messages in some rounds.
      weight: `[n]`, see `likelihood_ratios`.
      clips: `[R]`.
      clipped: how examples are clipped.
    """

    rows: Rows
    population: Rows
    places: slice
    seen: Sums
    weight: np.ndarray
    clips: np.ndarray
    clipped: str


class Guessed(NamedTuple):
    """What the observer of one model of one training has.

    Attributes:
      losses: `[n]` of the candidates.
      population: `[m]`.
      shadows: of the other pairs of trainings.
    """

    losses: np.ndarray
    population: np.ndarray
    shadows: Shadows

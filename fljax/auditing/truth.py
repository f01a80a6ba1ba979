"""What no attack is given: made in `rows`, read in `scoring`, and nowhere else."""

from typing import NamedTuple

import numpy as np


class Truth(NamedTuple):
    """Rows of the audited clients as they are.

    Attributes:
      sensitive: `[C, n]` number of the true candidate, or the encoded value.
      mask: `[C, n]` True for real rows.
      unit: of one encoded unit, in units of the file.
      labels: `[C, K]` share of each class.
      rows: `[C, n, D]` inputs, sensitive block last.
      scale: `[D]` deviation of each input over the file.
    """

    sensitive: np.ndarray
    mask: np.ndarray
    unit: float
    labels: np.ndarray
    rows: np.ndarray
    scale: np.ndarray

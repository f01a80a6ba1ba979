"""How much a model has learned: an attack on one that learned nothing shows nothing."""

import numpy as np

from fljax.types import Array


def explained(loss: np.ndarray, y: Array, mask: np.ndarray, task: str) -> np.ndarray:
    """Percent `[seeds]` of the variation of targets that models explain.

    For numbers the share of the variance; for classes that of the entropy (McFadden,
    "Conditional Logit Analysis", 1974). Negative where a constant would do better.

    Args:
      loss: `[seeds]` mean loss of a model of each seed on the rows.
      y: `[seeds, N]` targets.
      mask: `[seeds, N]`, True where there is a row.
      task: regression, binary or multiclass.
    """
    least = [
        _of_constant(np.asarray(each, np.float64)[kept], task)
        for each, kept in zip(y, mask, strict=True)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = 100 * (1 - np.asarray(loss, np.float64) / least)
    return np.where(np.isfinite(share), share, np.nan)


def _of_constant(y: np.ndarray, task: str) -> float:
    """Loss of the best constant."""
    if task == "regression":
        return float(y.var())
    shares = np.unique(y, return_counts=True)[1] / len(y)
    return float(-(shares * np.log(shares)).sum())

"""How much a model has learned: an attack on one that learned nothing shows nothing."""

from collections.abc import Sequence
from typing import Any

import numpy as np

METRIC = "explained_percent"
RIGHT = "right_percent"  # of classes
LEARNT = 2.0  # percent of the variation of the targets
FAR = 10.0  # losses of a constant
UNLEARNT = "no conclusion: the model has hardly learnt"


def explained(
    loss: Any, y: Any, mask: Any, task: str, least: Sequence[float] | None = None
) -> np.ndarray:
    """Percent `[M]` of the variation of targets that models explain.

    For numbers the share of the variance; for classes that of the entropy (McFadden,
    "Conditional Logit Analysis", 1974). Negative where a constant would do better.

    Args:
      loss: `[M]` mean loss of each model on its rows.
      y: `[M, N]` targets.
      mask: `[M, N]`, True where there is a row.
      task: regression, binary or multiclass.
      least: `[M]` loss of the best constants, if it is not the usual one of the task.
    """
    if least is None:
        least = [
            _of_constant(np.asarray(each, np.float64)[kept], task)
            for each, kept in zip(y, mask, strict=True)
        ]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = 100 * (1 - np.asarray(loss, np.float64) / np.asarray(least))
    return np.where(np.isfinite(share), share, np.nan)


def has_learnt(percent: float) -> bool:
    """Whether a model explains anything, as far as is known: NaN is not."""
    return not percent < LEARNT


def said(percent: float) -> str:
    """In words."""
    if worse := diverged(percent):
        return worse
    less = ", less than a constant does" if percent < 0 else ""
    return f"it explains {percent:.1f} % of the variation of its training targets{less}"


def diverged(percent: float) -> str:
    """That a model is far worse than a constant, in words; empty if it is not."""
    times = 1 - percent / 100
    if not times >= FAR:
        return ""
    return (
        f"its loss on training targets is {times:.3g} times that of a constant: it "
        "diverged, or is drowned in noise"
    )


def _of_constant(y: np.ndarray, task: str) -> float:
    """Loss of the best constant."""
    if task == "regression":
        return float(y.var())
    shares = np.unique(y, return_counts=True)[1] / len(y)
    return float(-(shares * np.log(shares)).sum())

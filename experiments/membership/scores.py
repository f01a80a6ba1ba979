"""How well scores tell members from others."""

from typing import NamedTuple

import numpy as np
from sklearn import metrics

from fljax import certainty


class Rates(NamedTuple):
    """Of scores of all candidates of all trainings.

    Attributes:
      auc: area under the ROC curve, 0.5 by chance.
      found: percent of the members found at a false positive rate of 0.001.
      by_chance: percent that scores in random order find.
    """

    auc: float
    found: float
    by_chance: float


def rates(scores: np.ndarray, there: np.ndarray) -> Rates:
    """Compares scores with the truth, both `[T, n]`; what is no number is last."""
    finite = np.nan_to_num(np.asarray(scores, float), nan=np.finfo(float).min)
    away, found, _ = metrics.roc_curve(
        there.ravel(), finite.ravel(), drop_intermediate=False
    )
    area = float(metrics.auc(away, found))
    few = found[away <= certainty.FALSE_POSITIVES].max()
    chance = certainty.found_by_chance(int((~there).sum()))
    return Rates(area, 100 * float(few), 100 * chance)

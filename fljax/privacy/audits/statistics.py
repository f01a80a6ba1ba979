"""What scores of trainings with and without a canary prove: lower bounds of epsilon.

Here it is said on which trainings a threshold and its side are chosen, and on which others
the bound is computed with them (`counts`): what is nearly never seen with a canary proves
as much as what is nearly never seen without.
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy import stats
from sklearn import metrics

from fljax.privacy import exact
from fljax.privacy.audits import counts
from fljax.types import Array

_TUNING = 0.1  # share of the trainings by which the threshold is chosen
_THRESHOLDS = 200  # that are looked at
_AT_LEAST = 100  # trainings, or half of all, choose it
FEWEST = 8  # trainings on each side


class Audited(NamedTuple):
    """What an adversary demonstrably has.

    Attributes:
      epsilon: lower bound; 0 where nothing is proven.
      delta: of the bound.
      confidence: share of audits whose bound holds.
      counts: canaries, or trainings, with and without one, that the bound rests on.
      tuned: the same by which the threshold was chosen.
      gaussian: bound of epsilon if the scores were those of a Gaussian mechanism. It
        assumes a shape, and is shown beside the other, never instead.
      auc: area under the ROC curve, a half by chance.
    """

    epsilon: float
    delta: float
    confidence: float
    counts: tuple[int, int]
    tuned: tuple[int, int]
    gaussian: float
    auc: float


def audited(
    scores: Array,
    present: Array,
    *,
    delta: float,
    confidence: float = 0.95,
    tuning: Array | None = None,
) -> Audited:
    """Lower bound of epsilon from one score of each of many trainings.

    Args:
      scores: `[N]`, higher where a canary is taken to be in; may be infinite.
      present: `[N]` bool, whether it was.
      delta: in [0, 1), of the bound.
      confidence: in (0.5, 1), of the bound.
      tuning: `[N]` bool, trainings that choose the threshold and are not counted; None
        takes the first tenth, or hundred.

    Raises:
      ValueError: for numbers out of range, or fewer than 8 on some side.
      ModuleNotFoundError: jax-privacy is not there.
    """
    values, there = np.asarray(scores, float), np.asarray(present, bool)
    chosen = first(len(values)) if tuning is None else np.asarray(tuning, bool)
    check(values, there, chosen, delta, confidence)
    rest = ~chosen
    tuned = finite(values[chosen])
    within, without = tuned[there[chosen]], tuned[~there[chosen]]
    counted = values[rest & there], values[rest & ~there]
    sizes = len(counted[0]), len(counted[1])
    plan = _planned(within, without, sizes, delta, confidence)
    below = _planned(-without, -within, sizes[::-1], delta, confidence)
    sides = counted
    if below.gain > plan.gain:
        plan, sides = below, (-counted[1], -counted[0])
    above, of = _above(sides, plan.threshold), (len(sides[0]), len(sides[1]))
    return Audited(
        counts.epsilon(*above, of, delta=delta, confidence=confidence),
        delta,
        confidence,
        sizes,
        (len(within), len(without)),
        _gaussian(sides, plan.apart, delta, confidence),
        area(values[rest], there[rest]),
    )


def first(count: int) -> np.ndarray:
    """`[count]` bool, the trainings by which thresholds are chosen if nothing is said."""
    return np.arange(count) < max(round(_TUNING * count), min(_AT_LEAST, count // 2))


def check(values, there, tuning, delta: float, confidence: float) -> None:
    """Refuses what no bound can be computed of.

    Raises:
      ValueError: naming the argument.

    Warns:
      UserWarning: all scores are alike.
    """
    check_numbers(delta, confidence)
    if values.ndim != 1 or there.shape != values.shape:
        raise ValueError(
            f"scores and present: expected one of each for every training, got shapes "
            f"{values.shape} and {there.shape}"
        )
    if np.isnan(values).any():
        raise ValueError(f"scores: {int(np.isnan(values).sum())} are NaN")
    if values.size and np.all(values == values[0]):
        warnings.warn(
            "scores: all are alike, so that nothing was measured, and a bound of 0 says "
            "nothing",
            stacklevel=3,
        )
    check_sides(there, tuning)


def check_numbers(delta: float, confidence: float) -> None:
    """Raises ValueError for a delta or confidence out of range."""
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta}")
    if not 0.5 < confidence < 1:
        raise ValueError(f"confidence must be in (0.5, 1), got {confidence}")


def check_sides(there, tuning) -> None:
    """Raises ValueError for fewer than 8 on some side of some part."""
    parts = [np.ones(len(there), bool)] if tuning is None else [tuning, ~tuning]
    for part in parts:
        sides = int((part & there).sum()), int((part & ~there).sum())
        if min(sides) < FEWEST:
            raise ValueError(
                f"expected {FEWEST} scores at least with and without the canary, to "
                f"choose a threshold and to count by it, got {sides[0]} and {sides[1]}"
            )


def finite(scores: np.ndarray) -> np.ndarray:
    """In the same order, infinite ones a range beyond the others."""
    others = scores[np.isfinite(scores)]
    low, high = (others.min(), others.max()) if others.size else (0.0, 0.0)
    beyond = high - low or max(1.0, abs(high))
    return np.clip(scores, low - beyond, high + beyond)


def area(scores: np.ndarray, there: np.ndarray) -> float:
    """Under the curve itself: the library has its convex hull, above a half of any scores."""
    return float(metrics.roc_auc_score(there, finite(scores)))


class _Plan(NamedTuple):
    """What tuning expects of the side above a threshold: scores higher than it.

    Attributes:
      gain: logarithm of the ratio that it expects to prove.
      threshold: for that.
      apart: for the shift of two normal distributions.
    """

    gain: float
    threshold: float
    apart: float


def _planned(within, without, sizes, delta: float, confidence: float) -> _Plan:
    grid, hits, alarms = _expected(within, without, sizes)
    few, many = counts.apart(hits, alarms, sizes, confidence)
    gain = np.log(np.maximum(few - delta, 1e-300)) - np.log(many)
    best = int(np.argmax(gain))
    apart = grid[np.argmax(stats.norm.isf(many) - stats.norm.isf(few))]
    return _Plan(float(gain[best]), float(grid[best]), float(apart))


def _expected(within, without, sizes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds, and hits and alarms that counts as large as `sizes` would give.

    The tails of the scores at hand are few: rates are those of normal distributions, or
    the observed ones, whichever promises less.
    """
    low, high = np.quantile(np.concatenate([within, without]), [0.25, 1])
    grid = np.linspace(low, high, _THRESHOLDS)
    normal, seen = [], []
    for part, size in zip((within, without), sizes, strict=True):
        tail = stats.norm.sf(grid, part.mean(), part.std() + 1e-12)
        normal.append(np.round(tail * size))
        seen.append(np.round((part[:, None] > grid).mean(axis=0) * size))
    return grid, np.minimum(normal[0], seen[0]), np.maximum(normal[1], seen[1])


def _above(counted, threshold: float) -> tuple[int, int]:
    """Scores above a threshold, with the canary and without."""
    hits, alarms = (int((side > threshold).sum()) for side in counted)
    return hits, alarms


def _gaussian(counted, threshold: float, delta: float, confidence: float) -> float:
    """Epsilon of the Gaussian mechanism that scores above a threshold prove.

    `CanaryScoreAuditor.epsilon_from_gdp` takes the size of a shift whichever way it
    points, and so proves an epsilon from bounds that say nothing.
    """
    sizes = len(counted[0]), len(counted[1])
    few, many = counts.apart(*_above(counted, threshold), sizes, confidence)
    shift = stats.norm.isf(many) - stats.norm.isf(few)
    if not shift > 0 or not delta > 0:
        return 0.0
    return exact.gaussian(1 / float(shift), [1], [1.0], delta)

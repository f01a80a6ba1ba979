"""Scores and their uncertainty: NumPy float64 on the host.

Attacks may not import this module: they never see the truth.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

_FEW = 10  # rows, of which what is usual tells each of them


class Estimate(NamedTuple):
    """A mean over independent repetitions with its 95 % interval.

    Attributes:
      mean: arithmetic mean.
      low: lower end of the interval, NaN for fewer than two repetitions.
      high: upper end.
      median: for heavy-tailed values.
      repetitions: how many values went in.
    """

    mean: float
    low: float
    high: float
    median: float
    repetitions: int


def interval(values, confidence: float = 0.95) -> Estimate:
    """Student-t interval of the mean of independent values.

    Args:
      values: `[seeds]` one number of each.
      confidence: of the interval, between 0 and 1.

    Returns:
      Low and high end are NaN of one value, or where one is not finite.

    Example:
      >>> found = interval([1.0, 2.0, 3.0])
      >>> round(found.low, 2), found.mean, round(found.high, 2)
      (-0.48, 2.0, 4.48)
    """
    values = np.asarray(values, np.float64)
    mean, count = float(values.mean()), len(values)
    half = np.nan
    finite = np.isfinite(values).all()
    if count > 1 and finite and np.ptp(values) == 0:  # which rounding would spread
        mean, half = float(values[0]), 0.0
    elif count > 1 and finite:
        quantile = special.stdtrit(count - 1, 0.5 + confidence / 2)  # Student
        half = float(quantile * values.std(ddof=1) / np.sqrt(count))
    return Estimate(mean, mean - half, mean + half, float(np.median(values)), count)


def of_rows(
    percent: float, count: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Wilson's interval (1927) of a percentage of rows.

    Args:
      percent: of the rows, from 0 to 100.
      count: of rows.
      confidence: of the interval, between 0 and 1.

    Returns:
      Its low and high end in percent; NaN where there is no such percentage.
    """
    if not (0 < count < 2**53 and 0 <= percent <= 100):
        return np.nan, np.nan
    share, z = percent / 100, special.ndtri(0.5 + confidence / 2)
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    spread = share * (1 - share) / count + z**2 / (4 * count**2)
    half = z * np.sqrt(spread) / (1 + z**2 / count)
    return float(100 * (middle - half)), float(100 * (middle + half))


def as_rows(estimate: Estimate, count: int) -> Estimate:
    """A percentage that is the same with every seed, with Wilson's interval.

    Args:
      estimate: over the seeds.
      count: what it is a share of, where that is whole or nothing of each.
    """
    if estimate.repetitions < 2 or estimate.low != estimate.high:
        return estimate
    low, high = of_rows(estimate.mean, count)
    return estimate._replace(low=low, high=high)


def standard_error(percent: float, count: int) -> float:
    """Of a percentage of `count` rows, in points; its square is unbiased from two rows on."""
    share = percent / 100
    return 100 * float(np.sqrt(share * (1 - share) / max(count - 1, 1)))


def rows_of_mean(counts) -> int:
    """How many rows the plain mean over clients of `counts [C]` rows is worth.

    As many as have its variance: a client of few rows is as uncertain as it is alone. All
    of them where clients have equally many.
    """
    counts = np.asarray(counts, np.float64)
    return round(len(counts) ** 2 / np.sum(1 / counts)) if (counts > 0).all() else 0


def accuracy(guess, truth, mask) -> float:
    """Share of guesses that are right, from 0 to 1; NaN if there are none.

    Args:
      guess: `[...]` values.
      truth: `[...]` of the same kind.
      mask: `[...]` bool, which of them count.
    """
    mask = np.asarray(mask, bool)
    hits = np.asarray(guess)[mask] == np.asarray(truth)[mask]
    return float(hits.mean()) if hits.size else float("nan")


def majority(truth, mask) -> float:
    """Accuracy of always naming the most frequent value: the baseline of an attack."""
    values = np.asarray(truth)[np.asarray(mask, bool)]
    return float(np.unique(values, return_counts=True)[1].max() / len(values))


def usual_values(rows: Sequence[np.ndarray], *, continuous: bool) -> np.ndarray:
    """What somebody names who knows no row, but what is usual among a client's.

    Of clients with fewer than ten rows that is what is usual among all these clients' rows: a
    client's own row is all there is of one who has no other, and half of what is usual
    of two.

    Args:
      rows: values `[n]` of each client, numbers of categories but for `continuous`.
      continuous: whether they are numbers, of which it is the median, or categories, of
        which it is the most frequent.

    Returns:
      `[C]`; 0 where there are no rows at all.
    """

    def usual(values):
        if not len(values):
            return 0
        return np.median(values) if continuous else np.bincount(values).argmax()

    if not rows:
        return np.zeros(0)
    kept = [np.asarray(each) if continuous else np.asarray(each, int) for each in rows]
    everybody = usual(np.concatenate(kept))
    return np.array([usual(v) if len(v) >= _FEW else everybody for v in kept])


def weighted_mean(values, weights) -> float:
    """Mean over clients, weighted by their rows."""
    return float(np.average(np.asarray(values, np.float64), weights=weights))

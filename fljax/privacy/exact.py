"""Gaussian noise without sampling, exact; counts that are drawn; what is in range.

A noise multiplier is the deviation of the noise on a sum over the most by which one unit
(a record, a client) can change that sum. 0 stands for no noise.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

RARE = 1e-15  # probability that may be moved to the worst case
# Noise multipliers that formulas in float64 are made for: less is no noise, more no less.
_LEAST, _MOST = 1e-6, 1e12
_FINEST = 1e-12  # of an epsilon

Profile = Callable[[float], float]  # epsilon, which may be negative, to delta


def gaussian(
    noise_multiplier: float,
    releases: Sequence[float],
    weights: Sequence[float],
    delta: float,
) -> float:
    """Exact epsilon of Gaussian noise (Balle and Wang 2018, theorem 8) without sampling.

    Args:
      noise_multiplier: of one release.
      releases: `[J]` numbers of releases, one of half the sensitivity counts a quarter;
      weights: `[J]`, sum 1, with which they occur, and may be seen.
      delta: in (0, 1).

    Raises:
      ValueError: for numbers out of range.
    """
    check(noise_multiplier, 1.0, delta)
    noise_multiplier = counted(noise_multiplier)
    some = np.asarray(releases) > 0
    counts, likely = np.asarray(releases)[some], np.asarray(weights)[some]
    if not counts.size or np.isinf(noise_multiplier):
        return 0.0
    if noise_multiplier == 0:
        return np.inf
    shift = np.sqrt(counts) / noise_multiplier

    def excess(epsilon):
        return likely @ _lost(shift, epsilon) - delta

    if excess(0.0) <= 0:
        return 0.0
    most = shift.max()
    high = most * (most / 2 + stats.norm.isf(delta / 2)) + 1
    found = optimize.root_scalar(excess, bracket=(0.0, high), xtol=_FINEST)
    return found.root * (1 + 1e-9) + _FINEST  # never too small


def profile(
    noise_multiplier: float, releases: Sequence[int], weights: Sequence[float]
) -> Profile:
    """Exact delta of every epsilon, of the noise that `gaussian` speaks of.

    Args:
      noise_multiplier: of one release.
      releases: `[J]` numbers of releases, which occur with
      weights: `[J]`, sum 1, and may be seen.
    """
    noise_multiplier = counted(noise_multiplier)
    counts, likely = np.asarray(releases, float), np.asarray(weights, float)
    some = counts > 0
    nothing = float(likely[~some].sum())  # of these not even one epsilon is spent
    if not some.any() or np.isinf(noise_multiplier):
        return functools.partial(_of_nothing, 1.0)
    if noise_multiplier == 0:
        return lambda epsilon: nothing * _of_nothing(1.0, epsilon) + 1 - nothing
    shift, likely = np.sqrt(counts[some]) / noise_multiplier, likely[some]
    return lambda epsilon: (
        float(likely @ _lost(shift, epsilon)) + _of_nothing(nothing, epsilon)
    )


def _lost(shift: np.ndarray, epsilon: float) -> np.ndarray:
    """Delta `[J]` at an epsilon, of Gaussians that are so many deviations apart."""
    far = stats.norm.logcdf(-shift / 2 - epsilon / shift)
    return stats.norm.cdf(shift / 2 - epsilon / shift) - np.exp(epsilon + far)


def _of_nothing(weight: float, epsilon: float) -> float:
    """Delta of two equal distributions; above 0 where epsilon is negative."""
    return weight * max(0.0, -float(np.expm1(epsilon)))


def drawn(trials: int, probability: float) -> tuple[list[int], list[float]]:
    """Counts of successes, increasing, and their binomial probabilities, sum 1.

    What is rarer than 1e-15 on either side is moved to more successes: safe for all that
    grows with the count.
    """
    low = int(stats.binom.ppf(RARE, trials, probability))
    high = int(stats.binom.isf(RARE, trials, probability))
    counts = np.arange(low, high + 1)
    weights = stats.binom.pmf(counts, trials, probability)
    weights[0] += stats.binom.cdf(low - 1, trials, probability)
    if high < trials:
        counts, weights = np.append(counts, trials), np.append(weights, 0.0)
    weights[-1] += max(0.0, 1 - weights.sum())
    return counts.tolist(), (weights / weights.sum()).tolist()


def counted(noise_multiplier: float, most: float = _MOST) -> float:
    """A noise multiplier as it is counted, where it is extreme: never as more noise."""
    if noise_multiplier < _LEAST:
        return 0.0
    if np.isinf(noise_multiplier):
        return noise_multiplier
    return min(float(noise_multiplier), most)


def check_steps(steps: ArrayLike) -> None:
    """Refuses numbers of sums that are none.

    Raises:
      ValueError: some is below 0 or not whole.
    """
    given = np.ravel(steps)
    try:
        counts = given.astype(np.float64)
    except (TypeError, ValueError):
        counts = None
    if counts is None or given.dtype.kind in "USb":
        raise ValueError(f"steps must be whole numbers, got {steps!r:.40}")
    if np.min(counts, initial=0) < 0:
        raise ValueError(f"steps must be >= 0, got {np.min(counts)}")
    whole = np.isfinite(counts) & (np.floor(counts) == counts)
    if not whole.all():
        first = counts[~whole][0]
        raise ValueError(f"steps must be whole, got {first:g}; round up what is not")


def check(noise_multiplier: float, sampling_rate: float, delta: float) -> None:
    """Refuses numbers out of range.

    Raises:
      ValueError: naming the number.
    """
    if not noise_multiplier >= 0:
        raise ValueError(f"noise_multiplier must be >= 0, got {noise_multiplier}")
    if not 0 < sampling_rate <= 1:
        raise ValueError(f"sampling_rate must be in (0, 1], got {sampling_rate}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be in (0, 1), got {delta}")

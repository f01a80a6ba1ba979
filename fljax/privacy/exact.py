"""Gaussian noise without sampling, exact; counts that are drawn; what is in range.

A noise multiplier is the deviation of the noise on a sum over the most by which one unit
(a record, a client) can change that sum. 0 stands for no noise.
"""

from collections.abc import Sequence

import numpy as np
from scipy import optimize, stats

RARE = 1e-15  # probability that may be moved to the worst case


def gaussian(
    noise_multiplier: float,
    releases: Sequence[int],
    weights: Sequence[float],
    delta: float,
) -> float:
    """Exact epsilon of Gaussian noise (Balle and Wang 2018, theorem 8) without sampling.

    Args:
      noise_multiplier: of one release.
      releases: `[J]` numbers of releases, which occur with
      weights: `[J]`, sum 1, and may be seen.
      delta: in (0, 1).

    Raises:
      ValueError: for numbers out of range.
    """
    check(noise_multiplier, 1.0, delta)
    some = np.asarray(releases) > 0
    counts, likely = np.asarray(releases)[some], np.asarray(weights)[some]
    if not counts.size or np.isinf(noise_multiplier):
        return 0.0
    if noise_multiplier == 0:
        return np.inf
    shift = np.sqrt(counts) / noise_multiplier

    def excess(epsilon):
        far = stats.norm.logcdf(-shift / 2 - epsilon / shift)
        lost = stats.norm.cdf(shift / 2 - epsilon / shift) - np.exp(epsilon + far)
        return likely @ lost - delta

    if excess(0.0) <= 0:
        return 0.0
    most = shift.max()
    high = most * (most / 2 + stats.norm.isf(delta / 2)) + 1
    found = optimize.root_scalar(excess, bracket=(0.0, high), xtol=1e-12)
    return found.root * (1 + 1e-9)  # never too small


def drawn(trials: int, probability: float) -> tuple[list[int], list[float]]:
    """Counts of successes, increasing, and their binomial probabilities, sum 1.

    What is rarer than 1e-15 on either side is moved to more successes: safe for all that
    grows with the count.
    """
    low, high = (
        int(stats.binom.ppf(RARE, trials, probability)),
        int(stats.binom.isf(RARE, trials, probability)),
    )
    counts = np.arange(low, high + 1)
    weights = stats.binom.pmf(counts, trials, probability)
    weights[0] += stats.binom.cdf(low - 1, trials, probability)
    if high < trials:
        counts, weights = np.append(counts, trials), np.append(weights, 0.0)
    weights[-1] += max(0.0, 1 - weights.sum())
    return counts.tolist(), (weights / weights.sum()).tolist()


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

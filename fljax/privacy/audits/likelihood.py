"""Likelihood ratios of what was seen, with a canary over without, one for each training.

A canary is in `K` of a round's steps, `K` binomial. What is seen along its direction is
normal about `K` times its share, and its variance is that of the noise that is added and
of all else that changes from training to training: both are estimated together, from
trainings without a canary that no bound is computed of. So are the means of the rounds.
"""

import numpy as np
from scipy import stats

from fljax.privacy.audits.chances import Inclusions
from fljax.privacy.audits.evidence import Observer, Seen
from fljax.types import Array

_RARE = 1e-12  # probability of the numbers of steps that are left out
_TINY = 1e-30


def likelihood_ratios(
    seen: Seen, observer: Observer, inclusions: Inclusions, absent: Array
) -> np.ndarray:
    """Logarithms `[N]`: large where the canary is likely to have been there.

    Args:
      seen: leaves `[N, R]`.
      observer: who saw it.
      inclusions: of the canary.
      absent: `[N]` bool, trainings known to be without canary, to estimate from.
    """
    along, without, present = (np.asarray(leaf, float) for leaf in seen)
    absent = np.asarray(absent, bool)
    # Where a canary that is replaced has its negative, both worlds have a share.
    rounds = np.ones(along.shape[1], bool)
    if observer != "final":
        rounds = inclusions.present
    along, without, present = (x[:, rounds] for x in (along, without, present))
    steps = inclusions.total if observer == "final" else inclusions.steps
    mean_count = steps * inclusions.rate
    rest = along - mean_count * without
    centred = along - rest[absent].mean(axis=0)
    known = steps * inclusions.rate * (1 - inclusions.rate) * without**2
    spread = centred - mean_count * without
    variance = max(float(np.mean((spread**2 - known)[absent])), _TINY)
    if steps == 1 and not inclusions.rate < 1:
        counts, odds = np.array([1]), np.array([0.0])
    else:
        counts, odds = _counts(steps, inclusions.rate)
    with_ = _mixture(centred, present, counts, odds, variance)
    return (with_ - _mixture(centred, without, counts, odds, variance)).sum(axis=1)


def _counts(steps: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of steps that are not too rare, and logarithms of their probabilities."""
    first, last = stats.binom.ppf([_RARE, 1 - _RARE], steps, rate)
    counts = np.arange(int(first), int(last) + 1)
    return counts, stats.binom.logpmf(counts, steps, rate)


def _mixture(along, share, counts, odds, variance: float) -> np.ndarray:
    """Log-likelihood `[N, R]` up to a constant."""
    total = np.full(along.shape, -np.inf)
    for count, odd in zip(counts, odds, strict=True):
        gap = along - count * share
        total = np.logaddexp(total, odd - gap**2 / (2 * variance))
    return total

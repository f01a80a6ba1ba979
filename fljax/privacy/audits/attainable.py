"""What so many trainings could prove, of an adversary who meets what messages hold.

An account charges every step of a round. A message is the sum of these steps: where
batches are drawn, it says that a canary was in K of them, binomial, and not in which.
That is less, and no audit of messages shows more of a canary whose share is the same in
each step, where the other rows' gradients do not depend on the step in which it was used:
with a curved loss and several steps they do, a little.
"""

import functools
from typing import cast

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from fljax.privacy import calibration, exact, sampled
from fljax.privacy.audits import counts, guesses, statistics
from fljax.privacy.audits.chances import Inclusions

_THRESHOLDS = 200  # that are looked at
_MOST = 20.0  # epsilon that many trainings could prove
_LARGE = 300.0  # epsilon that tells everything
_SHARE = 0.02  # of a round's deviation: a cell of its loss distribution


def in_messages(
    noise_multiplier: float, inclusions: Inclusions, *, replace: bool = False
) -> exact.Profile:
    """Delta of every epsilon, of a canary's messages.

    Args:
      noise_multiplier: of one step.
      inclusions: of the canary.
      replace: what it is compared with has a share of its own; what is accounted then
        stands for what messages hold.

    Raises:
      ValueError: for numbers out of range.
    """
    steps, rate, total = inclusions.steps, inclusions.rate, inclusions.total
    if replace or steps == 1 or not rate < 1 or not noise_multiplier > 0:
        return sampled.profile(noise_multiplier, rate, total, replace=replace)
    exact.check(noise_multiplier, rate, 0.5)
    rounds = int(inclusions.present.sum())
    return _summed(float(noise_multiplier), rate, steps, rounds)


@functools.lru_cache(maxsize=16)
def _summed(noise_multiplier, rate, steps, rounds) -> exact.Profile:
    often = np.arange(int(stats.binom.isf(exact.RARE, steps, rate)) + 1)
    odds = stats.binom.pmf(often, steps, rate)
    one = pld.from_mixture_gaussian_mechanism(
        noise_multiplier * np.sqrt(steps),
        often.astype(float).tolist(),
        (odds / odds.sum()).tolist(),
        value_discretization_interval=_SHARE * np.sqrt(rate) / noise_multiplier,
    )
    return cast(exact.Profile, one.self_compose(rounds).get_delta_for_epsilon)


def epsilon_of(profile: exact.Profile, delta: float) -> float:
    """Epsilon at a delta, to 1e-4; inf above 300."""
    if profile(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while profile(high) > delta:
        low, high = high, 2 * high
        if low > _LARGE:
            return np.inf
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if profile(middle) <= delta else (middle, high)
    return high


def reachable(
    profile: exact.Profile, count: int, *, delta: float, confidence: float = 0.95
) -> float:
    """What as many trainings could prove on average, of what is known exactly.

    Nearly half of single audits prove more, some by a third.

    Args:
      profile: epsilon to delta.
      count: of trainings, half of them with the canary.
      delta: of the bound.
      confidence: of the bound.
    """
    size = (count - int(statistics.first(count).sum())) // 2
    alarms = np.geomspace(1 / size, 0.5, _THRESHOLDS)
    epsilons = np.linspace(0, _MOST, _THRESHOLDS)
    deltas = np.array([profile(float(each)) for each in epsilons])
    hits = np.min(np.exp(epsilons) * alarms[:, None] + deltas, axis=1)
    hits, alarms = np.round(np.minimum(hits, 1) * size), np.round(alarms * size)
    few, many = counts.apart(hits, alarms, (size, size), confidence)
    best = np.argmax(np.maximum(few - delta, 0) / many)
    shown = int(hits[best]), int(alarms[best])
    return counts.epsilon(*shown, (size, size), delta=delta, confidence=confidence)


def reachable_once(
    epsilon: float, counts: tuple[int, int], *, delta: float, confidence: float = 0.95
) -> tuple[float, float]:
    """What one training with so many canaries could prove.

    Args:
      epsilon: that there is of each canary.
      counts: of canaries that are in, and of those that are not.
      delta: of epsilon, and of the bound.
      confidence: of the bound.

    Returns:
      About what it proves of Gaussian noise with that epsilon, and at most: if every
      guess were right.
    """
    shift = 0.0 if epsilon <= 0 else _LARGE
    if 0 < epsilon <= _LARGE:
        sigma = calibration.noise_multiplier_for(epsilon, delta, 1.0, 1, "pld")
        shift = 1 / sigma
    each = [stats.norm.ppf((np.arange(n) + 0.5) / n) for n in counts]
    present = np.repeat([True, False], counts)
    about, most = (
        guesses.bound(one, present, delta, confidence).epsilon
        for one in (np.concatenate(each) + shift * present, present.astype(float))
    )
    return about, most

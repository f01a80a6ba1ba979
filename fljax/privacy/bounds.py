"""The most that any adversary can have, where noise keeps a promise.

An adversary names the sensitive value of a row, one of K. Let Z be its guess where the
row's share in every noisy sum is left out: nothing in Z depends on the value, so that it
is right with the probability m of the best guess without the row (from the other columns
and everyone else's rows). Let P_k be all that it sees if the row has the value k. A
promise to that row bounds, for each epsilon, whatever its sign,

    P_k(A) <= e^epsilon Q(A) + delta(epsilon)       Q: the row left out
    P_k(A) <= e^epsilon P_j(A) + delta2(epsilon)    the row has another value instead

where delta2 is that of noise half as large over what a row adds: a value that is replaced
by another moves a sum clipped to C by up to 2C. Three bounds follow; none asks how the
adversary computes.

* Of a row with prior p (p_1 the largest): A_k, where k is guessed, are disjoint, so that
  sum_k p_k P_k(A_k) <= p_1 + sum_{k>1} p_k delta2(log p_1/p_k). For K = 2 no better one
  can be had: the test of likelihood ratio p_1/p_2 reaches it.
* The same from the other line, with any epsilon: over j values of prior 1/j at most
  `power(1/j) = min e^epsilon / j + delta(epsilon)`.
* Rows differ in their priors, and only the mean m of their largest ones may be known,
  the accuracy of the best guess. The bound of a row is convex in p and every prior is a
  mixture of (1/j, ..., 1/j, 0, ..., 0) in which m is linear. So the mean over rows is at
  most the line through the bounds at 1/j, for m between 1/(j+1) and 1/j. With two values:
  1 - 2 (1 - m) (1 - b), b the bound of an even prior, reached where some rows are told
  without any message and all others are even. The prior of the base rate alone would be
  no bound: rows that other columns tell of are above it.

What it rests on: that the promise is kept, and that m is not less than what the
adversary has without the row. m is measured with the best imputation at hand, and a
better one would raise it. It does not rest on rows being independent if m counts what
all others tell. Expected accuracy is bounded: a measured one scatters around it.

With pure epsilon and a prior p, sorted, e^epsilon (p_1 + ... + p_j) / (e^epsilon + j - 1)
for the best j is the most, and randomised response among the j values reaches it. With
(epsilon, delta) the first bound holds with the delta2 that follows from them. So does one
from all values at once: of a_k = P_k(A_k) <= 1 and s = e^-epsilon, each j has
a_j + s sum_{k != j} (a_k - delta) <= 1. The lesser is taken.
The largest *posterior* of a single row, e^epsilon p_1 / (e^epsilon p_1 + 1 - p_1), is
larger where p_1 > 1/K: not every message is the luckiest.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from fljax.privacy import exact, sampled
from fljax.privacy.noise_spec import as_poisson
from fljax.types import Array, NoiseSpec

_FARTHEST = 60.0  # epsilon beyond which a search for the best one need not go


class Loss(NamedTuple):
    """Delta of every epsilon of what is told of one row.

    Attributes:
      left_out: against the same without the row.
      replaced: against another value of the row.
    """

    left_out: exact.Profile
    replaced: exact.Profile


def accuracy_without(
    noise: NoiseSpec,
    steps: Array | int,
    without: Array | float,
    *,
    rounds: Array | int | None = None,
) -> np.ndarray:
    """Most that any adversary can be right for, of rows with any priors.

    Args:
      noise: from the defense, concrete.
      steps: `[C]` or [], as in `privacy.guarantee`.
      without: `[C]` or [], in (0, 1], share that is told rightly without the row.
      rounds: as in `privacy.guarantee`.

    Returns:
      `[C]` float64, expected share of rows; 1 without noise, `without` without messages.

    Raises:
      ValueError: for numbers out of range, or a unit or sampling that is not known.

    Example:
      >>> spec = NoiseSpec(10.0, 1.0, 1.0, "leave a row out", sampling="all")
      >>> accuracy_without(spec, 1, [0.5, 0.8]).round(3).tolist()
      [0.54, 0.816]
    """
    share = np.asarray(without, float)
    if not ((share > 0) & (share <= 1)).all():
        raise ValueError(f"without must be in (0, 1], got {without}")
    losses, share = np.broadcast_arrays(_losses(noise, steps, rounds), share)
    found = [_of_mean(*one) for one in zip(losses.ravel(), share.ravel(), strict=True)]
    return np.reshape(found, share.shape)


def accuracy_of_prior(
    noise: NoiseSpec, steps: int, prior: Array, *, rounds: int | None = None
) -> float:
    """The same of one row, or of many with the same prior `[K]`; exact for two values.

    Args:
      noise: from the defense, concrete, of a single client.
      steps: as in `privacy.guarantee`.
      prior: what is known of the row's value without the row, sum 1.
      rounds: as in `privacy.guarantee`.

    Raises:
      ValueError: for numbers out of range, or a unit or sampling that is not known.
    """
    (loss,) = _losses(noise, steps, rounds)
    return _of_prior(loss, _sorted(prior))


def accuracy_of_epsilon(epsilon: float, prior: Array, delta: float = 0.0) -> float:
    """Most under (epsilon, delta) for REPLACING a value of prior `[K]`.

    Exact for pure epsilon, two values or an even prior; else nobody is above it.

    Args:
      epsilon: at least 0; inf promises nothing.
      prior: as in `accuracy_of_prior`.
      delta: in [0, 1).

    Raises:
      ValueError: for numbers out of range.

    Example:
      >>> accuracy_of_epsilon(np.log(3), [0.5, 0.5]), accuracy_of_epsilon(0, [0.8, 0.2])
      (0.75, 0.8)
    """
    if not epsilon >= 0 or not 0 <= delta < 1:
        raise ValueError(
            f"epsilon must be >= 0, delta in [0, 1), got {epsilon}, {delta}"
        )
    known, shrunk = _sorted(prior), np.exp(-epsilon)
    within = known * (1 + shrunk * delta) - known[0] * shrunk * (1 - delta)
    by_pairs = np.maximum(known * delta, within / (1 + shrunk))
    others = np.arange(len(known))
    most = (1 + others[-1] * shrunk * delta) / (1 + others * shrunk)
    alike = np.cumsum(known)[most <= 1] * most[most <= 1]
    first = known @ np.clip(1 + others[-1] * delta - others, 0, 1)
    return float(min(known[0] + by_pairs[1:].sum(), max(first, *alike)))


def _losses(noise: NoiseSpec, steps, rounds) -> np.ndarray:
    """A `Loss` of each client, as an array of objects."""
    rate, count = as_poisson(noise, steps, rounds)
    drawn = (noise.unit, noise.sampling) == ("client", "fixed")
    if drawn:  # who may be seen in the rounds that it is drawn for
        rate = noise.sampling_rate
    told = np.broadcast_arrays(
        *(np.atleast_1d(each) for each in (noise.noise_multiplier, rate, count))
    )
    found = np.empty(told[0].shape, object)
    for at, (sigma, q, n) in enumerate(zip(*(each.tolist() for each in told))):
        found[at] = _loss(float(sigma), float(q), int(n), drawn)
    return found


@functools.lru_cache(maxsize=256)
def _loss(sigma: float, q: float, count: int, drawn: bool) -> Loss:
    exact.check(sigma, q, 0.5)
    if drawn:
        releases = exact.drawn(count, q)
        return Loss(*(exact.profile(s, *releases) for s in (sigma, sigma / 2)))
    return Loss(
        *(sampled.profile(sigma, q, count, replace=each) for each in (False, True))
    )


def _sorted(prior: Array) -> np.ndarray:
    """Decreasing `[K]`."""
    found = np.sort(np.asarray(prior, float))[::-1]
    told = found.ndim == 1 and len(found) and found[-1] >= 0
    if not told or not np.isclose(found.sum(), 1):
        raise ValueError(f"prior must be of every value and sum to 1, got {prior}")
    return found


def _of_prior(loss: Loss, prior: np.ndarray) -> float:
    first, rest = prior[0], prior[1:][prior[1:] > 0]
    each = [p * loss.replaced(float(np.log(first / p))) for p in rest]
    return float(min(1.0, first + sum(each)))


def _of_mean(loss: Loss, share: float) -> float:
    """On the line between the even priors of as many values on either side."""
    few = int(np.floor(1 / share + 1e-9))
    return float(np.interp(share, [1 / (few + 1), 1 / few],
                           [_even(loss, few + 1), _even(loss, few)]))  # fmt: skip


@functools.lru_cache(maxsize=1024)
def _even(loss: Loss, count: int) -> float:
    """Of a row with so many values that are equally likely."""
    if count == 1:
        return 1.0
    by_pairs = min(1.0, 1 / count + (1 - 1 / count) * loss.replaced(0.0))
    return by_pairs if count == 2 else min(by_pairs, _power(loss, 1 / count))


def _power(loss: Loss, level: float) -> float:
    """Largest probability, with the row, of what has this probability without it."""
    found: Any = (
        optimize.minimize_scalar(  # convex in e^epsilon; any epsilon is a bound
            lambda epsilon: np.exp(epsilon) * level + loss.left_out(epsilon),
            bounds=(-_FARTHEST, _FARTHEST),
            method="bounded",
            options={"xatol": 1e-7},
        )
    )
    return float(min(1.0, found.fun))

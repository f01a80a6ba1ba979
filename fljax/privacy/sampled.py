"""Gaussian noise on sums over samples: epsilon by Renyi divergences and loss distributions.

* `epsilon`: Poisson batches, one number of steps;
* `poisson`: the same for a number of steps that is itself drawn, and known;
* `without_replacement`: batches of a fixed size, one record replaced;
* `whole_batches`: everything that one client puts into its Poisson batches at once.

Loss distributions ("pld") are rounded so that epsilon is never too small, and tell
nothing of a delta below what float64 keeps of it (2e-16 a step); Renyi
divergences ("rdp", Mironov et al. 2019) bound it from above. Orders of the Renyi
divergence differ between libraries; sigma agrees within 1 %.
"""

import functools
from collections.abc import Sequence
from typing import Literal

import dp_accounting
import numpy as np
from dp_accounting import NeighboringRelation, rdp
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from fljax.privacy import exact, loss_distributions, renyi

Accountant = Literal["rdp", "pld"]
_ANY_DELTA = 1e-5  # by which the cells of a whole profile are chosen
_MOST_EPSILON = 1e6  # a bound beyond it stands for itself: cells would overflow
_NOTHING = 1e8  # about so large an epsilon is none, and takes minutes
# More noise leaves no digits of what sampling tells, and counts as so much: q / sigma^2 is
# not to come near the rounding of 1.
_MOST_SAMPLED, _OF_ROOT = 1e6, 3e6
_MOST_NOISE = 1e5  # likewise where sums change by several rows
# An empty batch that is rarer counts as one of a row, which promises no more: of so small
# a share dp_accounting keeps no digits.
_EMPTY = 1e-9


def epsilon(
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    accountant: Accountant = "rdp",
) -> float:
    """Epsilon of `steps` noisy sums over Poisson batches, add-or-remove adjacency.

    Args:
      noise_multiplier: sigma, noise over sensitivity; 0 gives inf.
      sampling_rate: q, probability of each record to be in a batch.
      steps: number of sums; 0 gives 0.
      delta: in (0, 1).
      accountant: 'rdp' or 'pld'.

    Raises:
      ValueError: for numbers out of range.

    Example:
      >>> round(epsilon(6.0, 0.01, 10_000, delta=1e-5), 2)
      0.66
    """
    exact.check(noise_multiplier, sampling_rate, delta)
    if accountant not in ("rdp", "pld"):
        raise ValueError(f"accountant must be 'rdp' or 'pld', got {accountant!r}")
    exact.check_steps(steps)
    rates = _counted(noise_multiplier, sampling_rate), float(sampling_rate)
    if accountant == "rdp":
        return _renyi(*rates, int(steps), delta)
    return poisson(*rates, [int(steps)], [1.0], delta)


def poisson(
    noise_multiplier: float,
    sampling_rate: float,
    steps: Sequence[int],
    weights: Sequence[float],
    delta: float,
    *,
    replace: bool = False,
) -> float:
    """Epsilon over Poisson batches when `steps[j]` of them occur with `weights[j]`.

    The number of steps does not depend on the data and may be seen, so that
    `delta(epsilon)` is the mean over it (of divergences, not of epsilons).

    Args:
      noise_multiplier: as in `epsilon`.
      sampling_rate: as in `epsilon`.
      steps: `[J]`, increasing.
      weights: `[J]`, sum 1.
      delta: in (0, 1).
      replace: neighbours differ in the value of one unit, instead of in its presence;
        the noise multiplier still is over what one unit adds.

    Raises:
      ValueError: for numbers out of range.
    """
    exact.check(noise_multiplier, sampling_rate, delta)
    exact.check_steps(steps)
    rates = _counted(noise_multiplier, sampling_rate), float(sampling_rate)
    return _poisson(*rates, tuple(steps), tuple(weights), delta, replace)


@functools.lru_cache(maxsize=64)
def profile(
    noise_multiplier: float, sampling_rate: float, steps: int, *, replace: bool
) -> exact.Profile:
    """Delta of every epsilon, negative ones too, over `steps` Poisson batches.

    Rounded so that delta is never too small.

    Args:
      noise_multiplier: as in `poisson`.
      sampling_rate: as in `epsilon`.
      steps: number of sums.
      replace: as in `poisson`.

    Raises:
      ValueError: for numbers out of range.
    """
    exact.check(noise_multiplier, sampling_rate, _ANY_DELTA)
    noise_multiplier = _counted(noise_multiplier, sampling_rate)
    effect = noise_multiplier / 2 if replace else noise_multiplier
    if sampling_rate == 1 or effect in (0, np.inf) or not steps:
        return exact.profile(effect, [steps], [1.0])
    bound = _renyi(effect, sampling_rate, steps, _ANY_DELTA)
    if bound > _MOST_EPSILON:
        return exact.profile(0.0, [steps], [1.0])
    cell = loss_distributions.cell(bound, steps, _ANY_DELTA)
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    if replace:
        relation = NeighboringRelation.REPLACE_ONE
    one = loss_distributions.step(noise_multiplier, sampling_rate, cell, relation)
    found = loss_distributions.composed(one, steps)
    return lambda epsilon: min(
        1.0,
        float(found.get_delta_for_epsilon(epsilon)) + loss_distributions.rounded(steps),
    )


def without_replacement(
    noise_multiplier: float, total: int, chosen: int, steps: int, delta: float
) -> float:
    """Epsilon when each step draws `chosen` of `total` units, one of them replaced.

    Renyi divergences (Wang, Balle, Kasiviswanathan 2019).

    Args:
      noise_multiplier: over what one unit adds; replacing it changes twice as much.
      total: units.
      chosen: units in each step.
      steps: number of sums.
      delta: in (0, 1).

    Raises:
      ValueError: for numbers out of range.
    """
    if total < 1:
        raise ValueError(f"total must be >= 1, got {total}")
    exact.check(noise_multiplier, chosen / total, delta)
    exact.check_steps(steps)
    noise_multiplier = exact.counted(noise_multiplier, _MOST_NOISE)
    if noise_multiplier in (0, np.inf) or not steps:
        return 0.0 if noise_multiplier or not steps else np.inf
    one = dp_accounting.SampledWithoutReplacementDpEvent(
        total, chosen, dp_accounting.GaussianDpEvent(noise_multiplier / 2)
    )
    return _converted(one, NeighboringRelation.REPLACE_ONE, steps, delta)


def whole_batches(
    noise_multiplier: float, sampling_rate: float, total: int, steps: int, delta: float
) -> float:
    """Epsilon when all units leave their Poisson batches at once (become zero).

    A step's sum then changes by at most as many units as its batch holds: a mixture of
    Gaussians (Choquette-Choo et al. 2024, corollary 4.7).

    Args:
      noise_multiplier: over what ONE unit adds.
      sampling_rate: probability of each unit to be in a batch.
      total: units.
      steps: number of sums.
      delta: in (0, 1).

    Raises:
      ValueError: for numbers out of range.
    """
    exact.check(noise_multiplier, sampling_rate, delta)
    exact.check_steps(steps)
    noise_multiplier = exact.counted(noise_multiplier, _MOST_NOISE)
    if noise_multiplier in (0, np.inf) or not steps:
        return 0.0 if noise_multiplier or not steps else np.inf
    return _whole_batches(noise_multiplier, sampling_rate, total, steps, delta)


@functools.lru_cache(maxsize=1024)
def _whole_batches(noise_multiplier, sampling_rate, total, steps, delta) -> float:
    # Larger batches are rarer than 1e-15: they go into delta, and out of the mixture.
    largest = int(stats.binom.isf(exact.RARE, total, sampling_rate))
    sizes = np.arange(largest + 1)
    weights = stats.binom.pmf(sizes, total, sampling_rate)
    rare = steps * float(stats.binom.sf(largest, total, sampling_rate))
    if rare >= delta:
        return np.inf
    if weights[0] < _EMPTY and largest:
        weights[1] += weights[0]
        sizes, weights = sizes[1:], weights[1:]
    shift = float(np.sqrt(steps * (weights @ np.square(sizes)))) / noise_multiplier
    scale = shift * (shift / 2 + float(stats.norm.isf(delta / 2)))
    if scale > _NOTHING:
        return np.inf
    one = pld.from_mixture_gaussian_mechanism(
        noise_multiplier,
        sizes.astype(float).tolist(),
        (weights / weights.sum()).tolist(),
        value_discretization_interval=loss_distributions.cell(scale, steps, delta),
    )
    return loss_distributions.epsilon(
        loss_distributions.composed(one, steps), delta - rare, steps
    ) - float(np.log1p(-rare))


def _counted(noise_multiplier: float, sampling_rate: float) -> float:
    if sampling_rate == 1:
        return exact.counted(noise_multiplier)
    most = min(_MOST_SAMPLED, _OF_ROOT * float(np.sqrt(sampling_rate)))
    return exact.counted(noise_multiplier, most)


def _renyi(noise_multiplier, sampling_rate, steps, delta) -> float:
    if steps == 0 or np.isinf(noise_multiplier):
        return 0.0
    one = dp_accounting.PoissonSampledDpEvent(
        sampling_rate, dp_accounting.GaussianDpEvent(noise_multiplier)
    )
    return _converted(one, NeighboringRelation.ADD_OR_REMOVE_ONE, steps, delta)


def _converted(one, relation, steps, delta) -> float:
    orders, curve = _curve(one, relation)
    return float(rdp.compute_epsilon(orders.tolist(), steps * curve, delta)[0])


@functools.lru_cache(maxsize=1024)
def _curve(one, relation) -> tuple[np.ndarray, np.ndarray]:
    """Orders, and the Renyi divergence of one step at each."""
    return renyi.curve(rdp.RdpAccountant(neighboring_relation=relation), one)


@functools.lru_cache(maxsize=1024)
def _poisson(noise_multiplier, sampling_rate, steps, weights, delta, replace) -> float:
    effect = noise_multiplier / 2 if replace else noise_multiplier
    if sampling_rate == 1 or effect in (0, np.inf) or not max(steps):
        return exact.gaussian(effect, steps, weights, delta)
    bound = _renyi(effect, sampling_rate, max(steps), delta)
    if bound > _MOST_EPSILON:
        return bound
    cell = loss_distributions.cell(bound, max(steps), delta)
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    if replace:
        relation = NeighboringRelation.REPLACE_ONE
    one = loss_distributions.step(noise_multiplier, sampling_rate, cell, relation)
    found = loss_distributions.epsilon(
        loss_distributions.mixture(one, steps, weights, cell), delta, max(steps)
    )
    return found if replace else min(found, bound)

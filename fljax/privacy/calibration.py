"""Noise, steps or rounds that keep a budget: searches over an epsilon that is monotone.

The answer is always on the safe side of the budget.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy import optimize

from fljax.privacy import sampled
from fljax.privacy.sampled import Accountant
from fljax.privacy.statements import Statement, Training

_TOLERANCE = 1e-4  # of a calibrated noise, relative
_START = 16.0  # with less noise Renyi divergences are slow
_TINY = 1e-300
_WIDEST = 2.0**40  # beyond which a search for sigma gives up
_MOST_SUMS = 2**20  # the same for steps or rounds: each more takes longer to compose

Say = Callable[[Training], Statement]


class Unattainable(ValueError):
    """No noise, or no number of steps or rounds, brings epsilon to the budget."""


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    sampling_rate: float,
    steps: int,
    accountant: Accountant = "rdp",
) -> float:
    """Smallest noise multiplier by which an accountant keeps the budget, to 1e-4 above it.

    Renyi divergences are of finitely many orders: budgets of a few thousandths take them
    far more noise than `pld`.

    Args:
      epsilon: the budget, above 0.
      delta: in (0, 1).
      sampling_rate: as in `epsilon`.
      steps: as in `epsilon`, at least 1.
      accountant: as in `epsilon`.

    Raises:
      Unattainable: if no noise keeps the budget.
      ValueError: for numbers out of range.

    Example:
      >>> round(noise_multiplier_for(1.0, 1e-5, 0.01, 10_000), 1)
      4.1
    """
    _check(epsilon)
    if steps < 1:
        raise ValueError(f"steps must be >= 1, got {steps}")
    return _least(
        lambda sigma: sampled.epsilon(sigma, sampling_rate, steps, delta, accountant),
        epsilon,
    )


def steps_for(
    epsilon: float,
    delta: float,
    noise_multiplier: float,
    sampling_rate: float,
    accountant: Accountant = "rdp",
) -> int:
    """Largest number of steps that keeps the budget; 0 if already one exceeds it.

    Args:
      epsilon: the budget, above 0.
      delta: in (0, 1).
      noise_multiplier: as in `epsilon`.
      sampling_rate: as in `epsilon`.
      accountant: as in `epsilon`.

    Raises:
      Unattainable: if the budget is not spent in a million steps.
      ValueError: for numbers out of range.
    """
    _check(epsilon)
    return _most(
        lambda steps: sampled.epsilon(
            noise_multiplier, sampling_rate, steps, delta, accountant
        ),
        epsilon,
        "steps",
    )


def sigma_for(epsilon: float, training: Training, say: Say) -> float:
    """Smallest sigma with which a statement about a training keeps the budget.

    Args:
      epsilon: the budget, above 0.
      training: its sigma does not matter.
      say: one of the functions of `fed_cdp` or `fed_sdp` that state an epsilon.

    Raises:
      Unattainable: if no sigma does.
      ValueError: if the statement has no number.
    """
    _check(epsilon)
    return _least(
        lambda sigma: _number(say(dataclasses.replace(training, sigma=sigma))), epsilon
    )


def rounds_for(epsilon: float, training: Training, say: Say) -> int:
    """Largest number of rounds with which a statement keeps the budget; 0 for none.

    Args:
      epsilon: the budget, above 0.
      training: its number of rounds does not matter.
      say: as in `sigma_for`.

    Raises:
      Unattainable: if the budget is not spent in a million rounds.
      ValueError: if the statement has no number.
    """
    _check(epsilon)
    return _most(
        lambda count: _number(say(dataclasses.replace(training, rounds=count))),
        epsilon,
        "rounds",
    )


def _number(statement: Statement) -> float:
    if statement.epsilon is None:
        raise ValueError(f"{statement.name} has no epsilon: {statement.reason}")
    return statement.epsilon


def _least(epsilon_of: Callable[[float], float], target: float) -> float:
    def excess(exponent: float) -> float:
        found = epsilon_of(float(np.exp(exponent)))
        return float(np.log(np.clip(found, _TINY, 1 / _TINY) / target))

    high = _START
    while epsilon_of(high) > target:
        high *= 2
        if high > _WIDEST:
            raise Unattainable(f"no noise brings epsilon down to {target}")
    while high > 1 / _WIDEST and epsilon_of(high / 2) <= target:
        high /= 2
    if high <= 1 / _WIDEST:
        return high
    # Nearly a line, on logarithmic scales.
    ends = np.log(high / 2), np.log(high)
    found = optimize.root_scalar(excess, bracket=ends, xtol=_TOLERANCE / 4).root
    while excess(found) > 0:
        found += _TOLERANCE / 2
    return float(np.exp(found))


def _most(epsilon_of: Callable[[int], float], target: float, what: str) -> int:
    kept, over = 0, 1
    while epsilon_of(over) <= target:
        kept, over = over, 2 * over
        if over > _MOST_SUMS:
            raise Unattainable(
                f"epsilon stays below {target} for {_MOST_SUMS} {what} and more"
            )
    while over - kept > 1:
        middle = (kept + over) // 2
        kept, over = (middle, over) if epsilon_of(middle) <= target else (kept, middle)
    return kept


def _check(epsilon: float) -> None:
    if not 0 < epsilon < np.inf:
        raise ValueError(f"epsilon must be > 0 and finite, got {epsilon}")

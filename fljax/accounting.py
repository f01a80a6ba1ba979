"""Privacy guarantees of noisy training: epsilon from noise, and noise from epsilon.

All numbers come from dp_accounting, for the Gaussian mechanism on Poisson-sampled
batches, composed over the steps of one client:

* `rdp`: Renyi divergences (Mironov et al. 2019), as the library of Diana et al. counts;
* `pld`: privacy loss distributions, tighter, rounded so that epsilon is never too small.

Orders of the Renyi divergence differ between libraries; sigma agrees within 1 %.
"""

import functools
from typing import Literal, NamedTuple

import dp_accounting
import numpy as np
from dp_accounting import pld, rdp

from fljax.types import NoiseSpec

Accountant = Literal["rdp", "pld"]
# Width of the cells of a loss distribution: absolute, and as a share of epsilon, so that
# a training with next to no noise does not need millions of cells.
_CELL, _CELL_SHARE = 1e-4, 1e-5
_TOLERANCE = 1e-4  # of a calibrated noise multiplier, on the safe side


class Guarantee(NamedTuple):
    """What a client's records are promised.

    Attributes:
      epsilon_rdp: `[C]` float64 by Renyi divergences; inf without noise.
      epsilon_pld: `[C]` float64 by privacy loss distributions.
      delta: of both.
      assumption: what they rest on, in words.
    """

    epsilon_rdp: np.ndarray
    epsilon_pld: np.ndarray
    delta: float
    assumption: str


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
    """
    _check(sampling_rate, delta, accountant)
    if not noise_multiplier >= 0:
        raise ValueError(f"noise_multiplier must be >= 0, got {noise_multiplier}")
    if steps < 0:
        raise ValueError(f"steps must be >= 0, got {steps}")
    return _epsilon(
        float(noise_multiplier), float(sampling_rate), int(steps), delta, accountant
    )


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    sampling_rate: float,
    steps: int,
    accountant: Accountant = "rdp",
) -> float:
    """Smallest noise multiplier that keeps the budget, to 1e-4 on the safe side.

    Args:
      epsilon: the budget, above 0.
      delta: in (0, 1).
      sampling_rate: as in `epsilon`.
      steps: as in `epsilon`, at least 1.
      accountant: as in `epsilon`.

    Raises:
      ValueError: for numbers out of range.
    """
    _check(sampling_rate, delta, accountant)
    if not 0 < epsilon < np.inf:
        raise ValueError(f"epsilon must be > 0 and finite, got {epsilon}")
    if steps < 1:
        raise ValueError(f"steps must be >= 1, got {steps}")
    return _calibrated(epsilon, delta, float(sampling_rate), int(steps), accountant)


def guarantee(noise: NoiseSpec, steps: np.ndarray, delta: float) -> Guarantee:
    """What the noise of a defense promises each client's records.

    Args:
      noise: from the defense, concrete.
      steps: `[C]` noisy sums that each client releases.
      delta: in (0, 1).

    Raises:
      ValueError: for numbers out of range.
    """
    columns = np.broadcast_arrays(noise.noise_multiplier, noise.sampling_rate, steps)

    def each(accountant: Accountant) -> np.ndarray:
        return np.array(
            [epsilon(s, q, n, delta, accountant) for s, q, n in zip(*columns)]
        )

    assumption = (
        f"neighbours: {noise.adjacency} (one row) of one client; every row is in each of "
        f"her batches independently with probability q = {_span(columns[1])} (Poisson); one "
        f"row changes a batch's sum by at most {noise.sensitivity:g} and "
        f"the noise has a deviation of {_span(columns[0])} times that; "
        f"{_span(columns[2])} such sums are composed, whatever the server sends; how "
        f"many rows she has is public; delta = {delta:g}"
    )
    return Guarantee(each("rdp"), each("pld"), delta, assumption)


@functools.cache
def _epsilon(noise_multiplier, sampling_rate, steps, delta, accountant) -> float:
    if steps == 0:
        return 0.0
    event = _event(noise_multiplier, sampling_rate, steps)
    found = rdp.RdpAccountant().compose(event).get_epsilon(delta)
    if accountant == "pld" and np.isfinite(found):
        cell = max(_CELL, _CELL_SHARE * found)
        found = pld.PLDAccountant(value_discretization_interval=cell)
        found = found.compose(event).get_epsilon(delta)
    return float(found)


@functools.cache
def _calibrated(target, delta, sampling_rate, steps, accountant) -> float:
    def accountant_for_target():
        if accountant == "rdp":
            return rdp.RdpAccountant()
        cell = max(_CELL, _CELL_SHARE * target)
        return pld.PLDAccountant(value_discretization_interval=cell)

    return dp_accounting.calibrate_dp_mechanism(
        accountant_for_target,
        lambda noise_multiplier: _event(noise_multiplier, sampling_rate, steps),
        target,
        delta,
        dp_accounting.LowerEndpointAndGuess(0.0, 1.0),
        tol=_TOLERANCE,
    )


def _event(noise_multiplier, sampling_rate, steps) -> dp_accounting.DpEvent:
    one = dp_accounting.PoissonSampledDpEvent(
        sampling_rate, dp_accounting.GaussianDpEvent(noise_multiplier)
    )
    return dp_accounting.SelfComposedDpEvent(one, steps)


def _check(sampling_rate, delta, accountant) -> None:
    if not 0 < sampling_rate <= 1:
        raise ValueError(f"sampling_rate must be in (0, 1], got {sampling_rate}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be in (0, 1), got {delta}")
    if accountant not in ("rdp", "pld"):
        raise ValueError(f"accountant must be 'rdp' or 'pld', got {accountant!r}")


def _span(values: np.ndarray) -> str:
    low, high = np.min(values), np.max(values)
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"

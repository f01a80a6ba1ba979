"""The recipe behind the epsilons that Wei et al. print (2021, Table VI).

Renyi divergences of the Poisson-sampled Gaussian on a fixed grid of orders, and the
classic conversion `min over a of rdp(a) + log(1/delta) / (a - 1)` (Mironov 2017,
proposition 3), where dp_accounting would use a tighter one. With few steps the number is
an artefact of the grid: its largest order alone costs log(1/delta) / 511.
"""

import functools

import dp_accounting
import numpy as np
from dp_accounting import rdp

from fljax.privacy import exact, renyi

_ORDERS = (1.25, 1.5, 1.75, 2, 2.25, 2.5, 3, 3.5, 4, 4.5, *range(5, 64), 128, 256, 512)


def as_printed(sigma: float, sampling_rate: float, steps: int, delta: float) -> float:
    """Epsilon as the paper computes it from the sigma that it names.

    Args:
      sigma: taken as noise over sensitivity, whatever the clipping is.
      sampling_rate: B / N_i for Fed-CDP, K_t / K for Fed-SDP.
      steps: noisy sums. The printed numbers are those of one more than there are.
      delta: in (0, 1).

    Raises:
      ValueError: for numbers out of range.
    """
    exact.check(sigma, sampling_rate, delta)
    exact.check_steps(steps)
    if steps < 1:
        raise ValueError(f"steps must be >= 1, got {steps}")
    curve = _curve(float(sigma), float(sampling_rate))
    return float(np.min(steps * curve + np.log(1 / delta) / (np.array(_ORDERS) - 1)))


@functools.lru_cache(maxsize=64)
def _curve(sigma, sampling_rate) -> np.ndarray:
    """Renyi divergence of one step, by order."""
    one = dp_accounting.PoissonSampledDpEvent(
        sampling_rate, dp_accounting.GaussianDpEvent(sigma)
    )
    return renyi.curve(rdp.RdpAccountant(_ORDERS), one)[1]

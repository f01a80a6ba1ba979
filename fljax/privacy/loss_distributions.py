"""Distributions of the privacy loss: of one step, of many, of as many as are drawn.

Those of dp_accounting, in cells that are fine enough for what they are asked.
"""

import functools

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

# Cells of a loss distribution, as shares of the composed loss's deviation. Each step's
# rounding adds to its variance, so the share falls with the root of their number.
_SHARE, _LEAST_SHARE, _LEAST_CELL = 4e-2, 1e-5, 1e-5
_SHARE_OF_EPSILON = 1e-3
# Steps composed at once: beyond, dp_accounting raises integers to powers.
_BLOCK = 10**5
_MOST_TERMS = 100  # of a mixture of loss distributions


def mixture(one, steps, weights, cell):
    """Loss of so many steps as are drawn, when their number is seen."""
    size = -(-len(steps) // _MOST_TERMS)  # neighbours become the largest of them
    mixed, total = pld.identity(cell), 0.0
    for first in range(0, len(steps), size):
        group = slice(first, first + size)
        count, weight = max(steps[group]), sum(weights[group])
        if not weight:
            continue
        term = composed(one, count) if count else pld.identity(cell)
        total += weight
        mixed = term.compute_mixture(mixed, weight / total)
    return mixed


@functools.lru_cache(maxsize=16)
def step(noise_multiplier, sampling_rate, cell, relation):
    """Loss distribution of one step."""
    return pld.from_gaussian_mechanism(
        noise_multiplier,
        value_discretization_interval=cell,
        sampling_prob=sampling_rate,
        neighboring_relation=relation,
    )


def composed(one, steps: int):
    """Loss of so many steps."""
    blocks, left = divmod(steps, _BLOCK)
    if not blocks:
        return one.self_compose(steps)
    found = one.self_compose(_BLOCK).self_compose(blocks)
    return found.compose(one.self_compose(left)) if left else found


def epsilon(found, delta: float, steps: int) -> float:
    """Epsilon of a composed loss; infinite where it has no digits for so small a delta."""
    left = delta - rounded(steps)
    return float(found.get_epsilon_for_delta(left)) if left > 0 else np.inf


def rounded(steps: int) -> float:
    """What a delta may have lost by the Fourier transforms that compose so many steps."""
    return steps * float(np.finfo(float).eps)


def cell(epsilon: float, steps: int, delta: float) -> float:
    """Width of the cells, from about what epsilon will be."""
    tail = max(stats.norm.isf(delta), 0.0)
    deviation = np.sqrt(tail**2 + 2 * epsilon) - tail  # of a Gaussian with that epsilon
    share = max(_SHARE / np.sqrt(steps), _LEAST_SHARE)
    return float(max(min(share * deviation, _SHARE_OF_EPSILON * epsilon), _LEAST_CELL))

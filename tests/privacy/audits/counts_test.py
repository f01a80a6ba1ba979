"""Bounds of epsilon from two counts, against every outcome that there can be."""

import itertools

import numpy as np
import pytest
from scipy import stats

from fljax.privacy.audits import counts

_WITH, _WITHOUT = 9, 12


@pytest.fixture(scope="module")
def bounds():
    """`[hits, alarms]` at delta = 0.1."""
    grid = itertools.product(range(_WITH + 1), range(_WITHOUT + 1))
    found = [counts.epsilon(*at, (_WITH, _WITHOUT), delta=0.1) for at in grid]
    return np.reshape(found, (_WITH + 1, _WITHOUT + 1))


def test_no_more_bounds_are_too_high_than_was_said(bounds):
    for alarm in np.linspace(0.001, 0.9, 40):
        for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0):
            hit = min(1.0, np.exp(epsilon) * alarm + 0.1)
            chance = np.outer(
                stats.binom.pmf(np.arange(_WITH + 1), _WITH, hit),
                stats.binom.pmf(np.arange(_WITHOUT + 1), _WITHOUT, alarm),
            )
            assert chance[bounds > epsilon].sum() <= 0.05


def test_a_bound_of_both_counts_is_above_the_one_of_each(bounds):
    hits, alarms = np.indices(bounds.shape)
    few, many = counts.apart(hits, alarms, (_WITH, _WITHOUT), 0.95)
    each = np.log(np.maximum(few - 0.1, 1e-9) / many)
    assert (bounds >= each - 3e-3).all()
    assert bounds.max() > each.max() + 0.1
    assert (np.diff(bounds, axis=0) >= -2e-3).all()

"""Clients in two clusters, between which target and attribute correlate oppositely."""

import numpy as np
import pytest

from fljax import partition


def _rich_men(num_rows=400):
    """Independent target and attribute: the four combinations are equally large."""
    return np.arange(num_rows).astype(float), np.arange(num_rows) % 2


def _phi(parts, target, sensitive):
    above = target > np.median(target)
    return [np.corrcoef(above[part], sensitive[part])[0, 1] for part in parts]


@pytest.mark.parametrize("seed", range(3))
def test_full_heterogeneity_correlates_perfectly_with_opposite_signs(seed):
    data = _rich_men()
    parts = partition.correlation(np.random.default_rng(seed), *data, 10, 0.5)
    np.testing.assert_allclose(_phi(parts, *data), [-1] * 5 + [1] * 5)


def test_no_heterogeneity_leaves_about_no_correlation():
    data = _rich_men(40_000)
    parts = partition.correlation(np.random.default_rng(0), *data, 2, 0)
    # A sample correlation of n independent rows has deviation 1 / sqrt(n).
    np.testing.assert_allclose(_phi(parts, *data), 0, atol=4 / np.sqrt(20_000))


@pytest.mark.parametrize("h, swapped", [(0.4, 10), (0.2, 30), (0.5, 0), (0, 50)])
def test_the_clusters_exchange_a_share_of_a_half_minus_h(h, swapped):
    target, sensitive = _rich_men(200)
    above = target > np.median(target)
    second, first = partition.correlation(
        np.random.default_rng(0), target, sensitive, 2, h
    )
    assert (above[second] == sensitive[second]).sum() == swapped
    assert (above[first] != sensitive[first]).sum() == swapped


def test_the_larger_cluster_is_sampled_down_to_the_smaller():
    sensitive = np.array([1, 0, 0, 0, 0, 1, 1, 1, 1, 0])
    parts = partition.correlation(
        np.random.default_rng(0), np.arange(10.0), sensitive, 2, 0.5
    )
    assert [len(part) for part in parts] == [2, 2]

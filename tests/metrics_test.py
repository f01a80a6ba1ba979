"""Scores against SciPy and by hand."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from fljax import metrics


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_interval_is_students(confidence):
    values = np.array([0.91, 0.95, 0.88, 0.97])
    found = metrics.interval(values, confidence)
    low, high = stats.t.interval(
        confidence, len(values) - 1, loc=values.mean(), scale=stats.sem(values)
    )
    np.testing.assert_allclose((found.low, found.high), (low, high), rtol=1e-12)
    assert found.mean == pytest.approx(0.9275)
    assert found.median == pytest.approx(0.93)
    assert found.repetitions == 4


def test_the_default_interval_covers_the_mean_in_95_percent_of_repetitions():
    num_trials = 1000
    draws = np.random.default_rng(0).normal(size=(num_trials, 5))
    found = [metrics.interval(values) for values in draws]
    share = np.mean([f.low < 0 < f.high for f in found])
    assert abs(share - 0.95) < 4 * np.sqrt(0.95 * 0.05) / np.sqrt(num_trials)


@pytest.mark.parametrize("count", [2, 10, 37])
def test_equal_values_have_no_spread_whatever_rounding_makes_of_their_mean(count):
    value = 71 / 72 * 100
    found = metrics.interval([value] * count)
    assert found.low == found.mean == found.high == value
    wide = metrics.as_rows(found, 72)
    assert (wide.low, wide.high) == metrics.of_rows(value, 72)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_equal_values_that_are_not_finite_have_no_interval(value):
    found = metrics.interval([value] * 3)
    assert math.isnan(found.low) and math.isnan(found.high)


def test_one_repetition_has_a_mean_but_no_interval():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = metrics.interval([0.5])
    assert (found.mean, found.median, found.repetitions) == (0.5, 0.5, 1)
    assert math.isnan(found.low) and math.isnan(found.high)


def test_accuracy_counts_only_rows_in_the_mask():
    guess, truth = [1, 0, 1, 1], [1, 1, 1, 0]
    assert metrics.accuracy(guess, truth, [1, 1, 1, 0]) == pytest.approx(2 / 3)
    assert metrics.accuracy(guess, truth, [1, 1, 1, 1]) == 0.5


def test_accuracy_of_no_rows_is_nan():
    assert math.isnan(metrics.accuracy([1], [1], [False]))


def test_majority_is_the_share_of_the_most_frequent_value_in_the_mask():
    truth = [2, 2, 0, 1, 0, 0]
    assert metrics.majority(truth, [1] * 6) == 0.5
    assert metrics.majority(truth, [1, 1, 1, 1, 0, 0]) == 0.5
    assert metrics.majority(truth, [1, 1, 0, 0, 0, 0]) == 1.0


def test_weighted_mean_weighs_clients_by_their_rows():
    assert metrics.weighted_mean([0.5, 1.0], [3, 1]) == 0.625


def test_a_mean_over_clients_is_worth_the_rows_of_its_variance():
    assert metrics.rows_of_mean([100]) == 100
    assert metrics.rows_of_mean([99, 100, 99, 99]) == 397
    assert metrics.rows_of_mean([1000, 3]) == 12  # 4 / (1 / 1000 + 1 / 3)
    assert metrics.rows_of_mean([5, 0]) == 0


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_the_interval_of_a_share_is_wilsons(confidence):
    found = metrics.of_rows(80.0, 50, confidence)
    ends = stats.binomtest(40, 50).proportion_ci(confidence, method="wilson")
    np.testing.assert_allclose(found, (100 * ends.low, 100 * ends.high))


def test_what_is_usual_of_few_rows_is_that_of_all_clients():
    alone = [np.array([bit]) for bit in (1, 0, 1, 0, 0)]
    assert list(metrics.usual_values(alone, continuous=False)) == [0] * 5
    many = np.repeat([1, 0], [8, 4])  # enough for one's own
    told = metrics.usual_values([*alone, many], continuous=False)
    assert list(told) == [1] * 6  # of 17 rows 10
    numbers = [np.array([9.0]), np.arange(20.0), np.zeros(0)]
    assert list(metrics.usual_values(numbers, continuous=True)) == [9.0, 9.5, 9.0]
    nobody = [np.zeros(0)]
    assert list(metrics.usual_values(nobody, continuous=True)) == [0]

"""Guessed numbers beside the truth: after shrinkage, and what they tell."""

import numpy as np
import pytest

from fljax import shrinkage


def test_a_noisy_guess_tells_more_than_the_imputed_value_that_it_errs_beyond():
    rng = np.random.default_rng(0)
    real, imputed = rng.normal(size=2000), np.zeros(2000)
    noisy = real + 2 * rng.normal(size=2000)
    found = shrinkage.judge(noisy, real, imputed, left=1.0, unit=10.0)
    assert found.numbers[shrinkage.BEFORE] == pytest.approx(16, abs=0.5)
    assert found.imputed.mean() == pytest.approx(8, abs=0.3)
    assert found.error.mean() == pytest.approx(8 * np.sqrt(0.8), abs=0.3)
    # Noise of variance 4 beside a truth of variance 1: R2 = 1 / (1 + 4).
    assert found.numbers[shrinkage.BEYOND] == pytest.approx(20, abs=2)
    assert found.numbers[shrinkage.CORRELATION] == pytest.approx(0.2**0.5, abs=0.03)
    assert found.numbers[shrinkage.PARTIAL] == pytest.approx(0.2**0.5, abs=0.03)
    blind = shrinkage.judge(2 * rng.normal(size=2000), real, imputed, left=1.0)
    assert blind.numbers[shrinkage.BEYOND] < 0
    assert abs(blind.numbers[shrinkage.PARTIAL]) < 0.07


def test_errors_that_depend_on_the_truth_still_tell():
    rng = np.random.default_rng(0)
    real = rng.normal(size=2000)
    # Drawn to the middle: its error is not independent of the truth.
    guess = 0.4 * real + rng.normal(size=2000)
    found = shrinkage.judge(guess, real, np.zeros(2000), left=1.0)
    assert found.numbers[shrinkage.BEYOND] < 0
    assert found.numbers[shrinkage.PARTIAL] == pytest.approx(0.37, abs=0.05)


def test_what_is_no_number_is_no_guess():
    guess, imputed = np.array([np.nan, np.inf, 3.0]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(shrinkage.shrunk(guess, imputed, 1.0), imputed)
    found = shrinkage.judge(guess, imputed, imputed, 1.0)
    assert np.isnan(found.numbers[shrinkage.CORRELATION])
    assert shrinkage.judge(imputed, imputed).numbers == {"correlation": 1.0}


def test_no_guess_is_moved_away_from_the_imputed_value():
    near = np.array([1.0, -1.0])
    np.testing.assert_array_equal(shrinkage.shrunk(near, np.zeros(2), 9.0), near)


def test_clients_correlations_are_one_with_an_interval():
    found = shrinkage.mean_correlation([0.5, 0.5], [53, 53])
    assert str(found) == "0.50 [0.34, 0.63]"
    assert shrinkage.mean_correlation([0.5, np.nan], [53, 53]) is None
    assert shrinkage.mean_correlation([1.0], [3]) is None
    assert shrinkage.mean_correlation([0.5, np.nan, 0.5], [53, 1, 53]) == found
    text = shrinkage.said(found, 21.6, found)
    assert "correlation 0.50 [0.34, 0.63], beyond imputation 0.50 [" in text
    assert text.endswith(", 22 % of the variance that imputation leaves")
    assert shrinkage.said(None, 21.6) == ""


def test_the_correlation_beyond_imputation_leaves_out_what_is_imputed():
    rng = np.random.default_rng(0)
    base, rest, noise = rng.normal(size=(3, 2000))
    found = shrinkage.judge(2 * base + 0.1 * noise, base + rest, base, left=1.0)
    assert found.numbers[shrinkage.CORRELATION] > 0.6
    assert abs(found.numbers[shrinkage.PARTIAL]) < 0.07


def test_a_guess_that_says_nothing_is_not_correlated_by_an_imputation_that_is_off():
    rng = np.random.default_rng(0)
    real = rng.normal(size=150)
    off = 0.3 * real + rng.normal(size=150)  # less it, truth and any constant agree
    same = shrinkage.judge(np.full(150, 0.7), real, off, left=1.0)
    assert same.numbers[shrinkage.PARTIAL] == 0
    blind = shrinkage.judge(0.01 * rng.normal(size=150), real, off, left=1.0)
    assert abs(blind.numbers[shrinkage.PARTIAL]) < 0.2


def test_one_wild_guess_does_not_hide_what_the_others_tell():
    real = np.random.default_rng(0).normal(size=200)
    guess = real.copy()
    guess[0] = 1e6
    found = shrinkage.judge(guess, real, np.zeros(200), left=1.0)
    assert found.numbers[shrinkage.BEYOND] > 85
    assert found.numbers[shrinkage.PARTIAL] > 0.9
    assert found.numbers[shrinkage.BEFORE] > 4000  # that is what was guessed
    wild = shrinkage.judge(1e6 * real[::-1], real, np.zeros(200), left=1.0)
    assert wild.numbers[shrinkage.BEYOND] < 0

"""Epsilon by kind of sampling: closed forms, limits, and which side errors fall on."""

import numpy as np
import pytest
from scipy import stats

from fljax import privacy
from fljax.privacy import exact, loss_distributions, sampled


@pytest.mark.parametrize(("sigma", "count"), [(2.0, 1), (6.0, 100), (0.1, 10)])
def test_gaussian_epsilon_gives_back_delta(sigma, count):
    epsilon = exact.gaussian(sigma, [count], [1.0], 1e-5)
    shift = np.sqrt(count) / sigma
    kept = stats.norm.cdf(shift / 2 - epsilon / shift)
    lost = np.exp(epsilon + stats.norm.logcdf(-shift / 2 - epsilon / shift))
    assert kept - lost == pytest.approx(1e-5, rel=1e-4)


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("sigma", [0.5, 2.0, 10.0])
@pytest.mark.parametrize(
    "releases", [([1], [1.0]), ([0, 1], [0.5, 0.5]), exact.drawn(50, 0.1)],
    ids=["one", "one or none", "many"],
)  # fmt: skip
def test_gaussian_epsilon_is_never_too_small(sigma, releases, delta):
    epsilon = exact.gaussian(sigma, *releases, delta)
    assert exact.profile(sigma, *releases)(epsilon) <= delta


def test_a_mixture_is_no_mean_of_epsilons():
    # With probability 1/2 nothing is released: the other half may fail twice as often.
    found = exact.gaussian(2.0, [0, 1], [0.5, 0.5], 1e-5)
    assert found == pytest.approx(exact.gaussian(2.0, [1], [1.0], 2e-5))
    assert found > 0.9 * exact.gaussian(2.0, [1], [1.0], 1e-5)


def test_a_mixture_of_poisson_steps_is_the_same():
    found = sampled.poisson(2.0, 0.1, [0, 40], [0.5, 0.5], 1e-5)
    assert found == pytest.approx(
        sampled.poisson(2.0, 0.1, [40], [1.0], 2e-5), rel=1e-3
    )


def test_nearly_full_batches_come_to_those_that_are_full():
    for replace in (False, True):
        full = sampled.poisson(4.0, 1.0, [10], [1.0], 1e-5, replace=replace)
        nearly = sampled.poisson(4.0, 1 - 1e-9, [10], [1.0], 1e-5, replace=replace)
        assert nearly == pytest.approx(full, rel=1e-3)
        assert nearly >= full * (1 - 1e-6)
    assert full == pytest.approx(exact.gaussian(2.0, [10], [1.0], 1e-5))


def test_whole_batches_of_one_record_are_that_record():
    one = sampled.whole_batches(4.0, 0.1, 1, 50, 1e-5)
    assert one == pytest.approx(privacy.epsilon(4.0, 0.1, 50, 1e-5, "pld"), rel=1e-3)
    two = sampled.whole_batches(4.0, 0.1, 2, 50, 1e-5)
    assert one < two < privacy.epsilon(2.0, 0.1, 50, 1e-5, "pld") * 2
    full = sampled.whole_batches(4.0, 1.0, 5, 50, 1e-5)
    assert full == pytest.approx(exact.gaussian(0.8, [50], [1.0], 1e-5), rel=1e-3)


def test_drawn_counts_are_binomial_and_err_towards_more():
    counts, weights = exact.drawn(3, 0.5)
    assert counts == [0, 1, 2, 3]
    np.testing.assert_allclose(weights, [1 / 8, 3 / 8, 3 / 8, 1 / 8])
    counts, weights = exact.drawn(10_000, 0.1)
    assert len(counts) < 1000 and counts[-1] == 10_000
    assert sum(weights) == pytest.approx(1)
    assert np.dot(counts, weights) == pytest.approx(1000, rel=1e-9)
    assert exact.drawn(7, 1.0) == ([7], [1.0])


@pytest.mark.slow
def test_many_counts_are_merged_on_the_safe_side():
    told = exact.drawn(1000, 0.5)
    assert len(told[0]) > loss_distributions._MOST_TERMS
    found = sampled.poisson(20.0, 0.05, *told, 1e-5)
    low, high = (
        privacy.epsilon(20.0, 0.05, steps, 1e-5, "pld") for steps in (500, 520)
    )
    assert low < found < high


@pytest.mark.parametrize("steps", [1, 3, 100, 10_000])
def test_loss_distributions_lie_above_what_is_possible_and_below_renyi(steps):
    tight = privacy.epsilon(6.0, 0.01, steps, 1e-5, "pld")
    assert 0 < tight < privacy.epsilon(6.0, 0.01, steps, 1e-5)
    # Cells half as wide would change it by less than 0.2 %.
    finer = sampled.pld.from_gaussian_mechanism(
        6.0, sampling_prob=0.01, value_discretization_interval=5e-6
    )
    fine = finer.self_compose(steps).get_epsilon_for_delta(1e-5)
    assert fine * (1 - 1e-4) < tight < 1.002 * fine


def test_steps_by_the_million_are_quick():
    few, many = (privacy.epsilon(50.0, 1e-3, n, 1e-5, "pld") for n in (10**5, 10**7))
    assert few < many == pytest.approx(0.2115, rel=0.01)


def test_a_paper_recipe_costs_at_least_its_largest_order():
    floor = np.log(1e5) / 511
    assert privacy.as_printed(1e6, 0.01, 1, 1e-5) == pytest.approx(floor, rel=1e-6)
    assert privacy.as_printed(6.0, 0.01, 10_000, 1e-5) == pytest.approx(
        0.822734, abs=1e-6
    )
    with pytest.raises(ValueError, match="steps must be >= 1"):
        privacy.as_printed(6.0, 0.01, 0, 1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sigma": -1.0}, "noise_multiplier must be >= 0"),
        ({"rate": 0.0}, "sampling_rate must be in"),
        ({"rate": 1.1}, "sampling_rate must be in"),
        ({"delta": 0.0}, "delta must be in"),
        ({"delta": 1.0}, "delta must be in"),
    ],
    ids=str,
)
def test_bad_input(change, message):
    told = {"sigma": 1.0, "rate": 0.1, "delta": 1e-5} | change
    sigma, rate, delta = told.values()
    calls = [
        lambda: privacy.as_printed(sigma, rate, 1, delta),
        lambda: sampled.poisson(sigma, rate, [1], [1.0], delta),
        lambda: sampled.whole_batches(sigma, rate, 10, 1, delta),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call()

"""Epsilons against published noise, against a closed form, and bad input."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, stats

from fljax import privacy
from fljax.privacy import renyi, sampled
from fljax.types import NoiseSpec

_MEDICAL, _INCOME = (1 / 19, 150 * 19), (1 / 45, 150 * 45)


@pytest.mark.parametrize(
    ("rate_and_steps", "delta", "expected"),
    [(_MEDICAL, 1e-6, 12.81), (_MEDICAL, 1e-5, 11.48), (_INCOME, 1e-5, 7.50)],
    ids=["Medical, 1e-6", "Medical, 1e-5", "Income-L, 1e-5"],
)
def test_the_noise_of_the_authors_library(rate_and_steps, delta, expected):
    found = privacy.noise_multiplier_for(1.0, delta, *rate_and_steps)
    assert found == pytest.approx(expected, rel=0.01)
    assert privacy.epsilon(expected, *rate_and_steps, delta) == pytest.approx(
        1, rel=0.01
    )


def test_orders_that_do_not_converge_are_not_told_of(caplog):
    absl = logging.getLogger("absl")
    absl.addHandler(caplog.handler)
    try:
        with caplog.at_level(logging.WARNING, "absl"):  # others may have set another
            assert np.isfinite(privacy.epsilon(1.0, 1 / 13, 5, 1e-5))
            absl.warning("something else")
    finally:
        absl.removeHandler(caplog.handler)
    assert set(caplog.messages) == {"something else"}


def _gaussian_epsilon(sigma, delta):
    """Exact, for one release of the Gaussian mechanism (Balle and Wang 2018)."""

    def excess(epsilon):
        lower, upper = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
        return (stats.norm.cdf(lower) - np.exp(epsilon) * stats.norm.cdf(upper)) - delta

    return optimize.brentq(excess, 0, 100, xtol=1e-12)


@pytest.mark.parametrize("sigma", [2.0, 10.0, 40.0])
def test_without_sampling_the_loss_distribution_is_that_of_one_gaussian(sigma):
    exact = _gaussian_epsilon(sigma / np.sqrt(100), 1e-5)
    found = privacy.epsilon(sigma, 1.0, 100, 1e-5, "pld")
    assert found == pytest.approx(exact, rel=1e-3)
    assert found >= exact * (1 - 1e-6)


def test_loss_distributions_are_tighter_than_renyi_divergences():
    for sigma in (1.0, 5.0, 20.0):
        tight, loose = (
            privacy.epsilon(sigma, *_MEDICAL, 1e-5, how) for how in ("pld", "rdp")
        )
        assert 0.5 * loose < tight < loose


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_epsilon_is_monotone_in_every_argument(accountant):
    def epsilon(sigma=2.0, rate=0.05, steps=100, delta=1e-5):
        return privacy.epsilon(sigma, rate, steps, delta, accountant)

    base = epsilon()
    assert epsilon(sigma=2.5) < base < epsilon(sigma=1.5)
    assert epsilon(rate=0.03) < base < epsilon(rate=0.1)
    assert epsilon(steps=50) < base < epsilon(steps=200)
    assert epsilon(delta=1e-3) < base < epsilon(delta=1e-7)


@pytest.mark.parametrize(
    ("budget", "accountant"), [(0.1, "rdp"), (8.0, "rdp"), (1.0, "pld")], ids=str
)
def test_calibrated_noise_spends_the_budget_and_no_more(budget, accountant):
    sigma = privacy.noise_multiplier_for(budget, 1e-5, 0.05, 500, accountant)
    spent = privacy.epsilon(sigma, 0.05, 500, 1e-5, accountant)
    assert 0.998 * budget < spent <= budget


def test_nothing_is_promised_without_noise_and_nothing_spent_without_steps():
    for accountant in ("rdp", "pld"):
        assert privacy.epsilon(0.0, 0.1, 10, 1e-5, accountant) == np.inf
        assert privacy.epsilon(1.0, 0.1, 0, 1e-5, accountant) == 0


def test_next_to_no_noise_needs_little_memory():
    # A loss distribution in cells of 1e-4 would have 5e9 of them.
    assert privacy.epsilon(0.01, 1.0, 100, 1e-5, "pld") == pytest.approx(
        _gaussian_epsilon_far(0.01 / 10), rel=0.01
    )


def _gaussian_epsilon_far(sigma):
    """The loss is normal, mean 1 / (2 sigma^2) and deviation 1 / sigma: mean + tail."""
    return 0.5 / sigma**2 + stats.norm.isf(1e-5) / sigma


def test_a_guarantee_states_both_epsilons_of_every_client_and_what_they_rest_on():
    noise = NoiseSpec(
        np.array([11.48, 7.5]), 5e5, np.array([1 / 19, 1 / 45]), "add or remove one"
    )
    found = privacy.guarantee(noise, np.array([150 * 19, 150 * 45]), 1e-5)
    np.testing.assert_allclose(found.epsilon_rdp, 1.0, rtol=0.01)
    assert (found.epsilon_pld < found.epsilon_rdp).all()
    for part in (
        "add or remove one", "Poisson", "0.0222222 to 0.0526316", "500000",
        "7.5 to 11.48", "2850 to 6750", "delta = 1e-05",
    ):  # fmt: skip
        assert part in found.assumption


_GOOD = {"noise_multiplier": 1.0, "sampling_rate": 0.1, "steps": 10, "delta": 1e-5}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"delta": 0.0}, "delta must be in"),
        ({"delta": 1.0}, "delta must be in"),
        ({"delta": float("nan")}, "delta must be in"),
        ({"sampling_rate": 0.0}, "sampling_rate must be in"),
        ({"sampling_rate": 1.5}, "sampling_rate must be in"),
        ({"noise_multiplier": -1.0}, "noise_multiplier must be >= 0"),
        ({"noise_multiplier": float("nan")}, "noise_multiplier must be >= 0"),
        ({"steps": -1}, "steps must be >= 0"),
        ({"steps": 2.5}, "steps must be whole, got 2.5"),
        ({"accountant": "zcdp"}, "'rdp' or 'pld', got 'zcdp'"),
    ],
    ids=str,
)
def test_bad_input_of_epsilon(changed, message):
    with pytest.raises(ValueError, match=message):
        privacy.epsilon(**{**_GOOD, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"epsilon": float("inf")}, "epsilon must be > 0 and finite"),
        ({"delta": 2.0}, "delta must be in"),
        ({"sampling_rate": -0.1}, "sampling_rate must be in"),
        ({"steps": 0}, "steps must be >= 1"),
        ({"accountant": "gdp"}, "'rdp' or 'pld'"),
    ],
    ids=str,
)
def test_bad_input_of_calibration(changed, message):
    good = {"epsilon": 1.0, "delta": 1e-5, "sampling_rate": 0.1, "steps": 10}
    with pytest.raises(ValueError, match=message):
        privacy.noise_multiplier_for(**{**good, **changed})


@pytest.mark.slow
def test_hardly_any_noise_has_a_number_or_none():
    assert privacy.noise_multiplier_for(1.0, 0.1, 0.01, 5, "pld") > 0
    found = sampled.poisson(1e-5, 0.01, [10], [1.0], 1e-5)
    assert found == pytest.approx(privacy.epsilon(1e-5, 0.01, 10, 1e-5))
    assert sampled.whole_batches(1e-5, 0.1, 100, 10, 1e-5) == np.inf
    assert sampled.profile(1e-5, 0.01, 10, replace=False)(1.0) == pytest.approx(1)


@pytest.mark.parametrize(
    ("at", "least"),
    [
        ((20.0, 0.01, 99_999, 3e-14), 1.1185),
        ((100.0, 0.1, 99_999, 1e-13), 2.2364),
        ((6.0, 0.01, 10_000, 1e-14), 1.2205),
        ((10.0, 0.003, 99_999, 1e-11), 0.5815),
    ],
)
def test_a_delta_below_what_float64_keeps_makes_no_epsilon_small(at, least):
    # From sums of tilted loss distributions, whose digits are relative to the tail.
    *rates, delta = at
    assert privacy.epsilon(*at, "pld") >= least
    found = [privacy.epsilon(*rates, delta * 10**k, "pld") for k in range(3)]
    assert found == sorted(found, reverse=True)
    replaced = sampled.poisson(*rates[:2], [rates[2]], [1.0], delta, replace=True)
    assert replaced == np.inf


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_extreme_noise_is_none_or_never_counted_as_more(accountant, rate):
    for sigma in (1e-162, 1e-152, 1e-100, 1e-16, 1e-7):
        assert privacy.epsilon(sigma, rate, 3, 1e-5, accountant) == np.inf
    much = [privacy.epsilon(s, rate, 3, 1e-5, accountant) for s in (1e9, 1e155, np.inf)]
    assert much == sorted(much, reverse=True) and much[0] < 0.01 and much[-1] == 0


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "limit"),
    [(1e8, 0.5, 10**9, 6.3e-4), (1e6, 1e-3, 10**9, 1.1e-4), (1e6, 1e-3, 1, 0.0)],
)
def test_so_much_noise_that_floats_tell_nothing_of_sampling_is_never_free(
    accountant, sigma, rate, steps, limit
):
    assert privacy.epsilon(sigma, rate, steps, 1e-9, accountant) > limit
    assert sampled.profile(sigma, rate, steps, replace=False)(0.0) > limit / 10


def test_an_order_whose_divergence_rounds_below_0_is_left_out():
    found = SimpleNamespace(orders=np.array([2.0, 3.0]), rdp=np.array([-1e-19, 0.5]))
    accountant = SimpleNamespace(compose=lambda event: found)
    np.testing.assert_array_equal(renyi.curve(accountant, None)[1], [np.inf, 0.5])


@pytest.mark.parametrize("rate", [1e-3, 1e-4])
def test_no_budget_is_said_to_be_kept_that_floats_cannot_tell(rate):
    with pytest.raises(privacy.Unattainable):
        privacy.noise_multiplier_for(1e-6, 1e-12, rate, 10**6)


def test_what_is_not_sampled_at_all_is_refused_or_nothing():
    with pytest.raises(ValueError, match="total must be >= 1, got 0"):
        sampled.without_replacement(1.0, 0, 1, 1, 1e-5)
    with pytest.raises(ValueError, match="steps must be >= 0"):
        sampled.whole_batches(1.0, 0.1, 10, -1, 1e-5)
    assert sampled.without_replacement(0.0, 10, 1, 0, 1e-5) == 0
    assert sampled.without_replacement(np.inf, 10, 1, 5, 1e-5) == 0
    assert sampled.whole_batches(np.inf, 0.1, 10, 5, 1e-5) == 0
    with pytest.raises(ValueError, match="prior must be of every value"):
        privacy.accuracy_of_epsilon(1.0, [])

"""No adversary is above the bound, the best one reaches it, and broken noise is caught."""

import itertools

import numpy as np
import pytest
from scipy import optimize, special, stats

from fljax import privacy
from fljax.privacy import bounds
from fljax.types import NoiseSpec

_TRIALS = 40_000
_ERROR = 4 * 0.5 / _TRIALS**0.5  # four deviations of a measured accuracy
_PRIORS = [(0.5, 0.5), (0.8, 0.2), (0.4, 0.3, 0.2, 0.1)]
_KINDS = [
    ("record", "all", 1.0),
    ("record", "poisson", 0.3),
    ("record", "fixed", 0.25),
    ("client", "all", 1.0),
    ("client", "fixed", 0.5),
]
_IDS = [f"{unit}, {sampling}" for unit, sampling, _ in _KINDS]


def _spec(multiplier, unit="record", sampling="all", rate=1.0):
    return NoiseSpec(multiplier, 1.0, rate, "leave it out", unit, sampling)


def _simulated(spec, steps, prior, deviation=1.0):
    """Accuracy of the most probable value given all sums; values move them by +1, -1, 0.

    Args:
      deviation: of the noise, over what the spec says.
    """
    rng = np.random.default_rng(0)
    value = rng.choice(len(prior), _TRIALS, p=prior)
    moves = np.array([1.0, -1.0, 0.0, 0.5])[: len(prior)]
    sigma, q = spec.noise_multiplier, spec.sampling_rate
    log = np.tile(np.log(prior), (_TRIALS, 1))
    for step in range(steps):
        seen = np.ones(_TRIALS)
        if spec.sampling == "poisson" or spec.unit == "client":
            seen = rng.random(_TRIALS) < q
        elif spec.sampling == "fixed" and step % round(1 / q):
            continue
        sums = moves[value] * seen + rng.normal(size=_TRIALS) * sigma * deviation
        there = np.exp(-((sums[:, None] - moves) ** 2) / 2 / (sigma * deviation) ** 2)
        away = np.exp(-(sums[:, None] ** 2) / 2 / (sigma * deviation) ** 2)
        if spec.sampling == "poisson":
            log += np.log(q * there + (1 - q) * away)
        else:
            log += np.log(there) * seen[:, None]
    return (log.argmax(axis=1) == value).mean()


@pytest.mark.parametrize("prior", _PRIORS, ids=str)
@pytest.mark.parametrize("kind", _KINDS, ids=_IDS)
def test_no_adversary_is_above_the_bound(kind, prior):
    unit, sampling, rate = kind
    spec = _spec(2.5, unit, sampling, rate)
    measured = _simulated(spec, 8, prior)
    bound = privacy.accuracy_of_prior(spec, 8, prior)
    assert max(prior) < bound < 1
    assert measured < bound + _ERROR
    if len(prior) == 2:  # tight: an even prior by any sampling, others without
        assert measured > bound - _ERROR - 0.01
    (any_prior,) = privacy.accuracy_without(spec, 8, max(prior))
    assert any_prior >= min(bound, _simulated(spec, 8, prior) - _ERROR)


@pytest.mark.parametrize(
    ("epsilon", "rate"), [(1.0, 0.1), (10.0, 0.1), (0.5, 1.0), (3.0, 1.0), (10.0, 1.0)]
)
def test_half_the_noise_is_caught_at_every_budget(epsilon, rate):
    sigma = privacy.noise_multiplier_for(epsilon, 1e-5, rate, 10)
    spec = _spec(sigma, "record", "poisson", rate)
    bound = privacy.accuracy_of_prior(spec, 10, (0.5, 0.5))
    honest = _simulated(spec, 10, (0.5, 0.5))
    broken = _simulated(spec, 10, (0.5, 0.5), deviation=0.5)
    assert honest < bound + _ERROR < broken
    by_epsilon = privacy.accuracy_of_epsilon(2 * epsilon, (0.5, 0.5), 1e-5 * 3)
    assert bound <= by_epsilon + 1e-3  # epsilon alone says less


def test_a_gaussian_and_two_values_have_the_likelihood_ratio_test():
    for sigma, steps, p in [(1.0, 1, 0.5), (4.0, 10, 0.7), (2.0, 3, 0.95)]:
        apart = 2 * steps**0.5 / sigma
        least = np.log(p / (1 - p)) / apart
        expected = p * special.ndtr(apart / 2 + least)
        expected += (1 - p) * special.ndtr(apart / 2 - least)
        found = privacy.accuracy_of_prior(_spec(sigma), steps, (p, 1 - p))
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("prior", [*_PRIORS, (0.97, 0.03), (1 / 3,) * 3], ids=str)
def test_randomised_response_meets_pure_epsilon_exactly(epsilon, prior):
    """Among the most likely values; who sees an answer names the likeliest value."""
    reached = []
    for among in range(1, len(prior) + 1):
        said = np.full((len(prior), among), 1.0)
        said[range(among), range(among)] = np.exp(epsilon)
        said /= said.sum(axis=1, keepdims=True)
        reached.append((np.array(prior)[:, None] * said).max(axis=0).sum())
    bound = privacy.accuracy_of_epsilon(epsilon, prior)
    assert bound == pytest.approx(max(reached), abs=1e-12)
    luckiest = np.exp(epsilon) * prior[0] / (np.exp(epsilon) * prior[0] + 1 - prior[0])
    assert bound <= luckiest + 1e-12


def _best_mechanism(epsilon, prior, delta):
    """Accuracy of the best (epsilon, delta) mechanism; what it says is the guess."""
    size = len(prior)
    pairs = list(itertools.permutations(range(size), 2))
    chances = np.eye(size * size).reshape(size, size, -1)  # [value, guess, variable]
    above = np.eye(len(pairs) * size).reshape(len(pairs), size, -1)
    none = np.zeros((size, above.shape[-1]))
    rows = [
        np.hstack([chances[i] - np.exp(epsilon) * chances[j], -over])
        for (i, j), over in zip(pairs, above, strict=True)
    ]
    sums = np.hstack([np.zeros((len(pairs), size * size)), above.sum(axis=1)])
    limits = [np.zeros(len(pairs) * size), np.full(len(pairs), delta)]
    found = optimize.linprog(
        np.concatenate([-np.diag(prior).ravel(), none[0]]),
        np.vstack([*rows, sums]),
        np.concatenate(limits),
        np.hstack([chances.sum(axis=1), none]),
        np.ones(size),
    )
    return -found.fun


@pytest.mark.parametrize("delta", [0.0, 0.02, 0.1, 0.4])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 3.0])
def test_no_mechanism_of_an_epsilon_and_a_delta_is_above_the_bound(epsilon, delta):
    priors = [(0.6, 0.3, 0.1), (0.5, 0.3, 0.2), (0.9, 0.1), (1 / 3,) * 3]
    for prior in [*_PRIORS, *priors]:
        best = _best_mechanism(epsilon, prior, delta)
        bound = privacy.accuracy_of_epsilon(epsilon, prior, delta)
        assert best - 1e-9 < bound < best + 0.02
        if delta == 0 or len(prior) == 2 or min(prior) == max(prior):
            assert bound == pytest.approx(best, abs=1e-9)
    assert privacy.accuracy_of_epsilon(np.inf, priors[0], delta) == pytest.approx(1)


@pytest.mark.parametrize("kind", _KINDS, ids=_IDS)
def test_it_grows_from_the_prior_to_one(kind):
    unit, sampling, rate = kind
    without = np.array([0.2, 0.4, 0.5, 0.65, 0.9, 1.0])
    found = [
        privacy.accuracy_without(_spec(sigma, unit, sampling, rate), 10, without)
        for sigma in (1e5, 8.0, 3.0, 0.01)
    ]
    assert (np.diff(found, axis=0) >= -1e-6).all()  # in less noise
    assert (np.diff(found, axis=1) > -1e-9).all()  # in what is known without the row
    np.testing.assert_allclose(found[0], without, atol=1e-3)
    np.testing.assert_allclose(found[-1], 1, atol=0.03)  # some rows are never drawn
    more = privacy.accuracy_without(_spec(8.0, unit, sampling, rate), 20, without)
    assert (more >= found[1] - 1e-9).all()


def test_noise_that_is_none_and_sums_that_are_none():
    assert privacy.accuracy_without(_spec(0.0), 5, 0.6) == 1
    assert privacy.accuracy_without(_spec(0.0), 0, 0.6) == pytest.approx(0.6, abs=1e-6)


def test_rows_of_unlike_priors_reach_the_bound_by_their_mean():
    """Some are told without a message, the others are even: the worst there is."""
    even = privacy.accuracy_of_prior(_spec(2.0), 1, (0.5, 0.5))
    assert even == pytest.approx(stats.norm.cdf(0.5))
    (found,) = privacy.accuracy_without(_spec(2.0), 1, 0.7)
    assert found == pytest.approx(0.4 * 1 + 0.6 * even)
    assert found > privacy.accuracy_of_prior(_spec(2.0), 1, (0.7, 0.3))
    three = privacy.accuracy_of_prior(_spec(2.0), 1, (1 / 3,) * 3)
    (few,) = privacy.accuracy_without(_spec(2.0), 1, 1 / 3)
    assert stats.norm.cdf(stats.norm.ppf(1 / 3) + 0.5) <= few + 1e-6 <= three + 2e-6


def test_of_many_values_that_are_equally_likely_few_are_told():
    (found,) = privacy.accuracy_without(_spec(1.0), 1, 1 / 40)
    assert stats.norm.cdf(stats.norm.ppf(1 / 40) + 1) - 1e-6 <= found < 0.2


def test_clients_have_bounds_of_their_own():
    spec = _spec(np.array([2.0, 8.0]))
    found = privacy.accuracy_without(spec, np.array([4, 4]), np.array([0.6, 0.6]))
    assert found.shape == (2,) and found[0] > found[1]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: bounds.accuracy_without(_spec(1.0), 1, 0.0), "without"),
        (lambda: bounds.accuracy_without(_spec(-1.0), 1, 0.5), "noise_multiplier"),
        (lambda: bounds.accuracy_of_prior(_spec(1.0), 1, (0.5, 0.6)), "prior"),
        (lambda: bounds.accuracy_of_epsilon(-1.0, (0.5, 0.5)), "epsilon"),
        (lambda: bounds.accuracy_of_epsilon(1.0, (0.5, 0.5), 1.0), "delta"),
    ],
    ids=["without", "noise", "prior", "epsilon", "delta"],
)
def test_numbers_out_of_range_are_refused(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_of_ever_so_many_values_the_bound_needs_no_room_for_each():
    (found,) = privacy.accuracy_without(_spec(1.0), 1, [1e-10])
    assert 0 < found < 1

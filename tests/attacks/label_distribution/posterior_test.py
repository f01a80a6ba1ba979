"""Posterior means beside quadrature, under little and much noise."""

import jax
import numpy as np
import pytest
from scipy import special

from fljax.attacks.label_distribution import fusion, posterior

_ALPHAS = (0.1, 1.0, 100.0)
_KEY, _UNSEEN = jax.random.key(0), 100


def _clients(count, noise, seed, labels=4, numbers=6):
    """Numbers that are linear in distributions, whose concentrations go in turn."""
    rng = np.random.default_rng(seed)
    alphas = np.resize(_ALPHAS, count)
    z = np.stack([rng.dirichlet(np.full(labels, a)) for a in alphas])
    slope = np.random.default_rng(0).normal(size=(labels, numbers))
    r = 3 + z @ slope + noise * rng.normal(size=(count, numbers))
    return r.astype(np.float32), z.astype(np.float32)


def _distance(guess, truth):
    return float(np.mean((np.asarray(guess) - truth) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.03, 0.3, 3.0])
def test_of_two_labels_it_is_the_mean_that_quadrature_gives(noise):
    logit = np.linspace(-300, 300, 600_001)  # many have none of one label, nearly
    share, other = special.expit(logit), special.expit(-logit)
    prior = sum((share * other) ** a / special.beta(a, a) for a in _ALPHAS)
    known = posterior.Posterior(
        weights=np.ones((1, 1), np.float32),
        offset=np.zeros(1, np.float32),
        along=np.array([[1 / noise], [0]], np.float32),
        concentrations=np.array(_ALPHAS, np.float32),
    )
    seen = np.array([[0.02], [0.3], [0.5], [0.97]]) / noise
    density = prior * np.exp(-0.5 * (seen - share / noise) ** 2)
    exact = (density * share).sum(axis=1) / density.sum(axis=1)
    numbers = seen.astype(np.float32)
    draws = [posterior.predict(jax.random.key(n), known, numbers) for n in range(30)]
    found = np.mean(draws, axis=0)
    np.testing.assert_allclose(found[:, 0], exact, atol=0.005)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "share"), [(0.3, 0.8), (1.0, 0.98), (3.0, 1.01)])
def test_it_is_nearer_than_least_squares_and_the_mean_under_noise(noise, share):
    numbers, labels = _clients(600, noise, seed=1)
    unseen, truth = _clients(_UNSEEN, noise, seed=2)
    learned = posterior.fit(numbers, labels, len(_ALPHAS))
    distance = _distance(posterior.predict(_KEY, learned, unseen), truth)
    squares = fusion.predict(fusion.fit(numbers, labels), unseen)
    assert distance < share * _distance(squares, truth)
    assert distance < share * _distance(labels.mean(axis=0), truth)


@pytest.mark.slow
def test_without_noise_it_finds_what_there_is():
    numbers, labels = _clients(600, 1e-4, seed=1)
    unseen, truth = _clients(_UNSEEN, 1e-4, seed=2)
    learned = posterior.fit(numbers, labels, len(_ALPHAS))
    assert _distance(posterior.predict(_KEY, learned, unseen), truth) < 1e-6


def test_numbers_that_say_nothing_leave_the_mean_distribution():
    numbers, labels = _clients(90, 1e6, seed=1, numbers=30)
    unseen, _ = _clients(20, 1e6, seed=2, numbers=30)
    learned = posterior.fit(numbers, labels, len(_ALPHAS))
    found = np.asarray(posterior.predict(_KEY, learned, unseen))
    np.testing.assert_allclose(found, 0.25, atol=0.05)


@pytest.mark.slow
def test_concentrations_are_those_of_the_clients_in_turn():
    numbers, labels = _clients(6000, 0.1, seed=1)
    learned = posterior.fit(numbers, labels, len(_ALPHAS))
    np.testing.assert_allclose(learned.concentrations, _ALPHAS, rtol=0.1)
    one = np.eye(4, dtype=np.float32)[np.arange(40) % 4]
    alike = np.full((40, 4), 0.25, np.float32)
    for labels in (one, alike):
        learned = posterior.fit(numbers[:40], labels, 2)
        assert np.isfinite(learned.concentrations).all()
        found = posterior.predict(_KEY, learned, numbers[:_UNSEEN])
        assert np.isfinite(found).all()


@pytest.mark.slow
def test_others_do_not_matter_and_no_number_is_uniform():
    numbers, labels = _clients(600, 0.3, seed=1)
    learned = posterior.fit(numbers, labels, len(_ALPHAS))
    seen = numbers[:_UNSEEN]
    fourth = np.arange(_UNSEEN)[:, None] == 3
    found = np.asarray(posterior.predict(_KEY, learned, seen))
    others = np.where(fourth, seen, numbers[-_UNSEEN:])
    again = np.asarray(posterior.predict(_KEY, learned, others))
    np.testing.assert_allclose(again[3], found[3], atol=1e-5)
    again = np.asarray(posterior.predict(_KEY, learned, np.where(fourth, np.nan, seen)))
    np.testing.assert_array_equal(again[3], 0.25)
    np.testing.assert_allclose(
        np.delete(again, 3, 0), np.delete(found, 3, 0), atol=1e-5
    )


@pytest.mark.slow
def test_a_number_that_never_varies_is_ignored():
    numbers, labels = _clients(600, 0.3, seed=1)
    more = np.concatenate([numbers, np.ones((600, 1), np.float32)], axis=1)
    found, alone = (
        posterior.predict(_KEY, posterior.fit(each, labels, 3), each[:_UNSEEN])
        for each in (more, numbers)
    )
    np.testing.assert_allclose(found, alone, atol=0.01)


@pytest.mark.slow
def test_shadow_clients_that_diverged_are_left_out():
    numbers, labels = _clients(600, 0.3, seed=1)
    some = np.where(np.arange(600)[:, None] % 7 == 2, np.inf, numbers)
    learned = posterior.fit(some, labels, len(_ALPHAS))
    left = np.arange(600) % 7 != 2
    alone = posterior.fit(numbers[left], labels[left], 1)
    np.testing.assert_allclose(learned.weights, alone.weights, rtol=1e-4)
    nothing = posterior.fit(np.full_like(numbers, np.nan), labels, len(_ALPHAS))
    found = np.asarray(posterior.predict(_KEY, nothing, numbers[:_UNSEEN]))
    np.testing.assert_allclose(found, 0.25, atol=0.05)

"""The prior of images: its density, its draws, and what it adds to a noisy message."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks import inversion
from fljax.attacks.inversion import Budget, solvers, spaces
from fljax.attacks.inversion.gaussian import Gaussian

_SHAPE = (2, 3, 1)


@pytest.fixture
def mixing():
    """Pixels are this times independent ones."""
    return np.random.default_rng(1).normal(size=(6, 6)).astype(np.float32) / 6


@pytest.fixture
def images(mixing):
    rng = np.random.default_rng(0)
    return (0.5 + rng.normal(size=(4000, 6)) @ mixing).reshape(-1, *_SHAPE)


def _covariance(prior):
    main = prior.components.T * prior.deviations**2 @ prior.components
    outside = np.eye(6) - prior.components.T @ prior.components
    return main + prior.rest**2 * outside


def test_the_fit_has_the_covariance_of_the_images(images):
    prior = Gaussian.fit(images)
    expected = np.cov(images.reshape(-1, 6), rowvar=False)
    np.testing.assert_allclose(_covariance(prior), expected, atol=1e-5)
    np.testing.assert_allclose(prior.mean, images.mean(axis=0), atol=1e-5)


def test_the_prior_is_the_weighted_mahalanobis_distance(images):
    prior = Gaussian.fit(images)._replace(weight=np.float32(0.3))
    x = images[:2].astype(np.float32)
    away = (x - prior.mean).reshape(2, 6)
    inverse = np.linalg.inv(_covariance(prior))
    expected = 0.3 * np.einsum("bi,ij,bj->", away, inverse, away)
    assert prior(x) == pytest.approx(expected, rel=1e-3)
    assert prior._replace(weight=np.float32(0))(x) == 0


def test_of_few_images_the_rest_is_spread_over_all_other_directions():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(40, 100)) * np.linspace(2, 0.1, 100)
    prior = Gaussian.fit(images.reshape(-1, 10, 10, 1))
    left = 100 - len(prior.components)
    assert left > 60
    total = np.sum(prior.deviations**2) + left * prior.rest**2
    assert total == pytest.approx(images.var(axis=0, ddof=1).sum(), rel=1e-4)


def test_draws_are_images_of_the_prior(images):
    components = np.linalg.qr(np.random.default_rng(3).normal(size=(6, 6)))[0][:2]
    prior = Gaussian(
        images.mean(axis=0).astype(np.float32),
        components.astype(np.float32),
        np.array([1.0, 0.1], np.float32),
        np.float32(0.3),
    )
    drawn = prior.draw(jax.random.key(0), (20_000, *_SHAPE)).reshape(-1, 6)
    found = np.cov(drawn, rowvar=False)
    np.testing.assert_allclose(found, _covariance(prior), atol=0.01)
    np.testing.assert_allclose(drawn.mean(axis=0), prior.mean.ravel(), atol=0.01)


def test_fewer_than_three_images_tell_nothing():
    with pytest.raises(ValueError, match="expected three or more to fit, got 2"):
        Gaussian.fit(np.zeros((2, *_SHAPE)))


@pytest.mark.slow
def test_a_noisy_message_gives_the_posterior_mean(images):
    """Of a linear message the most probable image is known in closed form."""
    rng, deviation = np.random.default_rng(2), 0.2
    matrix = rng.normal(size=(4, 6)).astype(np.float32)
    truth = images[7].astype(np.float32)
    noise = deviation * rng.normal(size=4)
    observed = jnp.asarray(matrix @ truth.ravel() + noise, jnp.float32)
    prior = Gaussian.fit(images)._replace(weight=np.float32(deviation**2))
    space = spaces.examples((1, *_SHAPE), prior.draw, y=jnp.zeros(1, jnp.int32))

    def attack(key):
        return inversion.invert(
            key, jnp.zeros(4), observed, lambda params, x, y: matrix @ x[0].ravel(),
            space, solvers.whitened_lbfgs(1e-6), prior=prior, budget=Budget(3),
        )  # fmt: skip

    found = jax.jit(attack)(jax.random.key(0))
    covariance, mean = _covariance(prior), prior.mean.ravel()
    gain = covariance @ matrix.T
    gain = gain @ np.linalg.inv(matrix @ gain + deviation**2 * np.eye(4))
    expected = mean + gain @ (observed - matrix @ mean)
    np.testing.assert_allclose(found.x.ravel(), expected, atol=2e-3)

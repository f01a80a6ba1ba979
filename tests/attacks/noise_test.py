"""The noise of messages: estimated without the truth, inverted exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.trajectory import noise

_estimate, _whiten = jax.jit(noise.estimate), jax.jit(noise.whiten)


def _residuals(rounds=40, size=6, bias=0.0, seed=0):
    """Correlated noise on a bias that grows slowly."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(2, size)) * 3
    drawn = rng.normal(size=(rounds, 2)) @ mix + rng.normal(size=(rounds, size))
    slow = bias * np.linspace(1, 1.2, rounds)[:, None] * np.ones(size)
    return jnp.asarray(drawn + slow, jnp.float32)


def _dense(found, t):
    """`C_t` written out."""
    rho = np.asarray(found.shrinkage)
    samples = np.asarray(found.samples) * np.sqrt(rho)
    kept = np.delete(samples, [i for i in (t - 1, t) if 0 <= i < len(samples)], axis=0)
    inner = kept.T @ kept / len(samples) + np.diag(rho)
    d = np.asarray(found.deviation)
    return float(found.variance[t]) * d[:, None] * inner * d[None]


@pytest.mark.parametrize("t", [0, 7, 39], ids=["first", "middle", "last"])
def test_whitening_is_the_inverse_covariance(t):
    found = _estimate(_residuals())
    residual = jnp.arange(1.0, 7.0)
    expected = np.linalg.solve(_dense(found, t), np.asarray(residual))
    ours = _whiten(found, jnp.int32(t), residual)
    np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("rounds", [pytest.param(8, marks=pytest.mark.slow), 40])
def test_drawn_noise_has_that_covariance(rounds):
    found = _estimate(_residuals(rounds))
    drawn = jax.vmap(
        lambda i: noise.draw(jax.random.fold_in(jax.random.key(1), i), found, 5)
    )(jnp.arange(20_000))
    expected = _dense(found, 5)
    error = np.abs(np.cov(np.asarray(drawn).T) - expected).max()
    assert error < 0.05 * np.abs(expected).max()


def test_a_slow_bias_does_not_count_as_noise():
    plain, biased = (_estimate(_residuals(bias=b)) for b in (0.0, 50.0))
    ratio = np.asarray(biased.deviation / plain.deviation)
    np.testing.assert_allclose(ratio, 1, atol=0.1)


@pytest.mark.slow
def test_coordinates_that_never_move_do_no_harm():
    residuals = jnp.pad(_residuals(), ((0, 0), (0, 3)))
    found = _estimate(residuals)
    white = _whiten(found, jnp.int32(3), residuals[3])
    assert np.isfinite(white).all()
    assert not np.asarray(white)[6:].any()


def test_one_round_is_taken_at_face_value():
    residual = jnp.arange(1.0, 5.0)
    found = _estimate(residual[None])
    white = _whiten(found, jnp.int32(0), residual)
    np.testing.assert_allclose(white, residual / jnp.mean(residual**2), rtol=1e-5)


@pytest.mark.parametrize("rounds", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_few_rounds_have_few_correlations(rounds):
    residuals = _residuals(rounds=rounds)
    found = _estimate(residuals)
    white = _whiten(found, jnp.int32(1), residuals[1])
    expected = np.linalg.solve(_dense(found, 1), np.asarray(residuals[1]))
    np.testing.assert_allclose(white, expected, rtol=1e-3)


def _partial(rounds=12, size=6):
    residuals = _residuals(rounds=rounds, size=size)
    there = jnp.abs(residuals) > 1.0
    there = there.at[:, 0].set(False).at[:, 1].set(True)
    partial = noise.Partial(there, jnp.full(rounds, 1.0))
    return jnp.where(there, residuals, 0), partial


@pytest.mark.slow
def test_what_was_not_observed_counts_by_its_likelihood():
    found = _estimate(*_partial())
    size = found.deviation * jnp.sqrt(found.variance[3])
    mean = jnp.array([0.5, 0.5, -3.0, 0.0, 2.0, -0.2])

    def log_likelihood(m):
        inside = [jax.scipy.stats.norm.cdf((b - m) / size) for b in (1.0, -1.0)]
        return jnp.sum(jnp.log(inside[0] - inside[1]))

    ours = noise.bounded(found, 3, mean)
    there = found.partial.there[3]
    expected = jnp.where(there, mean, -jax.grad(log_likelihood)(mean) * size**2)
    np.testing.assert_allclose(ours, expected, rtol=2e-3, atol=1e-4)


@pytest.mark.slow
def test_whitening_is_the_inverse_covariance_of_what_was_observed():
    found = _estimate(*_partial())
    there = np.asarray(found.partial.there[3])
    residual = jnp.arange(1.0, 7.0) * there
    block = _dense(found, 3)[np.ix_(there, there)]
    expected = np.linalg.solve(block, np.asarray(residual)[there])
    white = np.asarray(_whiten(found, jnp.int32(3), residual))
    np.testing.assert_allclose(white[there], expected, rtol=1e-3)
    assert not white[~there].any()


@pytest.mark.parametrize(
    "which", [[0, 0, 1, 2, 3], [0, 1, 2, 3, 3]], ids=["first", "last"]
)
def test_a_message_that_is_there_twice_is_no_message_without_noise(which):
    found = _estimate(_residuals(rounds=4)[jnp.array(which)])
    assert found.variance.max() < 30 * found.variance.min()
    whitened = [_whiten(found, t, jnp.ones(6)) for t in range(len(which))]
    assert np.isfinite(whitened).all()

"""One-hot samples with the slope of a relaxation, which gradient-based inference draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.attribute import gradient

_sample = jax.jit(gradient._sample, static_argnames="noise")


@pytest.mark.parametrize(
    ("noise", "expected"), [("gumbel", 1 - np.exp(-1)), ("logistic", 0.5)]
)
def test_one_gumbel_variate_favours_the_second_value(noise, expected):
    num_draws = 20_000
    logits = jnp.zeros((num_draws, 1))
    sample = _sample(jax.random.key(0), logits, 1.0, noise)
    tolerance = 4 * np.sqrt(expected * (1 - expected)) / np.sqrt(num_draws)
    assert abs(np.mean(sample[:, 1]) - expected) < tolerance


def test_three_values_are_drawn_with_their_softmax_probabilities():
    num_draws = 20_000
    logits = jnp.broadcast_to(jnp.array([1.0, -1.0]), (num_draws, 2))
    sample = _sample(jax.random.key(0), logits, 0.7, "gumbel")
    expected = np.exp([0.0, 1.0, -1.0]) / np.exp([0.0, 1.0, -1.0]).sum()
    tolerance = 4 * np.sqrt(expected * (1 - expected)) / np.sqrt(num_draws)
    assert (np.abs(np.mean(sample, axis=0) - expected) < tolerance).all()


@pytest.mark.parametrize("num_values", [2, 3])
def test_a_sample_is_one_hot_but_has_the_slope_of_the_relaxation(num_values):
    rng = np.random.default_rng(0)
    logits = jnp.asarray(rng.normal(size=(50, num_values - 1)), jnp.float32)
    key = jax.random.key(0)
    sample, pull_back = jax.vjp(lambda u: _sample(key, u, 0.5, "gumbel"), logits)
    np.testing.assert_allclose(np.sort(sample)[:, -1], 1.0, atol=1e-6)
    np.testing.assert_allclose(np.sort(sample)[:, :-1], 0.0, atol=1e-6)
    up = jnp.zeros_like(sample).at[:, 1].set(1.0)
    assert (pull_back(up)[0][:, 0] > 0).all()

"""Noise on updates, and the draw that all defenses share."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats

from fljax.defenses import noise
from fljax.types import Batch, Sender

SENDER = Sender(np.int32(0), np.int32(0))
DELTA = {"a": jnp.ones(2), "b": jnp.full(2, -3.0)}


@pytest.mark.parametrize(
    ("make", "law"), [(noise.gaussian, "norm"), (noise.laplace, "laplace")]
)
def test_updates_get_noise_of_the_stated_law_and_scale(make, law):
    defense = make(0.5)
    keys = jax.random.split(jax.random.key(0), 1500)
    noisy = jax.vmap(lambda key: defense.encode(key, DELTA, SENDER))(keys)
    found = np.concatenate([noisy[k] - DELTA[k][None] for k in ("a", "b")], axis=1)
    assert stats.kstest(found.ravel() / 0.5, law).pvalue > 1e-3
    off = np.corrcoef(found.T)[~np.eye(4, dtype=bool)]
    assert np.abs(off).max() < 4.5 / np.sqrt(1500)


@pytest.mark.parametrize("make", [noise.gaussian, noise.laplace])
def test_nothing_is_promised_and_no_scale_changes_nothing(make):
    defense = make(0.0)
    assert defense.noise == ()
    found = defense.encode(jax.random.key(0), DELTA, SENDER)
    jax.tree.map(np.testing.assert_array_equal, found, DELTA)


@pytest.mark.slow
def test_no_coordinate_of_a_large_model_has_the_noise_of_another():
    model = {"a": jnp.zeros((30, 20)), "b": jnp.zeros(333)}
    drawn, _ = ravel_pytree(noise.like(jax.random.key(0), model, 1.0))
    assert len(np.unique(drawn)) == drawn.size


@pytest.mark.parametrize("scale", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("make", [noise.gaussian, noise.laplace])
def test_bad_scales_are_refused(make, scale):
    with pytest.raises(ValueError, match="scale must be >= 0 and finite"):
        make(scale)


@pytest.mark.parametrize(
    ("sampler", "deviation"), [(jax.random.normal, 0.5), (jax.random.laplace, 0.5**0.5)]
)
def test_noise_on_steps_is_on_the_mean_gradient(sampler, deviation):
    def loss_fn(params, x, y):
        return (params["w"] @ x - y) ** 2

    gradient = noise.on_steps(loss_fn, 0.5, sampler).gradient
    params = {"w": jnp.zeros(2000)}
    x, mask = jnp.ones((3, 2000)), jnp.array([True, True, False])
    found, loss = gradient(jax.random.key(0), params, Batch(x, jnp.ones(3), mask))
    assert loss == 1.0
    assert np.mean(found["w"]) == pytest.approx(-2.0, abs=5 * deviation / 2000**0.5)
    assert np.std(found["w"]) == pytest.approx(deviation, rel=0.1)

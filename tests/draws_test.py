"""Draws from an unrolled generator: JAX's own to the last bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fljax import draws
from fljax.defenses import noise


@pytest.mark.parametrize("shape", [(), (1,), (3, 5)], ids=str)
@pytest.mark.parametrize("draw", [jax.random.bits, jax.random.laplace])
def test_unrolled_draws_are_those_of_jax(draw, shape):
    key = jax.random.key(7)
    np.testing.assert_array_equal(draw(draws.unrolled(key), shape), draw(key, shape))


def test_noise_of_many_keys_is_that_of_each_to_rounding():
    keys, tree = jax.random.split(jax.random.key(0), 3), {"a": jnp.zeros(1001)}
    found = jax.jit(jax.vmap(lambda key: noise.like(key, tree, 1.0)["a"]))(keys)
    wanted = jax.vmap(lambda key: draws.normal(key, (1001,)))(keys)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_other_keys_stay_as_they_are():
    other, raw = jax.random.key(0, impl="rbg"), jax.random.PRNGKey(0)
    assert draws.unrolled(other) is other
    assert draws.unrolled(raw) is raw
    twice = draws.unrolled(draws.unrolled(jax.random.key(1)))
    assert (jax.random.bits(twice) == jax.random.bits(jax.random.key(1))).all()


def test_the_other_way_to_count_stays_as_it_is():
    key = jax.random.key(0)
    with jax.threefry_partitionable(False):
        assert draws.unrolled(key) is key


def _bits(monkeypatch, values):
    """Draws whose bits are these."""
    made = jnp.array(values, jnp.uint32)
    monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype: made)
    return len(values)


def test_normal_numbers_have_the_tails_of_their_bits(monkeypatch):
    values = [0, 1, 2**8, 2**20, 2**31 - 1, 2**31, 2**32 - 2**8, 2**32 - 1]
    found = draws.normal(jax.random.key(0), (_bits(monkeypatch, values),))
    wanted = stats.norm.ppf((np.array(values, float) + 0.5) / 2**32)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
    assert found[-1] == -found[0] > 6.3


def test_normal_numbers_are_nearly_those_of_jax():
    found = draws.normal(jax.random.key(3), (10_000,))
    usual = jax.random.normal(jax.random.key(3), (10_000,))
    near = np.abs(usual) < 4
    np.testing.assert_allclose(found[near], usual[near], atol=1e-3)


def test_uniform_numbers_are_those_of_jax_with_nine_more_bits(monkeypatch):
    found = np.asarray(draws.uniform(jax.random.key(3), (1000,)), float)
    more = found - jax.random.uniform(jax.random.key(3), (1000,))
    assert (more > -(2.0**-24)).all() and (more < 2.0**-22).all()
    smallest = draws.uniform(jax.random.key(0), (_bits(monkeypatch, [0, 1]),))
    np.testing.assert_array_equal(smallest, [0.5 * 2**-32, 1.5 * 2**-32])

"""Draws from an unrolled generator: JAX's own to the last bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import draws
from fljax.defenses import noise


@pytest.mark.parametrize("shape", [(), (1,), (3, 5)], ids=str)
@pytest.mark.parametrize("draw", [jax.random.bits, jax.random.laplace])
def test_unrolled_draws_are_those_of_jax(draw, shape):
    key = jax.random.key(7)
    np.testing.assert_array_equal(draw(draws.unrolled(key), shape), draw(key, shape))


def test_noise_in_a_compiled_program_is_that_of_jax_to_the_last_bit():
    keys, tree = jax.random.split(jax.random.key(0), 3), {"a": jnp.zeros(1001)}
    found = jax.jit(jax.vmap(lambda key: noise.like(key, tree, 1.0)["a"]))(keys)
    wanted = jax.vmap(lambda key: jax.random.normal(key, (1001,)))(keys)
    np.testing.assert_array_equal(found, wanted)


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

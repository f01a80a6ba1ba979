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


def _bits(monkeypatch, *words):
    """Calls for bits are given these, one after the other."""
    made = iter([jnp.array(each, jnp.uint32) for each in words])
    monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype: next(made))


_WORDS = [0, 1, 255, 256, 2**20, 2**31 - 1, 2**31, 2**32 - 257, 2**32 - 2, 2**32 - 1]


@pytest.mark.parametrize("more", [0, 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("unrolled", [False, True])
def test_normal_numbers_have_the_tails_of_their_bits(monkeypatch, more, unrolled):
    key, words = jax.random.key(0), np.array(_WORDS, np.uint32)
    if unrolled:  # the two words of a block make the bits, the second tells more
        block = words ^ np.uint32(more), np.full_like(words, more)
        monkeypatch.setattr(draws, "_block", lambda *_: tuple(map(jnp.array, block)))
        monkeypatch.setattr(draws, "_tails", draws._tails.__wrapped__)
        key = draws.unrolled(key)
    else:
        _bits(monkeypatch, [more] * len(_WORDS), _WORDS)
    found = draws.normal(key, (len(_WORDS),))
    words = np.array(_WORDS, float)
    tail = np.minimum(words, 2**32 - 1 - words)
    tail = tail + np.where(tail < 256, (more + 0.5) / 2**32, 0.5)
    side = np.where(words < 2**31, 1, -1)
    wanted = side * stats.norm.ppf(tail / 2**32)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
    assert found[-1] == -found[0] > (9.1 if more == 0 else 6.2)


def test_the_further_bits_of_an_unrolled_key_are_the_other_word_of_its_block():
    key, low = jax.random.key(2), jnp.arange(1000, dtype=jnp.uint32)
    high, more = draws._block(jax.random.key_data(key), low)
    bits = jax.random.bits(key, (1000,))
    np.testing.assert_array_equal(high ^ more, bits)
    assert (
        abs(np.corrcoef(np.asarray(bits, float), np.asarray(more, float))[0, 1]) < 0.13
    )
    found = draws.normal(draws.unrolled(key), (1000,))
    np.testing.assert_allclose(
        found,
        stats.norm.ppf((np.asarray(bits, float) + 0.5) / 2**32),
        rtol=2e-5,
        atol=1e-6,
    )


def test_normal_numbers_are_nearly_those_of_jax():
    found = draws.normal(jax.random.key(3), (10_000,))
    usual = jax.random.normal(jax.random.key(3), (10_000,))
    near = np.abs(usual) < 4
    np.testing.assert_allclose(found[near], usual[near], atol=1e-3)


def test_uniform_numbers_are_those_of_jax_with_nine_more_bits(monkeypatch):
    found = np.asarray(draws.uniform(jax.random.key(3), (1000,)), float)
    more = found - jax.random.uniform(jax.random.key(3), (1000,))
    assert (more > -(2.0**-24)).all() and (more < 2.0**-22).all()
    _bits(monkeypatch, [0, 1])
    smallest = draws.uniform(jax.random.key(0), (2,))
    np.testing.assert_array_equal(smallest, [0.5 * 2**-32, 1.5 * 2**-32])

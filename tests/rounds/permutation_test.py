"""The shuffle of a client's rows: a permutation, fair, and the same in any room."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import batches

_order = jax.jit(batches._permutation, static_argnums=2)
_orders_of_many = jax.jit(
    jax.vmap(batches._permutation, (0, None, None)), static_argnums=2
)


def _permutation(size, max_rows):
    return np.asarray(_order(jax.random.key(0), jnp.int32(size), max_rows))[:size]


@pytest.mark.parametrize(
    ("size", "max_rows"),
    [
        (7, 2**16),
        (7, 2**16 + 1),
        (2**16, 2**16 + 1),
        (2**16 + 1, 2**16 + 3),
    ],
    ids=["packed", "pairs", "largest packed", "smallest pairs"],
)
def test_a_permutation_does_not_depend_on_the_room_for_larger_clients(size, max_rows):
    found = _permutation(size, max_rows)
    np.testing.assert_array_equal(np.sort(found), np.arange(size))
    np.testing.assert_array_equal(found, _permutation(size, size))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 31, 32, 33])
def test_a_permutation_has_each_row_once_at_any_size(size):
    keys = jax.random.split(jax.random.key(0), 50)
    found = _orders_of_many(keys, jnp.int32(size), 33)
    expected = np.broadcast_to(np.arange(size), (50, size))
    np.testing.assert_array_equal(np.sort(found[:, :size]), expected)


def test_all_orders_of_three_rows_are_equally_likely():
    num_draws = 6000
    keys = jax.random.split(jax.random.key(0), num_draws)
    found = np.asarray(_orders_of_many(keys, jnp.int32(3), 5))[:, :3]
    for order in itertools.permutations(range(3)):
        share = np.mean((found == order).all(axis=1))
        assert abs(share - 1 / 6) < 4 * np.sqrt(1 / 6 * 5 / 6) / np.sqrt(num_draws)


def test_large_clients_are_shuffled_evenly():
    size = 2**16 + 2
    order = _permutation(size, size)
    assert abs(np.corrcoef(order, np.arange(size))[0, 1]) < 4 / np.sqrt(size)
    # Half of the neighbours ascend, more if rows with equal random bits abound; the
    # number of ascents has variance (size + 1) / 12.
    ascents = np.mean(np.diff(order) > 0)
    assert abs(ascents - 0.5) < 4 * np.sqrt(1 / 12) / np.sqrt(size)

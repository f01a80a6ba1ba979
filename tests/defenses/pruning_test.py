"""Which entries of a message are zeroed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.defenses import pruning
from fljax.types import Sender

TREE = {"a": jnp.array([[0.1, -5.0], [3.0, -0.2]]), "b": jnp.array([0.3, -4.0])}
SENDER = Sender(np.int32(0), np.int32(0))


@pytest.mark.parametrize(
    ("ratio", "a", "b"),
    [
        (0.0, [[0.1, -5], [3, -0.2]], [0.3, -4]),
        (0.5, [[0, -5], [3, 0]], [0, -4]),
        (2 / 3, [[0, -5], [0, 0]], [0, -4]),
        (0.99, [[0, 0], [0, 0]], [0, 0]),
    ],
)
def test_the_smallest_entries_of_all_arrays_together_are_zeroed(ratio, a, b):
    found = pruning.prune(TREE, ratio)
    np.testing.assert_array_equal(found["a"], np.float32(a))
    np.testing.assert_array_equal(found["b"], np.float32(b))


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.7, 0.9])
def test_exactly_the_stated_fraction_is_zeroed(ratio):
    values = jnp.asarray(np.random.default_rng(0).normal(size=1000), jnp.float32)
    found = jax.jit(pruning.prune)(values, ratio)
    assert np.mean(np.asarray(found) == 0) == pytest.approx(ratio)


def test_dssgd_sends_what_changed_most():
    found = pruning.dssgd(1 / 3).encode(jax.random.key(0), TREE, SENDER)
    np.testing.assert_array_equal(found["a"], np.float32([[0, -5], [0, 0]]))
    np.testing.assert_array_equal(found["b"], np.float32([0, -4]))
    everything = pruning.dssgd(1.0).encode(jax.random.key(0), TREE, SENDER)
    jax.tree.map(np.testing.assert_array_equal, everything, TREE)


def test_dssgd_sends_what_pruning_of_the_rest_leaves():
    sent = pruning.dssgd(0.5).encode(jax.random.key(0), TREE, SENDER)
    left = pruning.pruning(0.5).encode(jax.random.key(0), TREE, SENDER)
    jax.tree.map(np.testing.assert_array_equal, sent, left)
    assert pruning.dssgd(0.5).noise == pruning.pruning(0.5).noise == ()


@pytest.mark.parametrize(
    ("make", "value", "message"),
    [
        (pruning.pruning, 1.0, "ratio must be in"),
        (pruning.pruning, -0.1, "ratio must be in"),
        (pruning.pruning, np.nan, "ratio must be in"),
        (pruning.dssgd, 0.0, "fraction must be in"),
        (pruning.dssgd, 1.5, "fraction must be in"),
    ],
)
def test_bad_fractions_are_refused(make, value, message):
    with pytest.raises(ValueError, match=message):
        make(value)

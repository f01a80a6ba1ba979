"""Messages of bounded size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.defenses import bounding
from fljax.types import Sender

_TREE = {"a": jnp.array([[3.0, -4.0]]), "b": jnp.array([0.0, 12.0])}
_SENDER = Sender(np.int32(0), np.int32(0))


def _sent(defense, tree=_TREE):
    return defense.encode(jax.random.key(0), tree, _SENDER)


def test_the_norm_is_that_of_all_layers_together():
    found = _sent(bounding.norm_clipping(6.5))
    jax.tree.map(lambda f, t: np.testing.assert_allclose(f, t / 2), found, _TREE)
    jax.tree.map(
        np.testing.assert_array_equal, _sent(bounding.norm_clipping(13)), _TREE
    )


def test_numbers_are_cut_off_one_by_one():
    found = _sent(bounding.value_clipping(3.5))
    np.testing.assert_array_equal(found["a"], [[3.0, -3.5]])
    np.testing.assert_array_equal(found["b"], [0.0, 3.5])


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_bounds_are_positive(value):
    with pytest.raises(ValueError, match="norm must be > 0 and finite"):
        bounding.norm_clipping(value)
    with pytest.raises(ValueError, match="limit must be > 0 and finite"):
        bounding.value_clipping(value)


def test_nothing_is_promised():
    assert bounding.norm_clipping(1.0).noise == bounding.value_clipping(1.0).noise == ()

"""Median clipping: the clip is the batch's, the noise is on the sum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.defenses import median
from fljax.types import Batch

WIDTH = 4000
X = jnp.outer(jnp.array([1.0, 2.0, 10.0, 7.0]), jnp.full(WIDTH, WIDTH**-0.5))
BATCH = Batch(X, jnp.zeros(4), jnp.array([True, True, True, False]))


def _gradient(deviation, key=0):
    # The gradient of an example is its row.
    built = median.median_clipping(lambda p, x, y: p @ x, noise_deviation=deviation)
    assert not built.noise
    return built.gradient(jax.random.key(key), jnp.zeros(WIDTH), BATCH)[0]


@pytest.mark.slow
def test_gradients_are_cut_to_the_median_of_the_rows_that_are_there():
    norm = np.linalg.norm(_gradient(0.0))
    assert norm == pytest.approx((1 + 2 + 2) / 3, rel=1e-5)


def test_noise_is_drawn_once_on_the_sum_before_it_is_divided():
    found = _gradient(6.0) - _gradient(0.0)
    assert np.std(found) == pytest.approx(6 / 3, rel=5 / (2 * WIDTH) ** 0.5)
    assert not np.allclose(found, _gradient(6.0, key=1) - _gradient(0.0))


@pytest.mark.parametrize("deviation", [-1.0, np.inf, np.nan])
def test_a_deviation_that_cannot_be_is_refused(deviation):
    with pytest.raises(ValueError, match="noise_deviation must be >= 0 and finite"):
        _gradient(deviation)

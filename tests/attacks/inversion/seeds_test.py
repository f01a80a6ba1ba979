"""The seeds that a search starts from."""

import jax
import numpy as np
import pytest

from fljax.attacks.inversion import seeds


def test_the_patterned_seed_repeats_one_tile():
    seed = seeds.patterned(jax.random.key(0), (2, 8, 7, 3))
    assert seed.shape == (2, 8, 7, 3)
    np.testing.assert_array_equal(seed[:, :4], seed[:, 4:])
    np.testing.assert_array_equal(seed[:, :, :3], seed[:, :, 4:])
    assert (seed[0] != seed[1]).all()
    with pytest.raises(ValueError, match="h, w, channels"):
        seeds.patterned(jax.random.key(0), (2, 8))

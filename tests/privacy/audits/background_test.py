"""The direction in which a canary is told best beside other rows and noise."""

import jax
import numpy as np
import pytest

from fljax.federation import Tables
from fljax.privacy.audits import background, chances
from fljax.types import Features, Rows


def test_it_is_the_canary_whitened_by_all_that_moves():
    rng = np.random.default_rng(0)
    effects = rng.normal(size=(6, 9)).astype(np.float32)
    canary = rng.normal(size=9).astype(np.float32)
    variance = np.array([0, 1, 2, 3, 4, 0], np.float32)

    @jax.jit
    def telling(effects):
        beside = background.Beside.of(effects, np.ones(1, np.float32))
        return background.telling(beside, canary, variance, np.float32(0.5))

    found = telling(effects)
    covariance = effects.T * variance @ effects + 0.5 * np.eye(9)
    wanted = np.linalg.solve(covariance, canary)
    np.testing.assert_allclose(found, wanted / np.linalg.norm(wanted), atol=2e-3)


@pytest.mark.parametrize("poisson", [True, False])
def test_rows_beside_it_are_in_steps_by_chance(poisson):
    x = Features(np.zeros((10, 1), np.float32), np.zeros((10, 0), np.int32))
    parts = np.arange(8), np.arange(8, 10)
    plan = {"num_rounds": 1, "batch_size": 2, "poisson": poisson}
    tables = Tables.of(Rows(x, np.zeros(10, np.float32)), parts, **plan)
    found = chances.others(tables, 8)
    np.testing.assert_array_equal(found.client, [0] * 8 + [1] * 2)
    # Four steps of a quarter, one step of all, nothing of the canary.
    np.testing.assert_allclose(found.mean, [1] * 8 + [0, 1])
    spread = 4 * 0.25 * 0.75 if poisson else 0
    np.testing.assert_allclose(found.variance, [spread] * 8 + [0, 0])

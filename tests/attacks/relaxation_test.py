"""Soft attributes: the expected loss of rows that are only softly known."""

import numpy as np
import pytest

from fljax.attacks.trajectory import relaxation
from fljax.types import Features, Known


def _loss(params, x, y):
    return (x.numeric @ params - y) ** 2


@pytest.mark.parametrize("count", [3, relaxation._FEW + 1], ids=["few", "many"])
def test_the_loss_is_mixed_over_all_candidates(count):
    rng = np.random.default_rng(0)
    public, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    candidates, params = rng.normal(size=(count, 1)), rng.normal(size=3)
    mask = np.arange(5) < 4
    features = Features(np.float32(public), np.zeros((5, 0), np.int32))
    known = Known(features, np.float32(y), mask)
    values = rng.dirichlet(np.ones(count), size=5)

    soft = relaxation.categorical(_loss, known, np.float32(candidates))
    each = (public @ params[:2])[:, None] + params[2] * candidates[:, 0] - y[:, None]
    expected = (values * each**2).sum(axis=1)[mask].mean()
    found = soft.mean_loss(np.float32(params), np.float32(values))
    np.testing.assert_allclose(found, expected, rtol=1e-5)

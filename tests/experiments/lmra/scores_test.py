"""Models against a client's optimum."""

import numpy as np
import pytest

from experiments.lmra import clients, optimum, scores
from experiments.lmra.settings import Config, DataConfig, Settings, complete


@pytest.mark.slow
def test_the_distance_to_an_optimum_is_over_its_norm():
    told = complete(Settings(DataConfig(sizes=(30, 20)), Config(seeds=(0,))))
    loaded = clients.load(told.data, told.run)
    optima = optimum.local_optima(loaded, 1e-2)
    found = scores.Judge(loaded, optima, 2)(3 * optima[None])
    np.testing.assert_allclose(found.optimum_distance, 2, rtol=1e-5)

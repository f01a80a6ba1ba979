"""Whom the noise of a defense promises something."""

import numpy as np
import pytest

from fljax.privacy import Guarantee, Promise, against
from fljax.types import NoiseSpec


def _promise(whom, epsilon):
    noise = NoiseSpec(1.0, 1.0, 1.0, "one client", unit="client", against=whom)
    given = dict.fromkeys(Guarantee._fields) | {"epsilon_rdp": np.array([epsilon])}
    return Promise(noise, Guarantee(**given))


@pytest.mark.parametrize(
    ("views", "epsilon"),
    [
        (["messages"], 8),
        (["sum"], 8),  # before the server adds its noise
        (["models", "sum"], 8),
        (["models", "final"], 2),
    ],
)
def test_noise_of_a_server_promises_to_who_sees_models_alone(views, epsilon):
    both = [_promise("messages", 8.0), _promise("models", 2.0)]
    held = against(both, views)
    assert held["client"].guarantee.epsilon_rdp == [epsilon]
    assert against(both[1:], views).keys() == ({"client"} if epsilon == 2 else set())

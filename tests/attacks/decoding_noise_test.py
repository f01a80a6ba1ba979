"""How much noise messages hold: neither curves nor messages that are not there."""

import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.reconstruction.decoding import Messages, ensemble, messages, noise
from tests.attacks import decoding_clients as clients

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.slow
def test_no_curve_is_taken_for_noise():
    seen = clients.client(0, num_messages=60)
    size = float(ensemble.size(messages.averaged(seen, 1)))
    assert float(noise.deviation(seen)) < 0.05 * size
    error = 0.2 * size * np.random.default_rng(0).normal(size=seen.delta.shape)
    noisy = seen._replace(delta=seen.delta + error)
    assert float(noise.deviation(noisy)) == pytest.approx(0.2 * size, rel=0.2)


@pytest.mark.slow
def test_messages_that_are_not_there_make_no_noise_smaller():
    rng = np.random.default_rng(0)
    sent, delta = rng.normal(size=(2, 12, 11))
    few = Messages(jnp.asarray(sent), jnp.asarray(delta), jnp.ones(12, bool))
    wide = [(0, 48)] + [(0, 0)]
    padded = Messages(
        jnp.pad(few.sent, wide), jnp.pad(few.delta, wide), jnp.pad(few.mask, (0, 48))
    )
    found = float(noise.deviation(padded))
    assert found == pytest.approx(float(noise.deviation(few)), rel=1e-5) and found > 0.5


def test_so_few_messages_that_nothing_can_remain_are_not_taken_for_exact():
    seen = clients.client(0)
    size = float(ensemble.size(messages.averaged(seen, 1)))
    for count in (0, 1):
        some = seen._replace(mask=jnp.arange(30) < count)
        own = np.sqrt(np.mean(np.square(seen.delta[:1])))
        expected = 0.3 * own if count else float(noise.rounding(seen))
        assert float(noise.deviation(some)) == pytest.approx(expected)
    assert float(noise.rounding(seen)) < 1e-6 * size

"""A name and a number make a defense."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import named_defenses
from fljax.types import Batch

_NAMES = re.findall(r"`(\w+)`", named_defenses.__doc__ or "")


def _setting(**changes):
    def loss_fn(params, x, y):
        return (params["w"] @ x - y) ** 2

    return named_defenses.Setting(loss_fn, 1, 3, **changes)


@pytest.mark.parametrize("name", _NAMES)
def test_every_name_of_the_table_makes_one(name):
    at = _setting(batches="poisson", sampling_rate=0.5, batch_size=2.0)
    built = named_defenses.make(name, at, 0.5, clip=1.0)
    acts = [built.gradient, built.encode, built.receive]
    assert sum(seam is not None for seam in acts) == (name != "none")
    with pytest.raises(ValueError, match="must be|no defense"):
        named_defenses.make(name if name != "none" else "nothing", at, -1.0, clip=1.0)


@pytest.mark.parametrize(
    ("name", "deviation"), [("gaussian_steps", 0.5), ("laplace_steps", 0.5 * 2**0.5)]
)
def test_noise_on_steps_is_on_the_mean_gradient(name, deviation):
    gradient = named_defenses.make(name, _setting(), 0.5).gradient
    params = {"w": jnp.zeros(2000)}
    x, mask = jnp.ones((3, 2000)), jnp.array([True, True, False])
    found, loss = gradient(jax.random.key(0), params, Batch(x, jnp.ones(3), mask))
    assert loss == 1.0
    assert np.mean(found["w"]) == pytest.approx(-2.0, abs=5 * deviation / 2000**0.5)
    assert np.std(found["w"]) == pytest.approx(deviation, rel=0.1)


def test_what_rests_on_poisson_batches():
    asked = {
        (name, mode)
        for name in _NAMES
        for mode in ("per_example", "per_batch", "recommended")
        if named_defenses.needs_poisson(name, mode)
    }
    assert asked == {
        ("dp_sgd", "per_example"), ("dp_sgd", "per_batch"), ("dp_sgd", "recommended"),
        ("fed_cdp", "recommended"),
    }  # fmt: skip

"""Noise of known size against that of clients whose loss has no gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local
from fljax.attacks.adversary import LocalTraining
from fljax.attacks.trajectory import added
from fljax.defenses import specs
from fljax.defenses.definition import Setting
from fljax.types import Batch, Features, Sender

_ROWS, _BATCH, _RATE, _ROUND, _WIDTH = 10, 4, 0.1, 2, 4000
_STEPS = 3  # fixed batches of 4, 4 and 2 rows


def _flat(params, x, y):
    return 0.0 * (jnp.sum(params["a"]) + x.numeric.sum() + y)


def _sent(spec, momentum):
    """A client's delta in round 2 of 5."""
    poisson = "dp_sgd" in spec.names
    rows = _ROWS / _STEPS if poisson else _BATCH
    drawn = "poisson" if poisson else "fixed"
    setting = Setting(_flat, 1, 5, drawn, rows / _ROWS, float(rows))
    defense = specs.bind(spec, setting)
    update = local.sgd(
        _flat, optax.sgd(_RATE, momentum=momentum or None), gradient=defense.gradient,
        encode=defense.encode,
    )  # fmt: skip
    x = Features(jnp.zeros((_BATCH, 1)), jnp.zeros((_BATCH, 0), jnp.int32))
    params = {"a": jnp.zeros(_WIDTH)}
    carry = update.init(params)
    for step in range(_STEPS):
        mask = jnp.arange(_BATCH) < _ROWS - step * _BATCH
        batch = Batch(x, jnp.zeros(_BATCH), mask, jnp.int32(0), jnp.int32(_ROUND))
        carry = update.step(jax.random.key(step), carry, params, batch)
    sender = Sender(jnp.int32(0), jnp.int32(_ROUND))
    return update.final(jax.random.key(9), carry, params, sender).delta["a"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "momentum"),
    [
        ("dp_sgd(clip=0.5, sigma=2)", 0.9),
        ("fed_cdp(clip=0.5, decay_to=0.1, sigma=2, mode=per_example)", 0.0),
        ("fed_sdp(clip=0.5, sigma=2) + laplace(scale=0.3, on=steps)", 0.0),
        ("median(deviation=2)", 0.9),
    ],
    ids=[
        "steps with momentum",
        "examples with decay",
        "messages and steps",
        "sums that are clipped to a median",
    ],
)
def test_noise_has_the_variance_that_is_known_of_it(text, momentum):
    spec = specs.parse(text)
    training = LocalTraining(_BATCH, _RATE, epochs=1, momentum=momentum)
    rounds = np.array([[_ROUND]])
    ours = added.variance(spec, training, np.array([_ROWS]), rounds, 5)
    assert ours[0, 0] == pytest.approx(float(jnp.var(_sent(spec, momentum))), rel=0.1)


def test_noise_after_a_clip_is_known():
    rounds, sizes = np.zeros((1, 2), int), np.array([_ROWS])
    training = LocalTraining(_BATCH, _RATE, epochs=1)
    spec = specs.parse("norm_clipping(norm=1) + gaussian(deviation=0.5)")
    found = added.variance(spec, training, sizes, rounds, 5)
    np.testing.assert_allclose(found, 0.25)


def test_noise_of_steps_is_in_proportion_to_the_rate_of_the_round():
    rounds, sizes = np.array([[0, 1, 4]]), np.array([_ROWS])
    training = LocalTraining(_BATCH, _RATE, epochs=1, schedule=(1.0, 0.5))
    steps, messages = (
        added.variance(specs.parse(text), training, sizes, rounds, 5)[0]
        for text in ("gaussian(deviation=2, on=steps)", "gaussian(deviation=2)")
    )
    np.testing.assert_allclose(
        steps, (2 * _RATE) ** 2 * _STEPS * np.array([1, 0.25, 0.25])
    )
    np.testing.assert_allclose(messages, 4)


def test_noise_of_a_last_batch_that_is_dropped_is_none():
    rounds, sizes = np.array([[0]]), np.array([_ROWS])
    training = LocalTraining(_BATCH, _RATE, epochs=2, drop_last=True)
    for text, each in (
        ("gaussian(deviation=2, on=steps)", 2.0),
        ("fed_cdp(clip=1, sigma=2, mode=per_batch)", 2.0 / _BATCH),
        ("dp_sgd(clip=1, sigma=2)", 2.0 / (_ROWS / 2)),
    ):
        found = added.variance(specs.parse(text), training, sizes, rounds, 5)
        np.testing.assert_allclose(found, (each * _RATE) ** 2 * 4, rtol=1e-6)


def test_what_is_not_known_is_left_to_be_measured():
    rounds, sizes = np.zeros((1, 2), int), np.array([_ROWS])
    adam = LocalTraining(_BATCH, _RATE, epochs=1, optimiser="adam")
    for text, training in (
        ("dp_sgd(clip=1, sigma=1)", adam),
        ("dp_sgd(clip=1, epsilon=1)", adam._replace(optimiser="sgd")),
        ("fed_sdp(clip=1, sigma=1, where=server)", adam),
        (
            "norm_clipping(norm=1) + dp_sgd(clip=1, sigma=1)",
            adam._replace(optimiser="sgd"),
        ),
        ("gaussian(deviation=1) + value_clipping(limit=0.1)", adam),
        ("median + pruning(ratio=0.5)", adam),
    ):
        found = added.variance(specs.parse(text), training, sizes, rounds, 5)
        np.testing.assert_array_equal(found, 0)

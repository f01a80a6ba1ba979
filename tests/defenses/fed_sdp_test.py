"""Fed-SDP: clipping and noise of one message, at the client or at the server."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.defenses import clipping
from fljax.defenses.fed_sdp import fed_sdp
from fljax.types import Sender

CLIP, SIGMA = 2.0, 1.5
DELTA = {"a": jnp.array([3.0, 0.0, 4.0]), "b": jnp.full((2, 2), 0.25)}
SENDER = Sender(np.int32(3), np.int32(0))


def _defense(**changed):
    numbers = {
        "clip": CLIP, "noise_scale": SIGMA, "sampling_rate": 0.1, "num_layers": 2
    }  # fmt: skip
    return fed_sdp(**(numbers | changed))


@pytest.mark.parametrize("where", ["client", "server"])
def test_it_acts_at_one_place_only(where):
    defense = _defense(where=where)
    seams = {
        "client": defense.encode is not None,
        "server": defense.receive is not None,
    }
    assert seams == {"client": where == "client", "server": where == "server"}
    assert defense.gradient is None


def test_each_layer_of_the_delta_is_clipped_on_its_own():
    found = _defense(noise_scale=0.0).encode(jax.random.key(0), DELTA, SENDER)
    np.testing.assert_allclose(found["a"], [1.2, 0, 1.6], rtol=1e-6)
    np.testing.assert_allclose(found["b"], DELTA["b"], rtol=1e-6)


def test_each_layer_gets_one_draw_of_sigma_c():
    defense = _defense()
    keys = jax.random.split(jax.random.key(1), 2000)
    noisy = jax.jit(jax.vmap(lambda key: defense.encode(key, DELTA, SENDER)))(keys)
    bare = _defense(noise_scale=0.0).encode(jax.random.key(0), DELTA, SENDER)
    found = np.concatenate(
        [(noisy[k] - bare[k][None]).reshape(2000, -1) for k in ("a", "b")], axis=1
    )
    assert found.std() == pytest.approx(SIGMA * CLIP, rel=4 / np.sqrt(2 * found.size))
    off = np.corrcoef(found.T)[~np.eye(7, dtype=bool)]
    assert np.abs(off).max() < 4.5 / np.sqrt(2000)


@pytest.mark.parametrize(
    ("num_summed", "multiplier"),
    [(1, SIGMA / np.sqrt(2)), (100, 10 * SIGMA / np.sqrt(2))],
    ids=["her own message", "the sum of a hundred"],
)
def test_the_spec_speaks_of_clients_and_of_the_true_sensitivity(num_summed, multiplier):
    (spec,) = _defense(num_summed=num_summed).noise
    assert (spec.unit, spec.sampling, spec.sampling_rate) == ("client", "fixed", 0.1)
    assert spec.noise_multiplier == pytest.approx(multiplier)
    assert spec.sensitivity == pytest.approx(CLIP * np.sqrt(2))
    on_sum = spec.noise_multiplier * spec.sensitivity
    assert on_sum == pytest.approx(SIGMA * CLIP * np.sqrt(num_summed))


def test_the_spec_says_whom_it_protects_against():
    server = _defense(where="server").noise[0].adjacency
    assert "the server has the messages as they were" in server
    sums = _defense(num_summed=10).noise[0].adjacency
    assert "in the place of one client" in sums and "not whose they are" in sums
    seen = _defense().noise[0].adjacency
    assert seen.endswith("against whoever sees messages")
    assert _defense(num_summed=np.int64(1)).noise[0].against == "messages"
    assert _defense(num_summed=10).noise[0].against == "models"


def test_a_schedule_follows_the_round_of_the_message():
    clip = clipping.linear_decay(4.0, 2.0, num_rounds=3)
    defense = _defense(clip=clip, noise_scale=0.0, num_rounds=3)
    for round, expected in ((0, 4.0), (2, 2.0)):
        sender = Sender(np.int32(0), np.int32(round))
        found = defense.encode(jax.random.key(0), DELTA, sender)
        assert np.linalg.norm(found["a"]) == pytest.approx(expected)


def test_a_message_that_is_not_finite_is_noise_only():
    broken = {"a": DELTA["a"].at[0].set(jnp.inf), "b": DELTA["b"]}
    found = _defense().encode(jax.random.key(0), broken, SENDER)
    zeros = jax.tree.map(jnp.zeros_like, DELTA)
    expected = _defense().encode(jax.random.key(0), zeros, SENDER)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clip": 0.0}, "clip must be >= 1e-12"),
        ({"noise_scale": -1.0}, "noise_scale must be >= 0"),
        ({"sampling_rate": 0.0}, "sampling_rate must be in"),
        ({"sampling_rate": 1.1}, "sampling_rate must be in"),
        ({"sampling": "all"}, "sampling_rate must be 1 where sampling is 'all'"),
        ({"num_layers": 0}, "num_layers must be > 0"),
        ({"num_summed": 0}, "num_summed must be > 0"),
        ({"where": "both"}, "where must be one of client, server"),
        ({"sampling": "some"}, "sampling must be one of fixed, all"),
        ({"sampling": "poisson"}, "sampling must be one of fixed, all"),
        ({"clip": clipping.linear_decay(1.0, 0.0, num_rounds=3), "num_rounds": 3},
         "got 0 in round 2"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, dict) else part,
)  # fmt: skip
def test_bad_numbers_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        _defense(**changed)


def test_a_delta_with_other_layers_is_refused():
    with pytest.raises(ValueError, match="num_layers must be that of the params, 2"):
        _defense(num_layers=3).encode(jax.random.key(0), DELTA, SENDER)

"""The whole attack on digits: fitted once, applied to clients and to a transcript."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import parallel, rounds, schedule, transcript
from fljax.attacks import label_distribution
from fljax.attacks.label_distribution import predictor, shadow_clients
from fljax.types import Rows

_COUNT = 24  # clients of a chunk: one size, one program
_SETTINGS = label_distribution.Settings(
    alphas=(0.1, 1.0, 10.0),
    num_basis=96,
    num_fit=480,
    kept=64,
    chunk=24,
    predictor=predictor.Settings(hidden=(64, 64), epochs=40, learning_rate=3e-3),
)


def _distance(guess, truth):
    return 0.5 * np.abs(np.asarray(guess) - np.asarray(truth)).sum(1)


@pytest.fixture(scope="module")
def attacked(digits, program):
    """Two attacks of the same key, and the messages of 60 clients."""
    told = digits.sent, digits.proxy, program(), jnp.float32(0)
    found = [
        label_distribution.fit(jax.random.key(9), *told, settings=_SETTINGS)
        for _ in range(2)
    ]
    shares, _ = shadow_clients.dirichlet(jax.random.key(4), _SETTINGS.alphas, 60, 10)
    victims = shadow_clients.chunks(
        program(), jax.random.key(5), np.arange(60), shares, digits.sent, digits.own,
        jnp.float32(0), size=_COUNT,
    )  # fmt: skip
    return found, jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *victims)


@pytest.mark.slow
def test_the_attack_beats_the_mean_on_digits(attacked):
    (attack, _), victims = attacked
    guess = label_distribution.predict(attack, victims.delta)
    np.testing.assert_allclose(guess.sum(1), 1, rtol=1e-5)
    ours = _distance(guess, victims.labels)
    mean = _distance(attack.mean[None], victims.labels)
    assert ours.mean() < 0.5 * mean.mean()


@pytest.mark.slow
@pytest.mark.long("trains the predictor of this file")
def test_messages_of_others_tell_nothing(attacked):
    (attack, _), victims = attacked
    guess = label_distribution.predict(attack, jnp.roll(victims.delta, 7, axis=0))
    mean = _distance(attack.mean[None], victims.labels)
    assert _distance(guess, victims.labels).mean() > mean.mean()


@pytest.mark.slow
def test_an_attack_is_the_same_for_the_same_key(attacked):
    (first, second), _ = attacked
    jax.tree.map(np.testing.assert_array_equal, first, second)


@pytest.mark.slow
def test_a_recorded_client_of_any_round_is_attacked(digits, recipe):
    _, sent, proxy, own = digits
    labels = np.asarray(own.y)
    mine, other = np.flatnonzero(labels == 3)[:50], np.flatnonzero(labels != 3)
    at = np.concatenate([mine, other[:22], other[22:94]])
    rows = Rows(jax.tree.map(lambda leaf: leaf[at], own.x), labels[at])
    plan = schedule.build([72, 72], num_rounds=3, batch_size=16, epochs=2)
    quiet = jnp.float32(0)
    run = rounds.start(sent, plan, optax.sgd(1.0))
    run = rounds.advance(
        jax.random.key(0), run, rows, plan, 3,
        local=recipe().local(quiet), server_optimiser=optax.sgd(1.0),
    )  # fmt: skip
    seen = transcript.exchange(run.transcript, 0)
    guess = label_distribution.infer(
        jax.random.key(2), seen, 2, proxy, recipe(), quiet,
        settings=_SETTINGS, over=parallel.mesh(2),
    )  # fmt: skip
    assert int(jnp.argmax(guess)) == 3
    assert guess[3] > 0.4

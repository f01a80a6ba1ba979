"""One defense for all clients, with plain SGD within, and what it is told."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local, rounds, schedule
from fljax.defenses import checks
from fljax.types import Rows


@pytest.mark.slow
def test_clients_side_by_side_equal_each_alone(linear):
    rng = np.random.default_rng(3)
    defense = linear.defense(
        noise_multiplier=linear.sigma, batch_size=linear.expected, clip=0.5
    )
    keys = jax.random.split(jax.random.key(1), 2)
    batches = [
        linear.batch(rng.normal(size=(6, 4)), rng.random(6) < 0.7, client)
        for client in (0, 1)
    ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *batches)
    both, loss = jax.vmap(defense.gradient, (0, None, 0))(keys, linear.params, stacked)
    key_of = list(jax.random.split(jax.random.key(1), 2))
    for client in (0, 1):
        alone, alone_loss = defense.gradient(
            key_of[client], linear.params, batches[client]
        )
        for name in linear.params:
            np.testing.assert_allclose(both[name][client], alone[name], atol=1e-6)
        np.testing.assert_allclose(loss[client], alone_loss, atol=1e-6)


def test_without_noise_and_clipping_a_full_batch_step_is_plain_sgd(linear):
    rng = np.random.default_rng(4)
    x = jnp.asarray(rng.normal(size=(12, 4)), jnp.float32)
    rows = Rows(x, jnp.asarray(rng.normal(size=12), jnp.float32))

    def loss_fn(params, x, y):
        return jnp.square(linear.loss(params, x, y) - y)

    sizes = np.array([7, 5])
    plan = schedule.build(sizes, num_rounds=5, batch_size=None, poisson=True)
    defense = linear.defense(
        loss_fn, clip=1e6, sampling_rate=plan.sampling_rate[:-1], batch_size=1.0 * sizes
    )
    server = optax.sgd(1.0)
    found, expected = (
        jax.jit(
            functools.partial(rounds.advance, local=update, server_optimiser=server)
        )(jax.random.key(0), rounds.start(linear.params, plan, server), rows, plan, 5)
        for update in (
            local.sgd(loss_fn, optax.sgd(0.1), gradient=defense.gradient),
            local.sgd(loss_fn, optax.sgd(0.1)),
        )
    )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected
    )
    assert np.abs(found.transcript.delta["a"]).min() > 1e-4


def test_the_numbers_may_be_traced(linear):
    def gradient(clip, sigma):
        defense = linear.defense(clip=clip, noise_multiplier=sigma)
        batch = linear.batch([[3, 0, 0, 4]])
        return defense.gradient(jax.random.key(0), linear.params, batch)[0]["a"][0]

    found = jax.jit(jax.vmap(gradient))(jnp.array([1.0, 2.0]), jnp.zeros((2, 2)))
    np.testing.assert_allclose(found, [0.6, 1.2], rtol=1e-6)


@pytest.mark.slow
def test_the_clip_and_its_noise_may_follow_a_schedule(linear):
    defense = linear.defense(
        clip=lambda round: jnp.where(round < 2, 1.0, 2.0), num_rounds=4,
        noise_multiplier=linear.sigma,
    )  # fmt: skip
    assert defense.noise[0].sensitivity == 2

    def gradient(rows, round):
        batch = linear.batch(rows)._replace(round=jnp.int32(round))
        return defense.gradient(jax.random.key(0), linear.params, batch)[0]["a"]

    noise = [gradient([[0, 0, 0, 0]], round) for round in (0, 3)]
    np.testing.assert_allclose(noise[1], 2 * noise[0], rtol=1e-6)
    for round, clip in ((0, 1.0), (3, 2.0)):
        found = gradient([[3, 0, 0, 4]], round)[0] - noise[round // 3][0]
        assert found == pytest.approx(0.6 * clip, rel=1e-5)


def test_a_batch_must_say_whose_rows_it_holds(linear):
    batch = linear.batch([[1, 0, 0, 0]])._replace(client=None)
    with pytest.raises(ValueError, match="batch.client"):
        linear.defense().gradient(jax.random.key(0), linear.params, batch)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clip": 0.0}, "clip must be >= 1e-12"),
        ({"clip": -1}, "clip must be >= 1e-12"),
        ({"clip": np.inf}, "clip must be >= 1e-12 and finite"),
        ({"clip": np.nan}, "clip must be >= 1e-12"),
        ({"noise_multiplier": np.array([1.0, -0.1])}, "noise_multiplier must be >= 0"),
        (
            {"noise_multiplier": np.array([np.nan, 1.0])},
            "noise_multiplier must be >= 0",
        ),
        ({"sampling_rate": np.array([0.5, 1.5])}, "sampling_rate must be in"),
        ({"sampling_rate": np.array([0.0, 0.5])}, "sampling_rate must be in"),
        ({"batch_size": np.array([0.0, 1.0])}, "batch_size must be > 0"),
    ],
    ids=str,
)
def test_bad_numbers_are_refused(linear, changed, message):
    with pytest.raises(ValueError, match=message):
        linear.defense(**changed)


def test_a_client_beyond_the_numbers_has_none():
    numbers = np.array([1.0, 2.0])
    found = [float(checks.of_client(numbers, client)) for client in (0, 1, 5)]
    np.testing.assert_array_equal(found, [1, 2, np.nan])
    assert checks.of_client(np.array([3, 4]), 1) == 4

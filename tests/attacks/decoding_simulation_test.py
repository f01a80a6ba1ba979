"""Simulated clients: what the attacker chooses, and how messages are prepared."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fljax import losses
from fljax.attacks.reconstruction import decoding
from fljax.attacks.reconstruction.decoding import Messages, ensemble


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def _simulation(num_inputs=2, num_rows=4):
    def loss(params, x, y):
        return losses.logistic(x @ params[:-1] + params[-1], y)

    unravel = ravel_pytree(jnp.zeros(num_inputs + 1))[1]
    return decoding.simulated_client(
        loss, unravel, num_inputs, rate=1.0, num_rows=num_rows
    )


def _client(seed, deviation, num_messages=30):
    """Noise-free messages of a logistic client whose inputs spread like that."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([deviation * rng.normal(size=(40, 2)), np.ones(40)])
    y = (rng.random(40) < 0.7).astype(float)
    sent = np.linspace([-3.0, 1, 0], [3.0, -1, 1], num_messages)
    sent = sent + 0.3 * rng.normal(size=sent.shape)
    delta = (1 / (1 + np.exp(-sent @ x.T)) - y) @ x / len(y)
    return Messages(jnp.asarray(sent), jnp.asarray(delta), jnp.ones(num_messages, bool))


_SETTINGS = decoding.Settings(
    iterations=20, ensemble_size=3, trials=2, floors=(1e-3, 0.5), widths=(0.05, 1.0)
)
_choose = jax.jit(lambda k, m: decoding.choose(k, m, _simulation(), _SETTINGS))


def test_the_attacker_chooses_what_her_messages_need():
    # Nearly constant gradients come of narrow inputs, steep ones of wide inputs.
    for seed in range(2):
        found = _choose(jax.random.key(seed), _client(seed, 1.5))
        assert (float(found.floor), float(found.width)) == (1e-3, 1.0)


def test_the_choice_is_that_of_the_smallest_misfit_on_later_messages():
    seen = _client(0, 1.5)
    key, simulation = jax.random.key(3), _simulation()
    known = seen._replace(mask=jnp.arange(30) < 20)
    later = seen._replace(mask=jnp.arange(30) >= 20)

    @jax.jit
    def misfit(floor, width):
        choice = decoding.Choice(floor, width)
        found = ensemble.learn(key, known, simulation, choice, iterations=20, count=2)
        return ensemble.loss(simulation, found, later)

    grid = [(f, w) for f in _SETTINGS.floors for w in _SETTINGS.widths]
    best = min(grid, key=lambda pair: float(misfit(*map(jnp.asarray, pair))))
    assert tuple(map(float, _choose(jax.random.key(3), seen))) == best


def test_what_is_not_held_out_cannot_be_predicted():
    seen = _client(0, 1.5)
    alone = seen._replace(mask=jnp.arange(30) < 0)
    assert tuple(map(float, _choose(jax.random.key(0), alone))) == (1e-3, 0.05)


def test_without_messages_members_are_draws_of_the_prior():
    seen = _client(0, 1.0)._replace(mask=jnp.zeros(30, bool))
    simulation = _simulation(num_rows=40)
    choice = decoding.Choice(jnp.asarray(1e-3), jnp.asarray(1.0))
    found = ensemble.learn(
        jax.random.key(0), seen, simulation, choice, iterations=2, count=10
    )
    spread = np.std(np.asarray(found)[:, :-1] / simulation.deviation.ravel())
    assert spread == pytest.approx(1, abs=0.05)


def test_members_agree_where_messages_say_much():
    choice = decoding.Choice(jnp.asarray(1e-3), jnp.asarray(1.0))
    seen, simulation = _client(1, 1.0), _simulation()

    @jax.jit
    def updates(messages):
        found = ensemble.learn(
            jax.random.key(0), messages, simulation, choice, iterations=30, count=3
        )
        return jax.vmap(
            lambda each: ensemble.mean_update(simulation, each[None], seen.sent[15])
        )(found)

    silent = seen._replace(mask=jnp.zeros(30, bool))
    gaps = [np.ptp(np.asarray(updates(m)), axis=0).max() for m in (seen, silent)]
    assert gaps[0] < 0.1 * gaps[1]


def test_centred_messages_hold_the_gradient_of_the_middle():
    hessian, optimum = np.diag([1.0, 3.0]), np.array([2.0, -1.0])
    sent = np.random.default_rng(0).normal(size=(5, 2))
    theta = sent.copy()
    for _ in range(10):
        theta = theta - 0.01 * (theta - optimum) @ hessian
    delta = sent - theta
    seen = Messages(jnp.asarray(sent), jnp.asarray(delta), jnp.ones(5, bool))
    middle = decoding.centred(seen, 10).sent
    gradient = delta / 0.1
    off = [
        np.abs((at - optimum) @ hessian - gradient).max()
        for at in map(np.asarray, (middle, sent))
    ]
    assert off[0] < 0.1 * off[1]
    np.testing.assert_array_equal(decoding.centred(seen, 1).sent, sent)


def test_averages_leave_out_rounds_without_the_client():
    sent = jnp.arange(14.0).reshape(7, 2)
    mask = jnp.asarray([True, True, False, True, False, False, False])
    seen = Messages(sent, jnp.where(mask[:, None], 2 * sent, jnp.nan), mask)
    found = decoding.averaged(seen, 3)
    np.testing.assert_array_equal(found.mask, [True, False])
    np.testing.assert_array_equal(found.sent[0], (sent[1] + sent[3]) / 2)
    np.testing.assert_array_equal(found.delta[0], sent[1] + sent[3])
    assert np.isfinite(found.delta).all()
    same = decoding.averaged(seen, 1)
    np.testing.assert_array_equal(same.sent, sent)
    with pytest.raises(ValueError, match="run must be 1 to 7, got 8"):
        decoding.averaged(seen, 8)


def test_what_never_varies_is_not_learned():
    rng = np.random.default_rng(0)
    sent = np.column_stack([rng.normal(size=(30, 2)), np.zeros(30)])
    delta = np.column_stack([0.1 * sent[:, :2], np.zeros(30)])
    seen = Messages(jnp.asarray(sent), jnp.asarray(delta), jnp.ones(30, bool))
    found = decoding.learned(
        jax.random.key(0),
        seen,
        decoding.mlp(3, 16),
        fit=decoding.Adam(3e-3, 300),
        decode=decoding.Adam(1e-2, 50),
    )
    moved = seen._replace(
        sent=seen.sent + jnp.asarray([[0, 0, 4.0]]),
        delta=seen.delta + jnp.asarray([[0, 0, 0.5]]),
    )
    other = decoding.learned(
        jax.random.key(0),
        moved,
        decoding.mlp(3, 16),
        fit=decoding.Adam(3e-3, 300),
        decode=decoding.Adam(1e-2, 50),
    )
    np.testing.assert_allclose(found.loss, other.loss, rtol=1e-4)
    assert float(found.estimate[2]) == 0


def _shared(spread, shared_spread, num_rows):
    def loss(params, x, y):
        return losses.logistic(x @ params[:-1] + params[-1], y)

    return decoding.simulated_client(
        loss, ravel_pytree(jnp.zeros(3))[1], 2, rate=1.0, num_rows=num_rows,
        spread=spread, shared_spread=shared_spread,
    )  # fmt: skip


def test_rows_of_a_client_share_an_offset():
    silent = _client(0, 1.0)._replace(mask=jnp.zeros(30, bool))
    choice = decoding.Choice(jnp.asarray(1e-3), jnp.asarray(0.5))
    found = ensemble.learn(
        jax.random.key(0), silent, _shared(1.0, 4.0, 40), choice, iterations=2, count=60
    )
    rows = np.asarray(found)[:, :-1].reshape(60, 40, 3)
    within, between = rows.std(axis=1).mean(axis=0), rows.mean(axis=1).std(axis=0)
    np.testing.assert_allclose(within, [0.5, 0.5, 1.5], rtol=0.05)
    # Four standard errors of a deviation of 60 draws.
    np.testing.assert_allclose(between[:2], [2, 2], rtol=4 / np.sqrt(2 * 60))
    assert between[2] < 0.5  # targets share nothing


def _posterior(noise, count):
    """Rows that are learned where the gradient is the row, `[200, 3, 3]`, and rates."""
    away, width = 3.0, 0.5
    simulation = _shared(1.0, 2.0, 3)._replace(
        gradient=lambda row, theta: row * theta[0]
    )
    seen = Messages(
        jnp.ones((count, 3)), jnp.full((count, 3), away), jnp.ones(count, bool)
    )
    choice = decoding.Choice(jnp.asarray(noise / away), jnp.asarray(width))
    found = ensemble.learn(
        jax.random.key(1), seen, simulation, choice, iterations=40, count=200
    )
    return np.asarray(found)[:, :-1].reshape(200, 3, 3), np.exp(found[:, -1:])


def test_what_messages_tell_of_learned_rows_is_learned_and_no_more():
    rows, rate = _posterior(noise=0.1, count=40)
    # What is observed is the rate times the mean row, nearly without error.
    np.testing.assert_allclose(rate * rows.mean(axis=1), 3, atol=0.1)
    # What is not, how rows differ, stays as the prior has it.
    differences = (rows - rows.mean(axis=1, keepdims=True)).std(axis=(0, 1))
    prior = 0.5 * np.sqrt(1 - 1 / 3) * np.array([1, 1, 3])
    np.testing.assert_allclose(differences, prior, rtol=0.15)


def test_learned_rows_are_drawn_to_the_prior_by_its_whole_covariance():
    rows, _ = _posterior(noise=3.0, count=4)
    # Of the mean of three rows, inputs and target; the noise of four messages is 9 / 4.
    variance = 0.25 * (np.array([4, 4, 0]) + np.array([1, 1, 9]) / 3)
    told = 3 * variance / (variance + 9 / 4)
    # Four standard errors of 200 draws of a posterior.
    error = 4 * np.sqrt(variance * 9 / 4 / (variance + 9 / 4) / 200)
    assert (np.abs(rows.mean(axis=(0, 1)) - told) < error).all()


def test_messages_that_are_not_there_make_no_noise_smaller():
    rng = np.random.default_rng(0)
    sent, delta = rng.normal(size=(2, 12, 11))
    few = decoding.Messages(jnp.asarray(sent), jnp.asarray(delta), jnp.ones(12, bool))
    wide = [(0, 48)] + [(0, 0)]
    padded = decoding.Messages(
        jnp.pad(few.sent, wide), jnp.pad(few.delta, wide), jnp.pad(few.mask, (0, 48))
    )
    found = float(ensemble.noise(padded))
    assert found == pytest.approx(float(ensemble.noise(few)), rel=1e-5) and found > 0.5


def test_a_misfit_is_what_a_member_leaves_over_the_noise_that_was_assumed():
    seen, simulation = _client(1, 1.0), _simulation()
    choice = decoding.Choice(jnp.asarray(0.05), jnp.asarray(1.0))
    learn = functools.partial(ensemble.learn, iterations=30, count=3)
    learned = jax.jit(lambda seen: learn(jax.random.key(0), seen, simulation, choice))
    members = learned(seen)
    found = ensemble.misfits(simulation, members, seen, choice)
    delta = np.asarray(seen.delta)
    floor = 0.05 * np.sqrt(np.mean(delta**2))
    noise = max(float(ensemble.noise(seen)), floor)
    for member, misfit in zip(members, found, strict=True):
        update = functools.partial(ensemble.mean_update, simulation, member[None])
        each = jax.vmap(update)(seen.sent)
        off = np.sqrt(np.mean((np.asarray(each) - delta) ** 2)) / noise
        assert float(misfit) == pytest.approx(off, rel=1e-6)
        assert off < 1


@pytest.mark.slow
def test_members_are_decoded_alone_and_all_but_each():
    seen, simulation, key = _client(1, 1.0), _simulation(), jax.random.key(0)
    how = _SETTINGS._replace(floors=(1e-3,), widths=(1.0,))
    choice = decoding.Choice(jnp.asarray(1e-3), jnp.asarray(1.0))

    @jax.jit
    def both(seen):
        own = jax.random.fold_in(key, 1)
        return (
            decoding.simulated(key, seen, simulation, settings=how),
            ensemble.learn(own, seen, simulation, choice, iterations=20, count=3),
        )

    found, ensemble_ = both(seen)

    def field(members, theta):
        update = ensemble.mean_update(simulation, members, theta)
        rate = jnp.mean(jnp.exp(members[:, -1]))
        return update / rate + how.damping * (theta - seen.sent[-1])

    for number in range(3):
        own = ensemble_[number][None]
        rest = jnp.delete(ensemble_, number, axis=0)
        assert np.abs(field(own, found.members.optimum[number])).max() < 1e-6
        assert np.abs(field(rest, found.members.others[number])).max() < 1e-6

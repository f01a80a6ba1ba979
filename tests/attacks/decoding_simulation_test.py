"""Simulated clients: what is learned of them, and what is decoded."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fljax import losses
from fljax.attacks.reconstruction import decoding
from fljax.attacks.reconstruction.decoding import Messages, ensemble, messages


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def _simulation(num_rows=4, **told):
    def loss(params, x, y):
        return losses.logistic(x @ params[:-1] + params[-1], y)

    unravel = ravel_pytree(jnp.zeros(3))[1]
    told = {"rate": 1.0, "shared_spread": 0.5} | told
    return decoding.simulated_client(loss, unravel, 2, num_rows=num_rows, **told)


def _client(seed, num_messages=30, rate=1.0, steps=1):
    """Noise-free messages of a logistic client whose labels are of a line."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=(40, 2)), np.ones(40)])
    y = (x @ [1.0, -2.0, 0.5] > 0).astype(float)
    sent = np.linspace([-3.0, 1, 0], [3.0, -1, 1], num_messages)
    sent = sent + 0.3 * rng.normal(size=sent.shape)
    theta = sent
    for _ in range(steps):
        theta = theta - rate * (1 / (1 + np.exp(-theta @ x.T)) - y) @ x / len(y)
    seen = jnp.ones(num_messages, bool)
    return Messages(jnp.asarray(sent), jnp.asarray(sent - theta), seen)


def _learn(seen, simulation, noise, iterations=40, count=3, key=0, run=1):
    runs = messages.averaged(seen, run)
    noise = jnp.full(len(runs.count), noise)
    key = jax.random.key(key)
    return ensemble.learn(
        key, runs, simulation, noise, iterations=iterations, count=count
    )


def _flat(members):
    return np.asarray(jax.vmap(lambda each: ravel_pytree(each)[0])(members))


def test_without_messages_members_are_draws_of_the_prior():
    seen = _client(0)._replace(mask=jnp.zeros(30, bool))
    found = _flat(_learn(seen, _simulation(40), 1e-3, iterations=12, count=40))
    assert found.std() == pytest.approx(1, abs=0.05)
    assert found.mean() == pytest.approx(0, abs=0.1)


def test_members_agree_where_messages_say_much():
    seen, simulation = _client(1), _simulation()

    @jax.jit
    def updates(seen):
        found = _learn(seen, simulation, 3e-3)
        alone = functools.partial(ensemble.mean_update, simulation, found)
        return jax.vmap(alone, (0, None))(jnp.eye(3), seen.sent[15])

    silent = seen._replace(mask=jnp.zeros(30, bool))
    gaps = [np.ptp(np.asarray(updates(m)), axis=0).max() for m in (seen, silent)]
    assert gaps[0] < 0.1 * gaps[1]


def test_every_local_step_is_simulated():
    seen = _client(0, rate=0.5, steps=7)
    simulation = _simulation(40, rate=0.5, steps=jnp.asarray(7), most_steps=9)
    member = jax.tree.map(lambda leaf: leaf[0], _learn(seen, simulation, 1e-3, 2))
    inputs, targets = map(np.asarray, ensemble._rows(simulation, member))
    x = np.column_stack([inputs, np.ones(40)])
    theta = np.asarray(seen.sent[0])
    for _ in range(7):
        theta = theta - 0.5 * (1 / (1 + np.exp(-x @ theta)) - targets) @ x / 40
    one = jax.tree.map(lambda leaf: leaf[None], member)
    found = ensemble.mean_update(simulation, one, np.ones(1), seen.sent[0])
    np.testing.assert_allclose(found, seen.sent[0] - theta, rtol=1e-9)


def test_more_local_steps_than_at_most_are_refused():
    with pytest.raises(ValueError, match="at most most_steps 2, got 3"):
        _simulation(steps=3, most_steps=2)
    assert _simulation(steps=3).most_steps == 3


def test_rows_of_a_client_share_an_offset_and_targets_a_plane():
    silent = _client(0)._replace(mask=jnp.zeros(30, bool))
    simulation = _simulation(40, spread=0.5, shared_spread=2.0, slope=1.5)
    found = _learn(silent, simulation, 1e-3, iterations=12, count=60)
    rows, targets = map(
        np.asarray, jax.vmap(lambda w: ensemble._rows(simulation, w))(found)
    )
    within, between = rows.std(axis=1), rows.mean(axis=1).std(axis=0)
    # Each input has a width of its own, around half: four standard errors of 60 draws.
    width = np.log(within).mean(axis=0)
    np.testing.assert_allclose(width, np.log(0.5), atol=4 * 0.3 / np.sqrt(60))
    # Four standard errors of a deviation of 60 draws.
    np.testing.assert_allclose(between, 2, rtol=4 / np.sqrt(2 * 60))
    for each, target in zip(rows, np.log(targets / (1 - targets)), strict=True):
        inputs = np.column_stack([each, np.ones(40)])
        plane = np.linalg.lstsq(inputs, target)[0]
        np.testing.assert_allclose(inputs @ plane, target, atol=1e-6)


def _posterior(noise, count):
    """Rows `[200, 3, 2]` where the update is the mean row."""
    simulation = _simulation(3, spread=0.5, shared_spread=2.0)._replace(
        gradient=lambda theta, x, y: jnp.append(x, 0) * theta[0]
    )
    delta = np.tile([3.0, 3.0, 0.0], (count, 1))
    seen = Messages(jnp.ones((count, 3)), jnp.asarray(delta), jnp.ones(count, bool))
    found = _learn(seen, simulation, noise, iterations=60, count=200, key=1)
    return np.asarray(jax.vmap(lambda w: ensemble._rows(simulation, w)[0])(found))


def test_what_messages_tell_of_learned_rows_is_learned_and_no_more():
    rows = _posterior(noise=0.1, count=40)
    # What is observed is the mean row, nearly without error.
    np.testing.assert_allclose(rows.mean(axis=1), 3, atol=0.1)
    # What is not, how rows differ, stays as the prior has it: half, times a width.
    differences = (rows - rows.mean(axis=1, keepdims=True)).std(axis=(0, 1))
    np.testing.assert_allclose(
        differences, 0.5 * np.exp(0.3**2) * np.sqrt(2 / 3), rtol=0.15
    )


def test_learned_rows_are_drawn_to_the_prior_by_its_whole_covariance():
    rows = _posterior(noise=3.0, count=4)
    # Of the mean of three rows, whose width is around half; the noise of four is 9 / 4.
    variance = 4 + 0.25 * np.exp(2 * 0.3**2) / 3
    told = 3 * variance / (variance + 9 / 4)
    # Four standard errors of 200 draws of a posterior.
    error = 4 * np.sqrt(variance * 9 / 4 / (variance + 9 / 4) / 200)
    assert (np.abs(rows.mean(axis=(0, 1)) - told) < error).all()


def test_a_misfit_is_what_a_member_leaves_over_the_noise_that_was_assumed():
    seen, simulation = _client(1), _simulation(20)
    members = jax.jit(lambda seen: _learn(seen, simulation, 0.02))(seen)
    noise = np.linspace(0.02, 0.04, 15)
    found = ensemble.misfits(
        simulation, members, messages.averaged(seen, 2), jnp.asarray(noise)
    )
    for number, misfit in enumerate(found):
        update = functools.partial(ensemble.mean_update, simulation, members)
        each = jax.vmap(update, (None, 0))(jnp.eye(3)[number], seen.sent)
        off = (np.asarray(each) - np.asarray(seen.delta)).reshape(15, 2, 3).mean(axis=1)
        off = np.sqrt(np.mean((off / noise[:, None]) ** 2))
        assert float(misfit) == pytest.approx(off, rel=1e-6)
        assert off < 1


def test_a_mean_of_updates_is_of_every_model_that_was_sent():
    # Updates bend between models as far apart as these: the mean update is not that of
    # their mean, and the client who sent them is still told to explain them.
    sent = jnp.asarray([[-4.0, 1, 0], [4.0, -1, 1]])
    seen = Messages(sent, jnp.zeros((2, 3)), jnp.ones(2, bool))
    simulation = _simulation(20)
    sender = _learn(seen._replace(mask=jnp.zeros(2, bool)), simulation, 1.0, count=1)
    update = functools.partial(ensemble.mean_update, simulation, sender, jnp.ones(1))
    seen = seen._replace(delta=jnp.stack([update(each) for each in sent]))
    runs = messages.averaged(seen, 2)
    assert float(ensemble.misfits(simulation, sender, runs, jnp.ones(1))[0]) < 1e-12
    assert np.abs(update(runs.centre[0]) - runs.delta[0]).max() > 0.01


def test_no_curve_is_taken_for_noise():
    seen = _client(0, num_messages=60)
    size = float(ensemble.size(messages.averaged(seen, 1)))
    assert float(ensemble.noise(seen)) < 0.05 * size
    error = 0.2 * size * np.random.default_rng(0).normal(size=seen.delta.shape)
    noisy = seen._replace(delta=seen.delta + error)
    assert float(ensemble.noise(noisy)) == pytest.approx(0.2 * size, rel=0.2)


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


@pytest.mark.slow
def test_members_that_explain_the_messages_are_decoded_alone_and_all_but_each():
    seen, simulation, key = _client(1), _simulation(20), jax.random.key(0)
    how = decoding.Settings(iterations=60, ensemble_size=3, floor=1e-2)

    @jax.jit
    def both(seen):
        size = ensemble.size(messages.averaged(seen, 1))
        noise = jnp.maximum(ensemble.noise(seen), 1e-2 * size)
        return (
            decoding.simulated(key, seen, simulation, settings=how),
            _learn(seen, simulation, noise, iterations=60),
        )

    found, members = both(seen)
    explains = np.asarray(found.members.misfit) <= decoding.EXPLAINS
    assert explains.sum() > 1

    def field(shares, theta):
        gradient = ensemble.mean_gradient(simulation, members, shares, theta)
        return gradient + how.damping * (theta - seen.sent[-1])

    assert np.abs(field(explains.astype(float), found.estimate)).max() < 1e-6
    for number, own in enumerate(np.eye(3)):
        others = explains * (1 - own)
        assert np.abs(field(own, found.members.optimum[number])).max() < 1e-6
        assert np.abs(field(others, found.members.others[number])).max() < 1e-6


def test_a_search_that_ended_elsewhere_does_not_count(monkeypatch):
    seen, simulation = _client(1), _simulation(20)
    learn = ensemble.learn

    def one_is_lost(*args, **told):
        members = learn(*args, **told)
        return jax.tree.map(lambda leaf: leaf.at[0].set(5.0), members)

    def estimate():
        how = decoding.Settings(iterations=60, ensemble_size=3, floor=1e-2)
        found = decoding.simulated(jax.random.key(0), seen, simulation, settings=how)
        return found.estimate, found.members

    monkeypatch.setattr(ensemble, "learn", one_is_lost)
    found, members = jax.jit(estimate)()
    assert float(members.misfit[0]) > 2 > float(members.misfit[1:].max())
    np.testing.assert_allclose(found, members.others[0], atol=1e-8)


@pytest.mark.parametrize("lost", [(0,), (0, 1), (0, 1, 2)])
def test_members_that_are_not_finite_do_not_count(monkeypatch, lost):
    seen, simulation = _client(1), _simulation(20)
    learn = ensemble.learn

    def some_are_lost(*args, **told):
        members = learn(*args, **told)
        return jax.tree.map(lambda leaf: leaf.at[np.array(lost)].set(np.nan), members)

    def decoded():
        how = decoding.Settings(iterations=60, ensemble_size=3, floor=1e-2)
        return decoding.simulated(jax.random.key(0), seen, simulation, settings=how)

    monkeypatch.setattr(ensemble, "learn", some_are_lost)
    found = jax.jit(decoded)()
    assert np.isnan(found.members.optimum[0]).all()
    if len(lost) == 3:  # nobody is left to say anything
        assert np.isnan(found.estimate).all() and np.isnan(found.members.others).all()
    else:
        np.testing.assert_allclose(found.estimate, found.members.others[0], atol=1e-8)
        assert np.isfinite(found.estimate).all() and np.isfinite(found.loss)
    if len(lost) == 2:  # who is left has no others
        np.testing.assert_allclose(found.estimate, found.members.optimum[2], atol=1e-8)
        assert np.isnan(found.members.others[2]).all()


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

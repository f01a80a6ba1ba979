"""Ensembles of simulated clients: what is learned, and how surely."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fljax.attacks.reconstruction.decoding import Messages, ensemble, messages
from tests.attacks import decoding_clients as clients

pytestmark = pytest.mark.usefixtures("float64")


def _flat(members):
    return np.asarray(jax.vmap(lambda each: ravel_pytree(each)[0])(members))


@pytest.mark.slow
def test_without_messages_members_are_draws_of_the_prior():
    seen = clients.client(0)._replace(mask=jnp.zeros(30, bool))
    found = _flat(
        clients.learn(seen, clients.simulation(40), 1e-3, iterations=12, count=40)
    )
    assert found.std() == pytest.approx(1, abs=0.05)
    assert found.mean() == pytest.approx(0, abs=0.1)


@pytest.mark.slow
def test_members_agree_where_messages_say_much():
    seen, simulation = clients.client(1), clients.simulation()

    @jax.jit
    def updates(seen):
        found = clients.learn(seen, simulation, 3e-3)
        alone = functools.partial(ensemble.mean_update, simulation, found)
        return jax.vmap(alone, (0, None))(jnp.eye(3), seen.sent[15])

    silent = seen._replace(mask=jnp.zeros(30, bool))
    gaps = [np.ptp(np.asarray(updates(m)), axis=0).max() for m in (seen, silent)]
    assert gaps[0] < 0.1 * gaps[1]


@pytest.mark.slow
def test_every_local_step_is_simulated():
    seen = clients.client(0, rate=0.5, steps=7)
    simulation = clients.simulation(40, rate=0.5, steps=jnp.asarray(7), most_steps=9)
    member = jax.tree.map(
        lambda leaf: leaf[0], clients.learn(seen, simulation, 1e-3, 2)
    )
    inputs, targets = map(np.asarray, ensemble._rows(simulation, member))
    x = np.column_stack([inputs, np.ones(40)])
    theta = np.asarray(seen.sent[0])
    for _ in range(7):
        theta = theta - 0.5 * (1 / (1 + np.exp(-x @ theta)) - targets) @ x / 40
    one = jax.tree.map(lambda leaf: leaf[None], member)
    found = ensemble.mean_update(simulation, one, np.ones(1), seen.sent[0])
    np.testing.assert_allclose(found, seen.sent[0] - theta, rtol=1e-9)


@pytest.mark.slow
def test_rows_of_a_client_share_an_offset_and_targets_a_plane():
    silent = clients.client(0)._replace(mask=jnp.zeros(30, bool))
    simulation = clients.simulation(40, spread=0.5, shared_spread=2.0, slope=1.5)
    found = clients.learn(silent, simulation, 1e-3, iterations=12, count=60)
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
    simulation = clients.simulation(3, spread=0.5, shared_spread=2.0)._replace(
        gradient=lambda theta, x, y: jnp.append(x, 0) * theta[0]
    )
    delta = np.tile([3.0, 3.0, 0.0], (count, 1))
    seen = Messages(jnp.ones((count, 3)), jnp.asarray(delta), jnp.ones(count, bool))
    found = clients.learn(seen, simulation, noise, iterations=60, count=200, key=1)
    return np.asarray(jax.vmap(lambda w: ensemble._rows(simulation, w)[0])(found))


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_misfit_is_what_a_member_leaves_over_the_noise_that_was_assumed():
    seen, simulation = clients.client(1), clients.simulation(20)
    members = jax.jit(lambda seen: clients.learn(seen, simulation, 0.02))(seen)
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


@pytest.mark.slow
def test_a_mean_of_updates_is_of_every_model_that_was_sent():
    # Updates bend between models as far apart as these: the mean update is not that of
    # their mean, and the client who sent them is still told to explain them.
    sent = jnp.asarray([[-4.0, 1, 0], [4.0, -1, 1]])
    seen = Messages(sent, jnp.zeros((2, 3)), jnp.ones(2, bool))
    simulation = clients.simulation(20)
    sender = clients.learn(
        seen._replace(mask=jnp.zeros(2, bool)), simulation, 1.0, count=1
    )
    update = functools.partial(ensemble.mean_update, simulation, sender, jnp.ones(1))
    seen = seen._replace(delta=jnp.stack([update(each) for each in sent]))
    runs = messages.averaged(seen, 2)
    assert float(ensemble.misfits(simulation, sender, runs, jnp.ones(1))[0]) < 1e-12
    assert np.abs(update(runs.centre[0]) - runs.delta[0]).max() > 0.01


@pytest.mark.slow
def test_members_spread_as_means_of_unequally_many_messages_leave_them():
    # The update is the mean row: three means of two messages, which say 4, and three of
    # one, which say 1. All told nine messages of 3, whose noise is 3.
    simulation = clients.simulation(3, spread=0.5, shared_spread=2.0)._replace(
        gradient=lambda theta, x, y: jnp.append(x, 0) * theta[0]
    )
    mask = np.tile([True, True, True, False], 3)
    said = np.tile([4.0, 4.0, 1.0, 0.0], 3)[:, None] * np.array([1.0, 1.0, 0.0])
    seen = Messages(jnp.ones((12, 3)), jnp.asarray(said), jnp.asarray(mask))
    found = clients.learn(seen, simulation, 3.0, iterations=60, count=400, key=2, run=2)
    rows = jax.vmap(lambda w: ensemble._rows(simulation, w)[0])(found)
    mean = np.asarray(rows).mean(axis=1)  # [S, D] of the rows of a member
    prior = 4 + 0.25 * np.exp(2 * 0.3**2) / 3
    share = prior / (prior + 3.0**2 / 9)
    # Four standard errors of 400 draws, of a mean and of a variance.
    spread = prior * (1 - share)
    np.testing.assert_allclose(
        mean.mean(axis=0), 3 * share, atol=4 * np.sqrt(spread / 400)
    )
    np.testing.assert_allclose(mean.var(axis=0), spread, rtol=4 * np.sqrt(2 / 400))

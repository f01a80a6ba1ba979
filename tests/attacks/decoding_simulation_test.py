"""Simulated clients: what is decoded, and which members count."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.reconstruction import decoding
from fljax.attacks.reconstruction.decoding import ensemble, messages, noise
from tests.attacks import decoding_clients as clients

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.slow
def test_members_that_explain_the_messages_are_decoded_alone_and_all_but_each():
    seen, simulation, key = clients.client(1), clients.simulation(20), jax.random.key(0)
    how = decoding.Settings(iterations=60, ensemble_size=3, floor=1e-2)

    @jax.jit
    def both(seen):
        size = ensemble.size(messages.averaged(seen, 1))
        assumed = jnp.maximum(noise.deviation(seen), 1e-2 * size)
        return (
            decoding.simulated(key, seen, simulation, settings=how),
            clients.learn(seen, simulation, assumed, iterations=60),
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


@pytest.mark.slow
def test_a_search_that_ended_elsewhere_does_not_count(monkeypatch):
    seen, simulation = clients.client(1), clients.simulation(20)
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


@pytest.mark.parametrize(
    "lost",
    [
        (0,),
        pytest.param((0, 1), marks=pytest.mark.slow),
        pytest.param((0, 1, 2), marks=pytest.mark.slow),
    ],
)
def test_members_that_are_not_finite_do_not_count(monkeypatch, lost):
    seen, simulation = clients.client(1), clients.simulation(20)
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


def test_more_local_steps_than_at_most_are_refused():
    with pytest.raises(ValueError, match="at most most_steps 2, got 3"):
        clients.simulation(steps=3, most_steps=2)
    assert clients.simulation(steps=3).most_steps == 3


@pytest.fixture
def learnt(monkeypatch):
    """What `ensemble.learn` was given and gave back, last."""
    found, learn = {}, ensemble.learn

    def kept(key, runs, simulation, noise, **told):
        members = learn(key, runs, simulation, noise, **told)
        found.update(runs=runs, noise=np.asarray(noise), members=members)
        return members

    monkeypatch.setattr(ensemble, "learn", kept)
    return found


@pytest.mark.slow
def test_a_mean_has_the_noise_of_its_messages_and_not_less_than_is_assumed(learnt):
    seen = clients.client(0)._replace(mask=jnp.arange(30) % 4 > 0)  # one or two of two
    how = decoding.Settings(iterations=1, ensemble_size=1, average=2, floor=1e-9)
    key, simulation = jax.random.key(0), clients.simulation()
    decoding.simulated(key, seen, simulation, settings=how)
    single = float(noise.deviation(seen))
    np.testing.assert_allclose(learnt["noise"][::2], single)
    np.testing.assert_allclose(learnt["noise"][1::2], single / np.sqrt(2))
    size = float(ensemble.size(learnt["runs"]))
    decoding.simulated(key, seen, simulation, settings=how._replace(floor=0.5))
    np.testing.assert_allclose(learnt["noise"], 0.5 * size)


@pytest.mark.slow
def test_loss_and_what_is_left_are_those_of_the_members_that_count(learnt):
    seen, simulation = clients.client(1), clients.simulation(20)
    how = decoding.Settings(iterations=60, ensemble_size=3, floor=1e-2, average=3)
    found = decoding.simulated(jax.random.key(0), seen, simulation, settings=how)
    misfit = np.asarray(found.members.misfit)
    shares = misfit <= max(decoding.EXPLAINS, misfit.min())
    update = functools.partial(
        ensemble.mean_update, simulation, learnt["members"], shares.astype(float)
    )
    left = np.linalg.norm(update(found.estimate))
    assert float(found.left) == pytest.approx(left, rel=1e-9)
    off = np.asarray(jax.vmap(update)(seen.sent)) - np.asarray(seen.delta)
    loss = np.mean(np.sum(off**2, axis=1))
    assert float(found.loss) == pytest.approx(loss, rel=1e-9)
    assert left > 0 and loss > 0


@pytest.mark.slow
def test_of_a_client_without_a_message_no_member_explains_anything():
    seen = clients.client(1)._replace(mask=jnp.zeros(30, bool))
    how = decoding.Settings(iterations=2, ensemble_size=2)
    found = decoding.simulated(
        jax.random.key(0), seen, clients.simulation(), settings=how
    )
    assert np.isnan(found.members.misfit).all() and np.isfinite(found.estimate).all()

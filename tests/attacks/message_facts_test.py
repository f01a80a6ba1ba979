"""What trajectory matching is told of messages, by the numbers of their rounds."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks import controls
from fljax.attacks.adversary import LocalTraining
from fljax.attacks.groups import Group
from fljax.attacks.trajectory import clients
from fljax.attacks.trajectory.imagined import Imagined
from fljax.attacks.trajectory.message_facts import MessageFacts
from fljax.attacks.trajectory.rules import Practice
from fljax.defenses import specs
from fljax.transcript import sums, views
from fljax.transcript.sums import Server
from fljax.types import Features, Known, Transcript
from tests.attacks import regression

_ROUNDS = np.array([0, 3, 4, 9])  # 1, 2, ... are missing
_RATES = (1.0, 0.8, 0.6, 0.4, 0.2)
_IDS = np.array([[5, 7], [7, -1], [5, -1], [7, 5]])  # in a round one client is absent
_TRAINING = LocalTraining(5, 0.1, 1, schedule=_RATES)
_NOISE = specs.parse("gaussian(deviation=1, on=steps)")


def _view(**changes):
    """Clients of 5 and of 10 rows."""
    params = jax.vmap(regression.MODEL.init)(jax.random.split(jax.random.key(0), 4))
    delta = jax.tree.map(lambda leaf: np.ones((4, 2, *leaf.shape[1:])), params)
    x = Features(np.zeros((2, 10, 2), np.float32), np.zeros((2, 10, 0), np.int32))
    mask = np.arange(10) < np.array([[5], [10]])
    seen = Transcript(_ROUNDS, _IDS, params, delta)
    known = Known(x, np.zeros((2, 10), np.float32), mask)
    return regression.view(seen, [5, 7], known, training=_TRAINING, **changes)


def test_the_rate_is_that_of_the_round_of_a_message():
    client, facts = clients._imagined(_view())
    assert client.scheduled
    # Of rounds 0, 4, 9 and 0, 3, 9: the last rate counts for all that follow.
    np.testing.assert_allclose(facts.rate, [[1, 0.2, 0.2], [1, 0.4, 0.2]], rtol=1e-6)


def test_a_sum_has_the_rate_of_its_round_and_the_noise_of_its_members():
    view = _view(defense=_NOISE)
    seen = sums.add_up(view.transcript, Server(np.array([5, 7]), np.array([1.0, 3.0])))
    view = view._replace(
        transcript=seen, messages=views.client_view(seen, [5, 7]), sees="sum"
    )
    _, facts = clients._imagined(view)
    member = np.maximum(np.searchsorted([5, 7], seen.member[:, 0]), 0)
    which = np.array([1, 2, 3])
    group = Group(
        jnp.int32(0), jnp.int32(5), None,
        views.ClientView(which, np.zeros(3, int), jnp.int32(3)),
        None, member[which], seen.share[which, 0], None,
    )  # fmt: skip
    found = clients._of_sums(MessageFacts(*map(jnp.asarray, facts)), group)
    rates = np.array([0.4, 0.2, 0.2])
    np.testing.assert_allclose(found.rate, rates, rtol=1e-6)
    # One step of the client of five rows, two of the other.
    noise = (0.1 * rates) ** 2 * [2, 1, (1 + 9 * 2) / 16]
    np.testing.assert_allclose(found.noise, noise, rtol=1e-5)


@pytest.mark.parametrize(
    ("sees", "told", "last"),
    [("messages", None, 9), ("sum", None, 9), ("models", None, 10), ("models", 19, 18)],
)
def test_a_clip_decays_over_all_rounds_of_the_run(sees, told, last):
    decaying = specs.parse("fed_cdp(clip=6, decay_to=2, sigma=1, mode=recommended)")
    training = _TRAINING._replace(num_rounds=told)
    view = _view(defense=decaying)._replace(training=training, sees=sees)
    _, found = clients._imagined(view)
    layers = len(jax.tree.leaves(view.transcript.params))
    wanted = (6 - 4 * np.array([[0, 4, 9], [0, 3, 9]]) / last) / layers**0.5
    np.testing.assert_allclose(found.clip, wanted, rtol=1e-5)


def test_a_client_of_fewer_steps_takes_as_many_as_it_does(monkeypatch):
    class _Asked(Exception):
        pass

    def over(one, static, view, scales, facts, merged):
        raise _Asked(static.settings.search.path_steps, merged)

    monkeypatch.setattr(clients, "over_clients", over)
    settings = clients.Settings(messages=None)
    for batch, steps in ((2, [3, 5]), (4, [2, 3])):
        view = _view()._replace(training=LocalTraining(batch, 0.1, 1))
        with pytest.raises(_Asked) as asked:
            clients.infer(view, settings)
        most, merged = asked.value.args
        assert most == max(steps)
        sizes = [[1 / k] * k + [0] * (most - k) for k in steps]
        np.testing.assert_allclose(merged[..., 1], sizes, rtol=1e-6)


@pytest.mark.parametrize("kept", [False, True])
def test_of_some_messages_what_is_told_is_theirs(monkeypatch, kept):
    def seen(key, loss_fn, exchange, *_, facts, which, **__):
        if which is None:
            return exchange, facts.rate
        return exchange[which], facts.rate[which]

    monkeypatch.setattr(clients.one_client, "trajectory_matching", seen)
    number = jnp.arange(6.0)
    places = views.ClientView(jnp.arange(6), jnp.zeros(6, int), jnp.int32(5))
    client = types.SimpleNamespace(
        exchange=number, places=places, known=None, candidates=None, seed=0, id=0
    )
    imagined = Imagined(Practice(kept=kept))
    settings = types.SimpleNamespace(messages=3, search=None, client=imagined)
    static = types.SimpleNamespace(settings=settings, loss_fn=None, continuous=False)
    facts = MessageFacts(*[10 * number] * len(MessageFacts._fields))
    exchange, rate = clients._one(static, client, jnp.float32(1), facts)
    np.testing.assert_array_equal(exchange, [0, 2, 4])  # of the 5 that there are
    np.testing.assert_array_equal(rate, 10 * exchange)


def test_strangers_are_tried_as_rows_of_clients_of_the_same_size():
    view = _view()
    fewer = view.known._replace(mask=np.arange(10) < np.array([[3], [2]]))
    other = controls.strangers(view, fewer)
    np.testing.assert_array_equal(other.known.mask, fewer.mask)
    np.testing.assert_array_equal(other.sizes, [5, 10])

"""The mean message of the others: who counts, and how large it is."""

import types

import numpy as np
import pytest

from fljax.attacks import others
from fljax.attacks.adversary import LocalTraining
from fljax.transcript.views import ClientView
from fljax.types import Transcript

_IDS = np.array([[5, 7, -1], [9, 5, 7], [7, -1, -1], [-1, -1, -1]])
_SIZES = {5: 4, 7: 8}  # nobody knows how many rows 9 has


def _view(**training):
    delta = np.arange(1.0, 25.0, dtype=np.float32).reshape(4, 3, 2)
    seen = Transcript(np.arange(4), _IDS, {"w": np.zeros((4, 2))}, {"w": delta})
    told = LocalTraining(learning_rate=0.5, batch_size=2, epochs=1, **training)
    return types.SimpleNamespace(
        transcript=seen, training=told, clients=np.array(list(_SIZES)),
        sizes=np.array(list(_SIZES.values())),
    )  # fmt: skip


def test_each_message_is_as_large_as_the_clients_own_steps():
    view = _view()
    delta = view.transcript.delta["w"]
    found = others.of_round(view, 0)["w"]  # 2 steps of one and 4 of the other
    np.testing.assert_allclose(found, [delta[0, 1] / 2, 2 * delta[0, 0], [0, 0]])
    found = others.of_round(view, 1)["w"]  # who is not known takes 3, the mean
    wanted = (2 / 3 * delta[1, 0] + 2 / 4 * delta[1, 2]) / 2
    np.testing.assert_allclose(found[1], wanted, rtol=1e-6)
    (alone,) = others.of_round(view, 1, 1)["w"]
    np.testing.assert_array_equal(alone, found[1])


def test_who_is_alone_has_the_others_of_the_nearest_round():
    view = _view(schedule=(1.0, 0.5, 0.25, 0.0))
    delta = view.transcript.delta["w"]
    found = others.of_round(view, 2)["w"]
    wanted = 0.5 * (4 / 3 * delta[1, 0] + 4 / 2 * delta[1, 1]) / 2
    np.testing.assert_allclose(found[0], wanted, rtol=1e-6)
    places = ClientView(np.array([2, 1]), np.array([0, 2]), np.array(2))
    told = others.of_messages(view, places)["w"]
    np.testing.assert_array_equal(told[0], found[0])
    whole = others.messages(view).delta["w"]
    assert np.isfinite(whole).all() and not whole[3].any()
    np.testing.assert_array_equal(whole[2], found)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_message_that_is_not_finite_is_nobodys(wrong):
    view = _view()
    delta = view.transcript.delta["w"]
    delta[1, 0] = wrong
    found = others.of_round(view, 1)["w"]
    np.testing.assert_allclose(found[1], delta[1, 2] / 2)


def test_a_client_that_was_recorded_alone_has_no_others():
    view = _view()
    alone = np.where(_IDS == 7, 7, -1)
    view.transcript = view.transcript._replace(client=alone)
    assert others.of_round(view, 2) is None
    assert others.messages(view) is None

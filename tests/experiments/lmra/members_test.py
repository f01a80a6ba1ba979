"""How sure an adversary may be: who explains the messages, and who names rows alike."""

import numpy as np
import pytest

from experiments.lmra import clients, members, reporting, scores
from experiments.lmra.settings import Config, DataConfig, Settings
from fljax.attacks.reconstruction import decoding

_TOLD = Settings(DataConfig(sizes=(30, 20)), Config(seeds=(0,)))


@pytest.fixture(scope="module")
def loaded():
    return clients.load(_TOLD.data, _TOLD.run)


def _models(clients, count, seed=0):
    """`[cases, seeds, A, S, P]`, some hyperplanes of each client."""
    shape = 1, 1, 2, count, clients.task.num_inputs + 1
    return np.random.default_rng(seed).normal(size=shape)


def test_a_model_agrees_with_itself_and_not_at_all_with_its_opposite(loaded):
    models = _models(loaded, 2)
    others = models * np.array([1, -1])[:, None]
    found = members.agreement(loaded, models, others)
    np.testing.assert_allclose(found[0, 0], [[100, 0], [100, 0]])


def test_agreement_is_counted_over_the_clients_own_rows(loaded):
    models, others = _models(loaded, 3), _models(loaded, 3, seed=1)
    found = members.agreement(loaded, models, others)[0, 0]
    for client, size in enumerate(loaded.sizes):
        x = loaded.own.rows.x.numeric[0, client, :size]
        for number in range(3):
            one, two = (_named(t[0, 0, client, number], x) for t in (models, others))
            assert found[client, number] == pytest.approx(100 * np.mean(one == two))


def _named(theta, x):
    return x @ theta[1:] + theta[0] > 0  # the intercept comes first


def test_members_count_that_explain_the_messages_and_every_client_as_much():
    same = np.array([[90.0, 10.0], [60.0, 40.0], [0.0, 0.0]])
    explains = np.array([[True, False], [True, True], [False, False]])
    found = members.of_draw(same, explains, np.array([80.0, 70.0, 5.0]))
    assert found == {
        members.EXPLAINING: (50.0, 6),
        members.EXPLAINED: (pytest.approx(200 / 3), 3),
        members.AGREEING: (70.0, 2),  # 90 and (60 + 40) / 2
        members.ACCURACY: (75.0, 2),
    }


def test_where_nobody_explains_the_messages_nothing_is_said_of_agreement():
    found = members.of_draw(np.ones((1, 2)), np.zeros((1, 2), bool), np.ones(1))
    assert found == {members.EXPLAINING: (0.0, 2), members.EXPLAINED: (0.0, 1)}


def test_a_member_alone_agrees_with_nobody():
    same = np.array([[np.nan, 80.0], [90.0, 70.0]])
    explains = np.array([[True, False], [True, True]])
    found = members.of_draw(same, explains, np.array([60.0, 75.0]))
    assert found[members.AGREEING] == (80.0, 1)  # of the second client alone
    assert found[members.ACCURACY] == (75.0, 1)
    assert found[members.EXPLAINED] == (100.0, 2)
    found = members.of_draw(same[:1], explains[:1], np.ones(1))
    assert found == {members.EXPLAINING: (50.0, 2), members.EXPLAINED: (100.0, 1)}


def test_a_model_that_is_not_finite_agrees_with_nobody(loaded):
    models, others = _models(loaded, 2), _models(loaded, 2)
    others[..., 1, 0] = np.nan
    found = members.agreement(loaded, models, others)[0, 0]
    np.testing.assert_array_equal(np.isnan(found), [[False, True]] * 2)


def test_rows_are_of_members_that_leave_at_most_twice_the_noise(loaded):
    models, others = _models(loaded, 3), _models(loaded, 3, seed=1)
    misfit = np.array([[2.0, 2.1, 1.0], [3.0, np.nan, np.inf]]).reshape(1, 1, 2, 3)
    ensemble = decoding.Members(models, others, misfit)
    blank = dict.fromkeys(decoding.Decoded._fields, np.zeros(()))
    decoded = decoding.Decoded(**blank | {"members": ensemble})
    accuracy = np.array([70.0, 10.0]).reshape(1, 1, 2)
    blank = dict.fromkeys(scores.Scores._fields, accuracy)
    scored = scores.Scores(**blank)
    attacked = reporting.Attacked(
        {"decoded_simulated": scored}, {"decoded_simulated": decoded}, None, None
    )
    found = {row.metric: row for row in members.rows(_TOLD, loaded, attacked)}
    assert found[members.EXPLAINING].value == pytest.approx(100 * 2 / 6)
    assert found[members.EXPLAINED].value == 50
    same = members.agreement(loaded, models, others)[0, 0, 0]
    assert found[members.AGREEING].value == pytest.approx(same[[0, 2]].mean())
    assert (found[members.ACCURACY].value, found[members.ACCURACY].n) == (70, 1)

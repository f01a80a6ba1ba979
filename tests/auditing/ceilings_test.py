"""The most that any adversary can have: what it is computed from."""

from types import SimpleNamespace

import numpy as np
import pytest

from fljax.attacks.adversary import LocalTraining
from fljax.auditing import ceilings
from fljax.auditing.declaration import Declared
from fljax.auditing.measuring import Imputed
from fljax.defenses import specs


@pytest.fixture
def told(monkeypatch):
    """Ceilings by sampling, as `privacy.ceiling` would say; and what it was asked."""
    asked = []

    def ceiling(defense, releases, share):
        steps, rounds = (np.asarray(each).tolist() for each in releases)
        asked.append((defense, steps, rounds))
        return np.array([{"poisson": 0.6, "fixed": 0.7}[defense]] * 2)

    monkeypatch.setattr(ceilings.privacy, "ceiling", ceiling)
    monkeypatch.setattr(ceilings.specs, "bind", lambda spec, way, numbers: way)
    monkeypatch.setattr(ceilings.declaration, "setting", lambda view, way: way)
    return asked


def _view(sees):
    """Rounds 0, 2 and 4 were recorded, one client was in all of them, one in two."""
    return SimpleNamespace(
        transcript=SimpleNamespace(round=np.array([0, 2, 4])),
        messages=SimpleNamespace(count=np.array([3, 2])),
        sizes=np.array([8, 8]),
        sees=sees,
        training=LocalTraining(batch_size=4, epochs=1),
    )


@pytest.mark.parametrize(("sees", "rounds"), [("messages", [5, 4]), ("sum", [5, 5])])
def test_rounds_that_were_not_recorded_count(told, sees, rounds):
    declared = Declared(specs.parse("fed_cdp(clip=1, sigma=1)"), None)
    zeros = np.zeros(2, int)
    found = [*ceilings._bounds(_view(sees), declared, zeros, np.zeros(2))]
    steps = [2 * each for each in rounds]  # two batches of four of eight rows
    assert told == [("poisson", steps, rounds), ("fixed", steps, rounds)]
    np.testing.assert_array_equal(np.max(found, axis=0), 0.7)


def test_messages_that_were_left_out_count(told):
    declared = Declared(specs.parse("dp_sgd(clip=1, sigma=1)"), None)
    left_out = np.array([0, 1])
    assert [*ceilings._bounds(_view("messages"), declared, left_out, np.zeros(2))]
    assert told == [("poisson", [10, 10], [5, 5])]


def test_of_two_ways_to_draw_batches_the_larger_ceiling_holds(told, monkeypatch):
    monkeypatch.setattr(ceilings, "_without", lambda *_: np.zeros(2))
    view = _view("messages")
    declared = Declared(specs.parse("fed_cdp(clip=1, sigma=1)"), None)
    view.continuous = False
    view.seed = 0
    view.training = view.training._replace(learning_rate=0.1)
    found = ceilings.find(view, None, Imputed([]), np.zeros(2, int), declared)
    np.testing.assert_allclose(found.percent, 70)


def test_the_best_guess_is_whatever_tells_most_of_each_client():
    truth = SimpleNamespace(
        sensitive=np.array([[0, 1, 0, 1], [1, 1, 1, 0]]), mask=np.ones((2, 4), bool)
    )
    imputed = Imputed(
        [np.array([0, 1, 0, 0]), np.zeros(4, int)],
        from_all=[np.zeros(4, int), np.array([1, 1, 1, 0])],
    )
    assert ceilings._without(truth, imputed).tolist() == [0.75, 1.0]

"""One setting of the gradient attack for all clients, and which ones may be chosen."""

import types

import numpy as np
import pytest

from experiments.aia import gradients
from experiments.aia.active_config import ActiveConfig
from fljax.attacks.attribute.gradient_grid import Grid, Settings
from fljax.transcript.views import ClientView

_SIZES = np.array([10, 30])


def _grid(distance, rounds, first=0):
    """Two clients of one row, one rate; the k-th setting names candidate first + k."""
    distance = np.asarray(distance, float)[None, ..., None]  # [seeds, C, F, L]
    index = first + np.arange(distance.shape[2])[None, None, :, None, None]
    index = np.broadcast_to(index, (*distance.shape, 1)).astype(np.int16)
    return Grid(np.array([rounds]), np.ones((1, 1)), index, distance)


@pytest.fixture
def adversary():
    count = np.array([[8, 8]])
    row = np.broadcast_to(np.arange(8), (1, 2, 8))
    return types.SimpleNamespace(
        views=[types.SimpleNamespace(sizes=_SIZES)],
        messages=ClientView(row, np.zeros_like(row), count),
        transcript=types.SimpleNamespace(round=np.arange(8)[None]),
    )


def _passive(monkeypatch, adversary, grid):
    monkeypatch.setattr(gradients, "_grids", lambda *_: grid)
    (found,) = gradients.run(adversary, Settings())
    return found.prediction


@pytest.mark.parametrize(
    ("distance", "chosen"),
    [
        ([[0.5, 0.1], [0.5, 0.6]], 1),  # 0.5 and 0.475, weighted by rows
        ([[0.5, 0.1], [0.5, 0.7]], 0),  # 0.5 and 0.55
        ([[np.nan, 0.9], [0.0, 0.9]], 1),
    ],
    ids=["rows weigh", "the other way", "what diverged is not chosen"],
)
def test_the_most_similar_on_the_mean_over_clients_is_chosen(
    distance, chosen, monkeypatch, adversary
):
    said = _passive(monkeypatch, adversary, _grid(distance, [1, 5]))
    np.testing.assert_array_equal(said.value, [[[chosen], [chosen]]])
    assert said.details["alternatives"].shape == (1, 2, 2, 1)


def test_before_an_active_round_only_earlier_messages_are_used(monkeypatch, adversary):
    passive = _grid([[0.5, 0.4, 0.1]] * 2, [1, 4, 8])
    alone = _grid([[0.45, 0.2]] * 2, [1, 2], first=10)
    monkeypatch.setattr(gradients, "_isolated", lambda *_: [])
    adversary._replace = lambda **_: adversary
    grids = iter([passive, alone])
    monkeypatch.setattr(gradients, "_grids", lambda *_: next(grids))
    front = types.SimpleNamespace(first=5, has_messages=np.ones((1, 2), bool))
    isolated = types.SimpleNamespace(front=front, exchange=None)
    config = ActiveConfig(report=(1, 2), grad_rounds=(1, 2))
    found = gradients.run_active(adversary, Settings(), isolated, config)
    named = {
        each.prediction.setting: each.prediction.value[0, 0, 0].item() for each in found
    }
    # The best of the training's takes all 8 messages, three of which come too late.
    assert named == {"passive": 2, "active_1": 1, "active_2": 11}
    settings = {
        each.prediction.setting: each.prediction.details["alternatives"].shape[2]
        for each in found
    }
    assert settings == {"passive": 3, "active_1": 3, "active_2": 4}

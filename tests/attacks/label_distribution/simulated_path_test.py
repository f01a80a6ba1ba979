"""Simulated paths find labels where a message is of more than one step's length."""

import types

import jax
import numpy as np
import optax
import pytest

from fljax import local, losses, models
from fljax.attacks.adversary import LocalTraining
from fljax.attacks.label_distribution import rules, shadow_clients, simulated_path
from fljax.types import Features

_LABELS, _SETTINGS = 3, simulated_path.Settings(8, 90, 20, 1)


@pytest.mark.slow
def test_a_long_path_is_read_where_one_step_misleads(train):
    model = models.linear(2, outputs=_LABELS)
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    rng = np.random.default_rng(0)
    y = np.arange(60) % _LABELS
    centres = np.array([[2.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]])
    x = (centres[y] + 0.3 * rng.normal(size=(60, 2))).astype(np.float32)
    rows = shadow_clients.pool(Features(x, np.zeros((60, 0), np.int32)), y, _LABELS)
    sent = model.init(jax.random.key(0))
    recipe = shadow_clients.Recipe(
        lambda _: local.sgd(loss_fn, optax.sgd(0.3)), rows=40, batch_size=10, epochs=3
    )
    share = np.array([0.7, 0.2, 0.1], np.float32)
    seen = train(jax.random.key(3), share, sent, rows, recipe)
    found = simulated_path.infer_all(
        jax.random.key(1), sent, seen.delta[None], rows, 0.3 * recipe.steps,
        loss_fn=loss_fn, settings=_SETTINGS,
    )  # fmt: skip
    gradients = rules.mean_gradients(loss_fn, sent, rows)
    one_step = rules.class_gradients(seen.delta[None], gradients)
    far, near = (
        0.5 * np.abs(np.asarray(each[0]) - seen.labels).sum()
        for each in (one_step, found)
    )
    assert near < 0.05 and near < far / 2


@pytest.mark.slow
def test_scores_are_those_of_the_whole_covariance():
    rng = np.random.default_rng(0)
    each = rng.normal(size=(2, 4, 7)) + rng.normal(size=(2, 1, 7))
    real = np.array([[1, 1, 1, 1], [1, 1, 1, 0]], bool)
    each = np.where(real[..., None], each, 0)
    scores, mean = simulated_path._scores(*map(jax.numpy.asarray, (each, real)))
    left = [a[r] - a[r].mean(0) for a, r in zip(each, real, strict=True)]
    inner = np.concatenate(left)
    covariance = inner.T @ inner / (len(inner) - 2)
    size = np.trace(covariance) / 7
    shrunk = 0.95 * covariance + 0.05 * size * np.eye(7)
    np.testing.assert_allclose(scores @ shrunk @ scores.T, np.eye(2), atol=1e-3)
    wanted = [a[r].mean(0) for a, r in zip(each, real, strict=True)]
    np.testing.assert_allclose(mean, wanted, rtol=1e-5)


def test_a_client_is_simulated_in_no_more_steps_than_it_takes(monkeypatch):
    asked = []

    def one(loss_fn, settings, key, exchange, rows, scale):
        asked.append((settings.path_steps, float(scale)))
        return np.full(_LABELS, 1 / _LABELS)

    monkeypatch.setattr(simulated_path, "_one", one)
    monkeypatch.setattr(simulated_path, "pool_of", lambda view: None)
    monkeypatch.setattr(simulated_path, "without_messages", lambda view: None)
    for name in ("spread", "messages"):
        monkeypatch.setattr(simulated_path.views, name, lambda *_: {})
    monkeypatch.setattr(simulated_path.others, "of_messages", lambda *_: None)
    view = types.SimpleNamespace(
        transcript=0, messages=types.SimpleNamespace(of=lambda client: types.SimpleNamespace(count=4)),
        training=LocalTraining(learning_rate=0.5, batch_size=2, epochs=1),
        sizes=np.array([4, 6, 40]), clients=np.arange(3), seed=0, mean_loss=None,
    )  # fmt: skip
    simulated_path.run(view, _SETTINGS)
    assert asked == [(2, 1.0), (3, 1.5), (8, 10.0)]

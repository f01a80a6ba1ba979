"""The predictor's shadow clients train as the attacked ones are known to."""

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fljax.attacks.adversary import AdversaryView, LocalTraining, ProxyRows
from fljax.attacks.estimates import NotApplicable
from fljax.attacks.label_distribution import first_message
from fljax.defenses import specs
from fljax.transcript import views
from fljax.types import Transcript

_ROWS = 20
_PROX = {"algorithm": "fed_prox", "proximal": 5.0}


@pytest.fixture
def shadow_messages(digits, monkeypatch):
    """Messages `[4, P]` of shadow clients, of a defense and more that is known."""
    received = []

    def fit(key, sent, pool, program, *, settings, readers):
        received.append(program(key, np.arange(4), np.full((4, 10), 0.1), sent, pool))
        assert settings.num_fit == first_message.Settings().shadow_clients

    monkeypatch.setattr(first_message.attack, "fit", fit)
    for name in ("predict", "predict_posterior"):
        monkeypatch.setattr(
            first_message.attack, name, lambda *_: np.full((1, 10), 0.1)
        )
    seen = Transcript(
        np.ones(1, int),  # round
        np.zeros((1, 1), int),
        jax.tree.map(lambda leaf: leaf[None], digits.sent),
        jax.tree.map(lambda leaf: np.ones((1, 1, *leaf.shape)), digits.sent),
    )

    def make(defense, **training):
        told = {"batch_size": 5, "learning_rate": 0.1, "epochs": 3} | training
        view = AdversaryView(
            transcript=seen, messages=views.client_view(seen, (0,)),
            clients=np.zeros(1, int), known=None, candidates=None, continuous=False,
            loss_fn=digits.loss_fn, apply=None, task="multiclass", outputs=10,
            linear=False, training=LocalTraining(**told), seed=0,
            proxy=ProxyRows(np.asarray(digits.proxy.x.numeric), digits.proxy.y),
            num_rows=np.array([_ROWS]), defense=specs.parse(defense),
        )  # fmt: skip
        found = first_message.run_predictor(view, first_message.Settings())
        return found["predictor"] if not received else np.asarray(received.pop().delta)

    return make


@pytest.mark.slow
def test_a_known_defense_is_simulated(shadow_messages):
    plain, noisy = shadow_messages("none"), shadow_messages("gaussian(deviation=2)")
    assert np.std(noisy - plain) == pytest.approx(2, rel=0.05)
    norms = np.linalg.norm(shadow_messages("norm_clipping(norm=0.1)"), axis=1)
    np.testing.assert_allclose(norms, 0.1, rtol=1e-4)


@pytest.mark.slow
def test_of_a_budget_the_clip_is_simulated(shadow_messages):
    steps, rate, clip = 3 * _ROWS / 5, 0.1, 0.01
    budget = shadow_messages("dp_sgd(clip=0.01, epsilon=8)")
    norms = np.linalg.norm(budget, axis=1)
    assert (norms <= rate * steps * clip * 1.001).all() and (norms > 0).all()


@pytest.mark.slow
def test_the_pull_of_fedprox_is_simulated(shadow_messages):
    far, near = shadow_messages("none"), shadow_messages("none", **_PROX)
    assert np.linalg.norm(near) < 0.7 * np.linalg.norm(far)


@pytest.mark.slow
def test_what_cannot_be_built_is_said(shadow_messages):
    found = shadow_messages("pruning(ratio=0.9) + norm_clipping(norm=1)")
    assert isinstance(found, NotApplicable) and "expected one defense" in found.why


@pytest.mark.slow
def test_the_rate_is_that_of_the_round(shadow_messages):
    doubled = shadow_messages("none", schedule=(1.0, 2.0), learning_rate=0.05)
    np.testing.assert_array_equal(doubled, shadow_messages("none", learning_rate=0.1))


@pytest.mark.slow
def test_momentum_and_weight_decay_are_simulated(shadow_messages, digits):
    one = {"epochs": 1, "batch_size": _ROWS // 2}  # two steps
    plain = shadow_messages("none", **one)
    # The first of two gradients counts 1 + momentum times.
    heavy = shadow_messages("none", **one, momentum=0.9)
    ratio = np.linalg.norm(heavy) / np.linalg.norm(plain)
    assert ratio == pytest.approx(1.45, abs=0.1)
    weights = ravel_pytree(digits.sent)[0]
    decayed = shadow_messages("none", **one, weight_decay=0.01)
    np.testing.assert_allclose(
        (decayed - plain).mean(axis=0), 0.1 * 0.01 * 2 * weights, atol=2e-5
    )


@pytest.mark.slow
def test_the_decay_of_adamw_is_apart_from_its_gradient(shadow_messages, digits):
    told = {"epochs": 1, "batch_size": _ROWS // 2, "learning_rate": 1e-3}
    adamw = shadow_messages("none", **told, optimiser="adamw", weight_decay=0.1)
    decay = adamw - shadow_messages("none", **told, optimiser="adam")
    weights = ravel_pytree(digits.sent)[0]
    np.testing.assert_allclose(decay.mean(axis=0), 1e-3 * 0.1 * 2 * weights, atol=1e-5)

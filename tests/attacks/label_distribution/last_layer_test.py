"""Labels read off the last layer, of a client that has gone a long way."""

import jax
import numpy as np
import pytest

from fljax import losses, models
from fljax.attacks import attribute
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.attacks.label_distribution import last_layer
from fljax.transcript import views
from fljax.types import Features, Transcript

_ROWS, _LABELS, _STEPS, _RATE = 60, 3, 20, 0.1
_MODEL = models.mlp(3, hidden=(), outputs=_LABELS)
_LOSS = losses.example_loss(_MODEL.apply, losses.cross_entropy)


@pytest.fixture(scope="module")
def client():
    """A view of one client that takes full steps of SGD, and its label distribution."""
    draws = np.random.default_rng(0)
    y = draws.choice(_LABELS, _ROWS, p=[0.6, 0.3, 0.1]).astype(np.int32)
    x = np.float32(draws.normal(size=(_ROWS, 3)) + 2 * np.eye(3)[y])
    x[:, 2] = x[:, 2] > 1
    rows = Features(x, np.zeros((_ROWS, 0), np.int32))
    sent = _MODEL.init(jax.random.key(0))

    def loss(params):
        return jax.vmap(lambda x, y: _LOSS(params, x, y))(rows, y).mean()

    returned = sent
    for _ in range(_STEPS):
        slope = jax.grad(loss)(returned)
        returned = jax.tree.map(lambda leaf, g: leaf - _RATE * g, returned, slope)
    delta = jax.tree.map(lambda one, other: (one - other)[None, None], sent, returned)
    seen = Transcript(
        np.zeros(1, int),
        np.zeros((1, 1), int),
        jax.tree.map(lambda leaf: leaf[None], sent),
        delta,
    )
    one = jax.tree.map(lambda leaf: leaf[None], (rows, y))
    view = AdversaryView(
        transcript=seen, messages=views.client_view(seen, (0,)),
        clients=np.zeros(1, int),
        known=attribute.conceal(*one, np.ones((1, _ROWS), bool), width=1),
        candidates=np.array([[0.0], [1.0]], np.float32), continuous=False,
        loss_fn=_LOSS, apply=_MODEL.apply, task="multiclass", outputs=_LABELS,
        linear=True, training=LocalTraining(0, _RATE, epochs=_STEPS), seed=0,
    )  # fmt: skip
    return view, np.bincount(y, minlength=_LABELS) / _ROWS


@pytest.mark.slow
def test_the_softmax_of_many_steps_is_that_halfway(client):
    view, true = client
    found = last_layer.run(view, None)["last_layer"]
    assert 0.5 * np.abs(found.value[0] - true).sum() < 0.03
    np.testing.assert_allclose(found.baseline, np.full((1, _LABELS), 1 / _LABELS))


def test_of_a_number_the_ends_are_not_what_rows_have(client):
    view, true = client
    far = view._replace(candidates=np.array([[-30.0], [31.0]], np.float32))
    number = last_layer.run(far._replace(continuous=True), None)["last_layer"].value[0]
    ends = last_layer.run(far, None)["last_layer"].value[0]
    assert 0.5 * np.abs(number - true).sum() < 0.03 < 0.5 * np.abs(ends - true).sum()

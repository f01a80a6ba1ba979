"""Components and closed forms of a message, weighed together."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks import label_distribution
from fljax.attacks.label_distribution import fusion, pca, predictor, rules

_LABELS, _SIZE = 4, 60
_BIAS = np.arange(_SIZE - _LABELS, _SIZE)


def _messages(count, noise, seed):
    """Bent a little in the labels; the bias says them exactly, but for noise."""
    rng = np.random.default_rng(seed)
    labels = rng.dirichlet([0.5] * _LABELS, count).astype(np.float32)
    straight, bent = np.random.default_rng(0).normal(size=(2, _LABELS, _SIZE))
    messages = labels @ straight + 0.2 * labels**2 @ bent
    messages[:, _BIAS] = 0.25 - labels
    messages += noise * rng.normal(size=messages.shape)
    gradients = (straight + 0.2 * bent).astype(np.float32)
    gradients[:, _BIAS] = 0.25 - np.eye(_LABELS)
    return messages.astype(np.float32), labels, gradients


def _fused(noise, bias=_BIAS):
    messages, labels, gradients = _messages(800, noise, seed=1)
    basis = pca.fit(messages, 3)
    readers = fusion.Readers(gradients, bias)
    learned = fusion.fit(fusion.read(basis, readers, messages), labels)
    unseen, truth, _ = _messages(300, noise, seed=2)
    guess = fusion.predict(learned, fusion.read(basis, readers, unseen))
    closed = {
        "gradients": rules.class_gradients(unseen, gradients),
        "bias": rules.last_layer(unseen[:, _BIAS], gradients[:, _BIAS], 1.0),
    }
    distances = {name: _distance(each, truth) for name, each in closed.items()}
    return guess, _distance(guess, truth), distances


def _distance(guess, truth):
    return float(0.5 * np.abs(np.asarray(guess) - truth).sum(1).mean())


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.003, 0.05, 0.3])
def test_it_is_nearer_than_either_closed_form_at_any_noise(noise):
    _, distance, closed = _fused(noise)
    assert distance < 0.9 * min(closed.values())


@pytest.mark.slow
def test_without_noise_the_bias_is_found_to_say_everything():
    guess, distance, _ = _fused(0.0)
    assert distance < 1e-4
    np.testing.assert_allclose(guess.sum(1), 1, rtol=1e-5)


def test_a_model_without_bias_is_read_without():
    guess, distance, closed = _fused(0.05, bias=np.zeros(0, np.int32))
    assert guess.shape == (300, _LABELS)
    assert distance < 0.9 * closed["gradients"]


def test_a_number_that_never_varies_is_ignored():
    numbers = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    labels = np.abs(numbers[:, :2]) / np.abs(numbers[:, :2]).sum(1, keepdims=True)
    with_constant = np.concatenate([numbers, np.ones((50, 1), np.float32)], axis=1)
    for more in (0.0, 7.0):
        moved = with_constant + np.array([[0, 0, 0, more]], np.float32)
        guess = fusion.predict(fusion.fit(with_constant, labels), moved)
        alone = fusion.predict(fusion.fit(numbers, labels), numbers)
        np.testing.assert_allclose(guess, alone, atol=1e-5)


@pytest.mark.slow
def test_an_attack_without_readers_says_so():
    basis = pca.fit(_messages(20, 0.1, seed=3)[0], 2)
    params = predictor.fit(
        jax.random.key(0),
        jnp.zeros((20, 2)),
        jnp.full((20, _LABELS), 0.25),
        predictor.Settings(hidden=(4,), epochs=1),
    )
    attack = label_distribution.Attack(basis, params, jnp.full(_LABELS, 0.25))
    with pytest.raises(ValueError, match="prepared with readers"):
        label_distribution.predict_fused(attack, jnp.zeros((1, _SIZE)))

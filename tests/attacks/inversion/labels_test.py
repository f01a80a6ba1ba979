"""Labels are read off the last layer of a message, or weighed in the loss."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import losses, models
from fljax.attacks.inversion import labels


@pytest.mark.parametrize("use_bias", [True, False], ids=["bias", "kernel"])
def test_the_label_of_one_example_is_read_off_the_last_layer(images, use_bias):
    model = models.cnn(
        images.shape, images.classes, channels=(4, 8), padding=1, use_bias=use_bias
    )
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    x, y = images(images.classes)
    params = model.init(jax.random.key(0))
    grads = jax.jit(jax.vmap(jax.grad(loss_fn), (None, 0, 0)))(params, x, y)
    for index, label in enumerate(y):
        observed = jax.tree.map(operator.itemgetter(index), grads)
        assert labels.infer(labels.last_layer(observed), 1) == label


def test_repeated_labels_of_a_batch_are_counted():
    drawn = np.array([2, 0, 2, 2])
    bias = 1 / 6 - np.bincount(drawn, minlength=6) / len(drawn)
    found = labels.infer({"bias": jnp.asarray(0.01 * bias)}, len(drawn))
    np.testing.assert_array_equal(found, [0, 2, 2, 2])


def test_the_expected_loss_of_a_certain_label_is_its_loss(victim, images):
    params, loss_fn, _ = victim
    x, _ = images(1)
    loss = labels.expected(loss_fn, images.classes)(
        params, x[0], jnp.eye(images.classes)[2]
    )
    assert loss == pytest.approx(float(loss_fn(params, x[0], 2)), rel=1e-6)


def test_a_message_without_a_known_last_layer_is_refused():
    with pytest.raises(ValueError, match="Dense_<number>"):
        labels.last_layer({"layer": {"kernel": jnp.zeros((2, 2))}})

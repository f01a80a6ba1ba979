"""Rules that need no training: the last layer's and the class gradients'."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from fljax import local, losses, models
from fljax.attacks.label_distribution import rules, shadow_clients
from fljax.types import Features


def test_the_last_layer_rule_is_exact_for_a_full_batch_step_from_zero_weights(
    train, rate
):
    model = models.linear(6, outputs=4)
    sent = jax.tree.map(jnp.zeros_like, model.init(jax.random.key(0)))
    rng = np.random.default_rng(0)
    x = Features(
        rng.normal(size=(40, 6)).astype(np.float32), np.zeros((40, 0), np.int32)
    )
    made = shadow_clients.pool(x, np.arange(40) % 4, 4)
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    recipe = shadow_clients.Recipe(
        lambda _: local.sgd(loss_fn, optax.sgd(rate)), rows=50, batch_size=50
    )
    share = jnp.array([0.6, 0.3, 0.1, 0.0])
    found = train(jax.random.key(3), share, sent, made, recipe)
    assert found.labels[0] > found.labels[2]
    bias = rules.span(sent, "TabularDense_0", "bias")
    gradients = rules.mean_gradients(loss_fn, sent, made)
    guess = rules.last_layer(
        found.delta[None, bias], gradients[:, bias], rate * recipe.steps
    )
    np.testing.assert_allclose(guess[0], found.labels, atol=1e-5)


@pytest.mark.slow
def test_class_gradients_are_exact_where_a_label_has_one_row_whatever_the_scale(
    digits, recipe, train, one_row_each
):
    gradients = rules.mean_gradients(digits.loss_fn, digits.sent, one_row_each)
    shares, _ = shadow_clients.dirichlet(jax.random.key(5), (0.1, 1.0), 2, 10)
    told = digits.sent, one_row_each, recipe(40, 40, 1), jnp.float32(0)
    found = train(jax.random.key(0), shares[1], *told)
    for scale in (1.0, 1e-3):
        guess = rules.class_gradients(scale * found.delta[None], gradients)[0]
        np.testing.assert_allclose(guess, found.labels, atol=1e-3)


def test_a_place_in_a_message_is_found_by_name(digits):
    sent = digits.sent
    place = rules.span(sent, "Dense_0", "bias")
    np.testing.assert_array_equal(ravel_pytree(sent)[0][place], sent["Dense_0"]["bias"])
    with pytest.raises(ValueError, match="Dense_9/bias"):
        rules.span(sent, "Dense_9", "bias")


def test_what_is_no_distribution_becomes_one():
    found = rules.to_simplex(jnp.array([[2.0, -1, 2], [-1, -1, -1], [jnp.nan, 1, 0]]))
    third = 1 / 3
    expected = [[0.5, 0, 0.5], [third, third, third], [0, 1, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)

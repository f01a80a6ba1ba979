"""What a search compares: simulated messages, distances and priors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import losses
from fljax.attacks.inversion import objectives, points


@pytest.mark.slow
def test_an_update_is_what_the_steps_make(sigmoid_net, images):
    model = sigmoid_net((5, 12, images.classes))
    params = model.init(jax.random.key(0))
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    x, y = jnp.linspace(0, 1, 20).reshape(4, 5), jnp.arange(4)
    gradient, returned = points.gradient_of(loss_fn), params
    for batch in (slice(0, 2), slice(2, 4), slice(0, 2)):
        slope = gradient(returned, x[batch], y[batch])
        returned = jax.tree.map(lambda p, g: p - 0.1 * g, returned, slope)
    found = points.steps_of(gradient, 0.1, 3, 2)(params, x, y)
    expected = jax.tree.map(jnp.subtract, params, returned)
    for ours, theirs in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_what_was_pruned_can_be_left_out():
    observed = {"a": jnp.array([0.0, 2.0]), "b": jnp.array([0.0])}
    simulate = points.where_sent(
        lambda params, x, y: {"a": jnp.array([5.0, 3.0]), "b": jnp.ones(1)}, observed
    )
    found = simulate(None, None, None)
    np.testing.assert_array_equal(found["a"], [0.0, 3.0])
    np.testing.assert_array_equal(found["b"], [0.0])


@pytest.mark.parametrize("silent", ["simulated", "observed"])
def test_the_cosine_of_a_vanished_gradient_is_finite(silent):
    some = {"a": jnp.array([3.0, 4.0])}
    zero = {"a": jnp.zeros(2)}
    pair = (zero, some) if silent == "simulated" else (some, zero)
    value, slope = jax.value_and_grad(objectives.cosine_distance)(*pair)
    assert value == pytest.approx(1.0)
    assert np.isfinite(slope["a"]).all()
    assert objectives.cosine_distance(some, {"a": 2 * some["a"]}) == pytest.approx(0)


def test_total_variation_is_the_mean_step_between_neighbours():
    x = jnp.array([[0.0, 1.0], [3.0, 1.0]]).reshape(1, 2, 2, 1)
    steps = (3 + 0) / 2 + (1 + 2) / 2
    assert objectives.total_variation(0.5)(x) == pytest.approx(0.5 * steps)


def test_opposite_gradients_are_further_apart_than_unrelated_ones():
    one, other = {"w": jnp.array([1.0, 0.0])}, {"w": jnp.array([0.0, 2.0])}
    back = {"w": -3 * one["w"]}
    found = [
        float(objectives.cosine_distance(one, each)) for each in (one, other, back)
    ]
    assert found == pytest.approx([0, 1, 2], abs=1e-6)

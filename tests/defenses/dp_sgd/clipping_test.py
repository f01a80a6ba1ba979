"""What one example can change: per-example clipping, and rows that are padding."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import losses, models
from fljax.types import Batch, Features


def test_an_example_is_clipped_to_the_norm_over_all_parameters(linear):
    # Norms 5 (over both arrays) and 0.5: the first shrinks to 1, the second stays.
    found = linear.clipped_sum([[3, 0, 0, 4], [0, 0.3, 0.4, 0]])
    np.testing.assert_allclose(found, [0.6, 0.3, 0.4, 0.8], rtol=1e-6)


def test_one_record_changes_the_sum_by_the_stated_sensitivity_at_most(linear):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 4)) * np.exp(rng.normal(0, 3, (50, 1)))
    sensitivity = linear.defense(clip=0.7).noise[0].sensitivity
    gradient = jax.jit(linear.defense(clip=0.7).gradient)

    def summed(mask):
        batch = linear.batch(rows, mask)
        grads, _ = gradient(jax.random.key(0), linear.params, batch)
        return np.concatenate([grads["a"], grads["b"]])

    whole = summed(np.ones(50, bool))
    changes = [
        np.linalg.norm(whole - summed(np.arange(50) != left_out))
        for left_out in range(50)
    ]
    norms = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(changes, np.minimum(norms, 0.7), atol=1e-5)
    # A bound that nobody reaches would overstate the noise.
    assert max(changes) == pytest.approx(sensitivity, rel=1e-4)


@pytest.mark.slow
def test_clipping_agrees_with_that_of_optax(linear):
    model = models.mlp(4, hidden=(8,))
    loss_fn = losses.example_loss(
        lambda params, x: model.apply(params, _features(x)), losses.squared
    )
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.normal(size=(16, 4)), jnp.float32)
    y = jnp.asarray(3 * rng.normal(size=16), jnp.float32)
    params = model.init(jax.random.key(2))
    each = jax.vmap(jax.grad(loss_fn), (None, 0, 0))(params, x, y)
    transform = optax.contrib.differentially_private_aggregate(0.8, 0.0, 0)
    expected, _ = transform.update(each, transform.init(params))
    defense = linear.defense(loss_fn, clip=0.8, batch_size=np.array([16.0, 1.0]))
    batch = Batch(x, y, jnp.ones(16, bool), jnp.int32(0))
    found, loss = defense.gradient(jax.random.key(0), params, batch)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), found, expected
    )
    np.testing.assert_allclose(
        loss, losses.batch_loss(loss_fn, params, batch), rtol=1e-6
    )


def _features(x):
    return Features(x, jnp.zeros(0, jnp.int32))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30], ids=["nan", "inf", "overflow"])
def test_an_example_without_a_finite_norm_counts_as_zero(linear, bad):
    found = linear.clipped_sum([[bad, 0, 0, 1], [0, 0.3, 0.4, 0]])
    np.testing.assert_allclose(found, [0, 0.3, 0.4, 0], rtol=1e-6)


def test_padding_contributes_exactly_zero_whatever_it_holds(linear):
    rows = [[0.1, 0.2, 0.3, 0.4], [np.nan, np.inf, 7, 7]]
    found = linear.clipped_sum(rows, [True, False])
    np.testing.assert_array_equal(found, linear.clipped_sum(rows[:1]))


def test_padding_contributes_zero_where_the_loss_of_zeros_has_a_gradient(linear):
    def loss_fn(params, x, y):
        return jnp.sum(jnp.square(params["a"] + 1)) + linear.loss(params, x, y)

    def total(rows, mask):
        return linear.clipped_sum(rows, mask, loss_fn=loss_fn, clip=1e6)

    rows = np.ones((3, 4))
    np.testing.assert_array_equal(
        total(rows, [True, False, False]), total(rows[:1], [True])
    )


def test_the_reported_loss_is_the_mean_of_the_batch(linear):
    def loss_fn(params, x, y):
        return linear.loss(params, x, y) + x[0]

    batch = linear.batch(
        [[1, 0, 0, 0], [3, 0, 0, 0], [9, 0, 0, 0]], [True, True, False]
    )
    _, loss = linear.defense(loss_fn).gradient(jax.random.key(0), linear.params, batch)
    assert loss == 2.0

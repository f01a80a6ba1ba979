"""Losses by hand, and masks that let nothing through."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import losses
from fljax.types import Batch


def test_the_squared_loss_has_no_factor_one_half():
    assert losses.squared(jnp.array(3.0), jnp.array(1.0)) == 4.0
    assert jax.grad(losses.squared)(3.0, 1.0) == 4.0


@pytest.mark.parametrize("target", [0.0, 1.0])
@pytest.mark.parametrize("logit", [-3.0, 0.0, 2.0, 60.0, -60.0])
def test_the_logistic_loss_is_the_binary_cross_entropy(logit, target):
    sign = 2 * target - 1
    expected = np.logaddexp(0, -sign * logit)
    assert losses.logistic(jnp.array(logit), jnp.array(target)) == pytest.approx(
        expected, rel=1e-5
    )


def test_the_cross_entropy_is_minus_the_log_probability_of_the_class():
    logits = np.array([1.0, 2.0, -1.0])
    expected = -np.log(np.exp(logits[2]) / np.exp(logits).sum())
    found = losses.cross_entropy(jnp.asarray(logits, jnp.float32), jnp.array(2))
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("target", [-1, 3])
def test_the_cross_entropy_of_a_class_that_is_none_is_no_number(target):
    assert jnp.isnan(losses.cross_entropy(jnp.arange(3.0), jnp.array(target)))


def test_the_cross_entropy_is_of_integers():
    with pytest.raises(
        ValueError, match="target: expected an integer class, got float"
    ):
        losses.cross_entropy(jnp.arange(3.0), jnp.array(1.0))


def test_example_loss_joins_a_model_and_an_element_loss():
    loss_fn = losses.example_loss(lambda params, x: params * x, losses.squared)
    assert loss_fn(jnp.array(2.0), jnp.array(3.0), jnp.array(1.0)) == 25.0


def test_the_masked_mean_counts_real_rows_only():
    values = jnp.array([1.0, 2.0, jnp.nan])
    assert losses.masked_mean(values, jnp.array([True, True, False])) == 1.5


def test_the_masked_mean_of_nothing_is_zero():
    assert losses.masked_mean(jnp.array([jnp.inf]), jnp.array([False])) == 0.0


def _loss(params, x, y):
    return jnp.square(params * x - y)


def test_the_batch_loss_is_the_mean_over_real_rows():
    batch = Batch(jnp.array([1.0, 2.0, 7.0]), jnp.zeros(3), jnp.array([1, 1, 0]) > 0)
    assert losses.batch_loss(_loss, jnp.array(2.0), batch) == (4 + 16) / 2
    assert jax.grad(losses.batch_loss, 1)(_loss, jnp.array(2.0), batch) == (4 + 16) / 2


def test_the_gradient_of_an_empty_batch_is_zero():
    batch = Batch(jnp.ones(2), jnp.zeros(2), jnp.array([False, False]))
    assert jax.grad(losses.batch_loss, 1)(_loss, jnp.array(2.0), batch) == 0.0


def test_non_finite_padding_does_not_leak_into_the_batch_loss():
    batch = Batch(
        jnp.array([1.0, jnp.nan]), jnp.array([0.0, 0.0]), jnp.array([True, False])
    )
    assert losses.batch_loss(_loss, jnp.array(2.0), batch) == 4.0


def test_non_finite_padding_does_not_leak_into_the_gradient():
    batch = Batch(
        jnp.array([1.0, jnp.nan]), jnp.array([0.0, 0.0]), jnp.array([True, False])
    )
    assert jax.grad(losses.batch_loss, 1)(_loss, jnp.array(2.0), batch) == 4.0


def test_whose_rows_a_batch_holds_does_not_matter_to_its_loss():
    batch = Batch(jnp.array([1.0, 2.0]), jnp.zeros(2), jnp.ones(2, bool))
    assert batch.client is None
    mine = batch._replace(client=jnp.int32(3))
    found, expected = (
        losses.batch_loss(_loss, jnp.array(2.0), b) for b in (mine, batch)
    )
    assert found == expected == (4 + 16) / 2


def test_masked_rows_are_zeros_in_every_leaf():
    tree = {"x": jnp.array([[1.0, 2.0], [jnp.nan, jnp.inf]]), "y": jnp.array([3, 4])}
    found = losses.masked_rows(jnp.array([True, False]), tree)
    np.testing.assert_array_equal(found["x"], [[1, 2], [0, 0]])
    np.testing.assert_array_equal(found["y"], [3, 0])


def test_an_output_of_one_number_in_a_row_is_refused():
    wide = losses.example_loss(lambda params, x: x[:1] * params, losses.squared)
    with pytest.raises(
        ValueError, match=r"loss \[\] of one example, got \[1\] of an out"
    ):
        wide(jnp.ones(()), jnp.ones(3), jnp.ones(()))
    batch = Batch(jnp.ones((2, 3)), jnp.ones(2), jnp.ones(2, bool))
    with pytest.raises(ValueError, match=r"got \[3\]"):
        losses.batch_loss(lambda params, x, y: x - y, jnp.ones(()), batch)


def test_a_loss_is_made_of_functions():
    with pytest.raises(TypeError, match="element_loss: expected a function, got 'mse'"):
        losses.example_loss(lambda params, x: x, "mse")
    with pytest.raises(TypeError, match="apply_fn: expected a function, got None"):
        losses.example_loss(None, losses.squared)

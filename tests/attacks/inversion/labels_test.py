"""Labels are read off the last layer of a message, or weighed in the loss."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import losses, models
from fljax.attacks.inversion import labels, points, presets, solvers
from fljax.attacks.inversion.engine import Budget
from fljax.defenses import clipping


@pytest.fixture(scope="module")
def lenet(images):
    """A model that prefers a class, its params, and what a client of it sends."""
    model = models.lenet(images.shape, images.classes)
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    params = jax.jit(model.init)(jax.random.key(0))
    return model, params, jax.jit(points.gradient_of(loss_fn))


@pytest.mark.parametrize("use_bias", [True, False], ids=["bias", "kernel"])
def test_the_label_of_one_example_is_read_off_the_last_layer(images, use_bias):
    model = models.cnn(
        images.shape, images.classes, channels=(4, 8), padding=1, use_bias=use_bias
    )
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    x, y = images(images.classes)
    params = jax.jit(model.init)(jax.random.key(0))
    grads = jax.jit(jax.vmap(jax.grad(loss_fn), (None, 0, 0)))(params, x, y)
    for index, label in enumerate(y):
        observed = jax.tree.map(operator.itemgetter(index), grads)
        assert labels.infer(labels.last_layer(observed), 1) == label


def test_repeated_labels_of_a_batch_are_counted():
    drawn = np.array([2, 0, 2, 2])
    bias = 1 / 6 - np.bincount(drawn, minlength=6) / len(drawn)
    found = labels.infer({"bias": jnp.asarray(0.01 * bias)}, len(drawn))
    np.testing.assert_array_equal(found, [0, 2, 2, 2])


@pytest.mark.slow
@pytest.mark.parametrize("clip", [np.inf, 0.01])
def test_labels_of_a_model_that_prefers_a_class_are_told_by_its_probabilities(
    images, lenet, clip
):
    model, params, sends = lenet

    def clipped(params, x, y):
        return clipping.clipped(sends(params, x, y), clipping.per_layer(clip))

    x, y = images(4)
    told = labels.probabilities(clipped, params, x.shape)
    actual = jax.nn.softmax(model.apply(params, jnp.full(images.shape, 0.5)))
    np.testing.assert_allclose(told, actual, atol=1e-4)
    assert told.max() > 2 / images.classes
    infer = jax.jit(labels.infer, static_argnums=1)
    rng = np.random.default_rng(0)
    right = {"equal": 0, "probed": 0, "kernel": 0}
    for _ in range(20):
        y = np.sort(rng.integers(images.classes, size=4)).astype(np.int32)
        observed = labels.last_layer(clipped(params, x, y))
        kernel = {"kernel": observed["kernel"]}
        right["equal"] += np.array_equal(infer(observed, 4), y)
        right["probed"] += np.array_equal(infer(observed, 4, told), y)
        right["kernel"] += np.array_equal(infer(kernel, 4, told), y)
    assert right["probed"] == 20 > right["equal"]
    assert right["kernel"] == 20


@pytest.mark.slow
def test_an_attack_probes_for_the_labels_of_a_batch(victim, images):
    params, _, sends = victim
    x, y = images(4)[0], np.array([1, 1, 2, 3], np.int32)
    found = {}
    for probe in (None, sends):
        solver = solvers.lbfgs(inner_iterations=1, memory=1)
        attack = presets.cpl(
            sends, x.shape, probe=probe, solver=solver, budget=Budget(1)
        )
        found[probe] = jax.jit(attack)(jax.random.key(1), params, sends(params, x, y)).y
    np.testing.assert_array_equal(found[sends], y)
    assert not np.array_equal(found[None], y)


@pytest.mark.slow
def test_probabilities_that_do_not_add_up_are_not_believed(images, lenet):
    _, params, sends = lenet
    zeroed = jax.tree.map(jnp.ones_like, params)
    bias = zeroed["Dense_0"]["bias"].at[1].set(0)
    zeroed = {**zeroed, "Dense_0": {**zeroed["Dense_0"], "bias": bias}}
    masked = points.where_sent(sends, zeroed)
    found = labels.probabilities(masked, params, (4, *images.shape))
    np.testing.assert_allclose(found, 1 / images.classes)


def test_nothing_is_told_of_the_probabilities_of_two_classes():
    def sends(params, x, y):
        return {"Dense_0": {"bias": jnp.array([-0.5, 0.5]) * (1 - 2 * y[0])}}

    np.testing.assert_array_equal(labels.probabilities(sends, {}, (1, 2)), [0.5, 0.5])


@pytest.mark.slow
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

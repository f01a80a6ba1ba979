"""The image models against a plain forward pass and their published sizes."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import models

SIZES = {
    "cnn mnist": (models.cnn((28, 28, 1), 10), 34_720),
    "cnn cifar10": (models.cnn((32, 32, 3), 10), 42_336),
    "cnn lfw": (models.cnn((32, 32, 3), 62), 162_144),
    "cnn digits": (models.cnn((8, 8, 1), 10, padding=1), 21_280),
    "cnn biased": (models.cnn((28, 28, 1), 10, use_bias=True), 34_720 + 106),
    # 912 or 312 for the first layer, three times 3612, and 768 x 62 or 588 x 10.
    "lenet mnist": (models.lenet((28, 28, 1), 10), 312 + 3 * 3612 + 5890),
    "lenet lfw": (models.lenet((32, 32, 3), 62), 912 + 3 * 3612 + 47_678),
    "lenet digits": (models.lenet((8, 8, 1), 10), 312 + 3 * 3612 + 490),
}


def _draw(model):
    """Parameters of the model's shapes from N(0, 1/16), without compiling its init."""
    rng = np.random.default_rng(0)
    return jax.tree.map(
        lambda leaf: rng.normal(0, 0.25, leaf.shape).astype(leaf.dtype),
        jax.eval_shape(model.init, jax.random.key(0)),
    )


def _image(*shape):
    return np.random.default_rng(1).random(shape).astype(np.float32)


def _conv(layer, x, stride=1, padding="VALID"):
    out = jax.lax.conv_general_dilated(
        x[None],
        layer["kernel"],
        (stride, stride),
        padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )[0]
    return out + jnp.broadcast_to(layer.get("bias", jnp.zeros((1,))), out.shape)


@pytest.mark.parametrize(("model", "count"), SIZES.values(), ids=SIZES)
def test_the_networks_have_their_number_of_parameters(model, count):
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == count


def test_the_cnn_is_conv_relu_pool_twice_and_a_dense_layer():
    model = models.cnn((12, 11, 2), 5)

    @jax.jit
    def both(params, x):
        hidden = x
        for name in ("PatchConv_0", "PatchConv_1"):
            hidden = models.max_pool(jax.nn.relu(_conv(params[name], hidden)))
        expected = hidden.reshape(-1) @ params["Dense_0"]["kernel"]
        return model.apply(params, x), expected

    found, expected = both(_draw(model), _image(12, 11, 2))
    assert expected.shape == (5,)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_lenet_is_four_sigmoid_convolutions_and_a_dense_layer():
    model = models.lenet((9, 8, 3), 4)

    @jax.jit
    def both(params, x):
        hidden = x
        for i, stride in enumerate((2, 2, 1, 1)):
            layer = params[f"PatchConv_{i}"]
            hidden = jax.nn.sigmoid(_conv(layer, hidden, stride, [(2, 2), (2, 2)]))
        dense = params["Dense_0"]
        expected = hidden.reshape(-1) @ dense["kernel"] + dense["bias"]
        return model.apply(params, x), expected

    found, expected = both(_draw(model), _image(9, 8, 3))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_cnn_starts_glorot_uniform_as_keras_counts_fans():
    model = models.cnn((10, 10, 3), 90, channels=(16, 20))
    params = jax.jit(model.init)(jax.random.key(0))
    fans = {"PatchConv_0": 9 * 19, "PatchConv_1": 9 * 36, "Dense_0": 20 + 90}
    for name, fan in fans.items():
        largest = np.abs(params[name]["kernel"]).max()
        assert 0.95 * np.sqrt(6 / fan) < largest <= np.sqrt(6 / fan)


def test_the_lenet_starts_within_a_half_biases_included():
    model = models.lenet((10, 10, 1), 30, strides=(2,))
    params = jax.jit(model.init)(jax.random.key(0))
    for layer in params.values():
        assert 0.45 < np.abs(layer["kernel"]).max() <= 0.5
        assert 0.2 < np.abs(layer["bias"]).max() <= 0.5


SMALL = {
    "cnn": models.cnn((10, 10, 1), 3, channels=(2, 3)),
    "lenet": models.lenet((10, 10, 1), 3, channels=2, strides=(2, 1)),
}


@pytest.mark.parametrize("model", SMALL.values(), ids=SMALL)
def test_per_example_gradients_sum_to_that_of_the_batch(model):
    params, x = _draw(model), _image(4, 10, 10, 1)

    def loss(params, image):
        return jnp.sum(jnp.square(model.apply(params, image)))

    def total(params):
        return jnp.sum(jax.vmap(loss, (None, 0))(params, x))

    @jax.jit
    def both(params):
        return jax.vmap(jax.grad(loss), (None, 0))(params, x), jax.grad(total)(params)

    each, whole = jax.device_get(both(params))
    jax.tree.map(
        lambda one, all_: np.testing.assert_allclose(one.sum(0), all_, 1e-4, 1e-4),
        each, whole,
    )  # fmt: skip


@pytest.mark.parametrize("model", SMALL.values(), ids=SMALL)
def test_the_networks_can_be_differentiated_twice(model):
    params, x = _draw(model), _image(10, 10, 1)

    def distance(x):
        grads = jax.grad(lambda p: model.apply(p, x)[0])(params)
        return sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(grads))

    measured = jax.jit(jax.value_and_grad(distance))
    step = np.zeros(x.shape, np.float32)
    step[3, 4, 0] = 1e-2
    (_, found), (above, _), (below, _) = map(measured, (x, x + step, x - step))
    slope = (above - below) / 2e-2
    assert abs(slope) > 1e-3
    np.testing.assert_allclose(found[3, 4, 0], slope, rtol=2e-2)


def test_models_vmap_over_parameters():
    model = SMALL["cnn"]
    one, other = (_draw(model) for _ in range(2))
    other = jax.tree.map(operator.neg, other)
    stack = jax.tree.map(lambda a, b: np.stack([a, b]), one, other)
    x = _image(10, 10, 1)
    found = jax.jit(jax.vmap(model.apply, (0, None)))(stack, x)
    alone = jax.jit(model.apply)
    expected = np.stack([alone(p, x) for p in (one, other)])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_an_image_too_small_for_the_cnn_is_named():
    with pytest.raises(ValueError, match="at least 2 x 2 .* got 1 x 1"):
        models.cnn((8, 8, 1), 10).init(jax.random.key(0))

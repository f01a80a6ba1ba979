"""Patches and a product against lax.conv, and pooling against reduce_window."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.models import PatchConv, extract_patches, max_pool

_RNG = np.random.default_rng(0)
LAYERS = {
    "3x3 valid": PatchConv(4, (3, 3), use_bias=False),
    "5x5 strided": PatchConv(4, (5, 5), strides=(2, 2), padding=((2, 2), (2, 2))),
    "uneven": PatchConv(4, (2, 3), strides=(3, 2), padding=((0, 1), (2, 0))),
    "1x1": PatchConv(4, (1, 1)),
    "all of it": PatchConv(4, (9, 7)),
}


def _normal(*shape):
    return _RNG.normal(size=shape).astype(np.float32)


def _setting(layer, *lead):
    x = _normal(*lead, 9, 7, 3)
    shapes = jax.eval_shape(layer.init, jax.random.key(0), x)["params"]
    return x, jax.tree.map(lambda leaf: _normal(*leaf.shape), shapes)


def _reference(layer, params, x):
    out = jax.lax.conv_general_dilated(
        x,
        params["kernel"],
        layer.strides,
        layer.padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    bias = params.get("bias", jnp.zeros((layer.features,)))
    return out + jnp.broadcast_to(bias, out.shape)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_the_layer_equals_lax_conv_in_value_and_gradient(layer):
    x, params = _setting(layer, 2)

    def ours(params, x):
        return layer.apply({"params": params}, x)

    def theirs(params, x):
        return _reference(layer, params, x)

    weights = _normal(*jax.eval_shape(theirs, params, x).shape)

    @jax.jit
    def both(params, x):
        pulled = (jax.vjp(fun, params, x) for fun in (ours, theirs))
        return [(out, pull(weights)) for out, pull in pulled]

    (out, grads), (reference, expected) = both(params, x)
    np.testing.assert_allclose(out, reference, atol=1e-5)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-5),
        grads, expected,
    )  # fmt: skip


def test_one_image_equals_itself_in_a_batch():
    layer = LAYERS["5x5 strided"]
    x, params = _setting(layer, 2)
    apply = jax.jit(layer.apply)
    batch = apply({"params": params}, x)
    np.testing.assert_allclose(apply({"params": params}, x[1]), batch[1], 1e-5)


def test_patches_and_the_gradient_of_the_output_give_that_of_the_kernel():
    layer = LAYERS["uneven"]
    x, params = _setting(layer)

    def apply(params):
        return layer.apply({"params": params}, x)

    cotangent = _normal(*jax.eval_shape(apply, params).shape)

    @jax.jit
    def both(params):
        _, pull = jax.vjp(apply, params)
        return layer.patches(x), pull(cotangent)[0]["kernel"]

    patches, expected = jax.device_get(both(params))
    product = np.einsum("hwi,hwo->io", patches, cotangent)
    np.testing.assert_allclose(product.reshape(expected.shape), expected, atol=1e-5)


def test_patches_have_the_order_of_the_kernel():
    x = jnp.arange(3 * 3 * 2, dtype=jnp.float32).reshape(3, 3, 2)
    patches = extract_patches(x, (2, 2), (1, 1), ((0, 0), (0, 0)))
    assert patches.shape == (2, 2, 8)
    np.testing.assert_array_equal(patches[0, 1], x[0:2, 1:3].ravel())


@pytest.mark.parametrize("shape", [(4, 6, 2), (5, 7, 2), (3, 2, 2, 1)], ids=str)
def test_pooling_takes_the_maximum_and_leaves_out_the_rest(shape):
    x = _normal(*shape)
    window = (*[1] * (len(shape) - 3), 2, 2, 1)
    expected = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
    np.testing.assert_array_equal(max_pool(x), expected)


def test_what_is_too_small_or_not_scaled_is_named():
    conv, pixels = LAYERS["3x3 valid"], jnp.zeros((8, 2, 1))
    with pytest.raises(ValueError, match="expected at least 3 x 3 pixels .* got 8 x 2"):
        conv.init(jax.random.key(0), pixels)
    with pytest.raises(ValueError, match="expected at least 2 x 2 .* got 1 x 4"):
        max_pool(jnp.zeros((1, 4, 3)))
    with pytest.raises(ValueError, match=r"float pixels in \[0, 1\], got uint8"):
        conv.init(jax.random.key(0), jnp.zeros((8, 8, 1), jnp.uint8))

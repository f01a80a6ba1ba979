"""Gradients of layers and the normal equations of rows, against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import losses
from fljax.attacks.rows import layers
from fljax.attacks.rows.network import Network
from fljax.models import mlp

_ROWS, _INPUTS, _MODELS = 3, 4, 2


@pytest.fixture(params=[(6,), (6, 5)], ids=["one hidden", "two hidden"])
def models(request):
    """Models, leaves `[2, ...]`, and the loss of one example."""
    model = mlp(_INPUTS, hidden=request.param)
    params = jax.vmap(model.init)(jax.random.split(jax.random.key(0), _MODELS))
    loss_fn = losses.example_loss(model.apply, losses.squared)
    return jax.device_get(params), loss_fn


def _rows(seed: int) -> np.ndarray:
    draws = np.random.default_rng(seed)
    return draws.normal(size=(_ROWS, _INPUTS + 1)).astype(np.float32)


def _message(params, loss_fn, z):
    def at(number):
        own = jax.tree.map(lambda leaf: leaf[number], params)
        shares = np.full(_ROWS, 1 / _ROWS)
        return Network(own, loss_fn).message(z[:, :-1], z[:, -1], shares)

    return jax.tree.map(lambda *leaves: np.stack(leaves), *map(at, range(_MODELS)))


def test_gradients_are_those_of_the_network(models):
    params, loss_fn = models
    z = _rows(0)
    seen = layers.seen(params, _message(params, loss_fn, z), losses.squared)
    for each in layers.columns(seen, z, jnp.float32(0)):
        np.testing.assert_allclose(each, 0, atol=1e-11)


def test_rounded_corners_come_close_to_sharp_ones(models):
    params, loss_fn = models
    z = _rows(0)
    seen = layers.seen(params, _message(params, loss_fn, z), losses.squared)
    missed = [
        sum(float(each.sum()) for each in layers.columns(seen, z, jnp.float32(soft)))
        for soft in (0.5, 0.1, 0.001)
    ]
    assert missed[0] > missed[1] > missed[2]


@pytest.mark.slow
@pytest.mark.parametrize("large", [1e9, 0.05])
def test_normal_equations_are_those_of_the_jacobian(models, large):
    params, loss_fn = models
    sent = layers.seen(params, _message(params, loss_fn, _rows(0)), losses.squared)
    z, soft = _rows(1), jnp.float32(0.3)
    scale = [jnp.float32(large)] * len(sent.layers)

    def gradients(z):
        nothing = sent._replace(gradients=tuple(0 * each for each in sent.gradients))
        pairs = jax.vmap(
            lambda each: layers._of_rows(sent.element_loss, each, soft)(z)
        )(nothing.layers)
        return [
            jnp.einsum("qbi,qbo->qio", a, d) / _ROWS
            for a, d in zip(*pairs, strict=True)
        ]

    missed = [
        ours - theirs for ours, theirs in zip(gradients(z), sent.gradients, strict=True)
    ]
    matrix, slope = 0, 0
    for part, left, of in zip(jax.jacfwd(gradients)(z), missed, scale, strict=True):
        weight = (of / (of + jnp.square(left).sum(axis=1, keepdims=True))) ** 2
        flat = part.reshape(-1, z.size)
        weighted = (part * weight[..., None, None]).reshape(-1, z.size)
        matrix, slope = matrix + weighted.T @ flat, slope + weighted.T @ left.ravel()
    ours = layers.normal(sent, z, soft, scale)
    np.testing.assert_allclose(ours[0], matrix, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours[1], slope, rtol=1e-4, atol=1e-5)
    by_rule = jax.grad(
        lambda z: layers.robust(layers.columns(sent, z, soft), scale) / 2
    )(z)
    np.testing.assert_allclose(ours[1], by_rule.ravel(), rtol=1e-3, atol=1e-5)


def test_a_scale_is_that_of_outputs_that_are_on_and_count():
    squares = [jnp.array([[0.0, 1.0, 3.0, 1e6]])]
    (all_,) = layers.rescaled(squares, [jnp.float32(1e12)], jnp.float32(2))
    assert float(all_) == pytest.approx(2 * (4 + 1e6) / 3, rel=1e-5)
    (few,) = layers.rescaled(squares, [jnp.float32(1e2)], jnp.float32(1))
    assert 1 < float(few) < 3


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"hidden": (6,), "outputs": 3}, "one output, got 3"),
        ({"hidden": ()}, "a hidden layer, got none"),
        ({"hidden": (6,), "norm": "layernorm"}, "got LayerNorm_0, too"),
    ],
)
def test_other_models_are_refused(how, said):
    model = mlp(_INPUTS, **how)
    params = jax.vmap(model.init)(jax.random.split(jax.random.key(0), _MODELS))
    with pytest.raises(ValueError, match=said):
        layers.seen(params, params, losses.squared)


def test_layers_without_biases_are_refused(models):
    params, _ = models
    del params["Dense_0"]["bias"]
    with pytest.raises(ValueError, match="Dense_0 has none"):
        layers.seen(params, params, losses.squared)

"""The fast path against `vmap(grad)`, and when it is taken."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import losses, models, per_example
from fljax.defenses import clipping
from fljax.types import Batch, Features

B = 6


def _array(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(B, *shape)).astype(np.float32)


def _features(num_numeric=4, repeated=False):
    rng = np.random.default_rng(1)
    # Positions 0..1 and 2..4, and 5 for the reference category.
    codes = np.stack([rng.choice([0, 1, 5], B), rng.choice([2, 3, 4, 5], B)], axis=1)
    codes = codes[:, [0, 0]] if repeated else codes
    return Features(_array(num_numeric), codes.astype(np.int32))


def _no_codes():
    return Features(_array(4), np.zeros((B, 0), np.int32))


def _positions():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):  # dense layers on [positions, inputs]
            return nn.Dense(1)(nn.tanh(nn.Dense(5)(x)).mean(axis=0))[0]

    return models.from_flax(Net(), jnp.zeros((7, 3)))


def _alone():
    return models.from_flax(nn.Dense(3), jnp.zeros(4))


REAL, CLASS = _array(seed=2), np.arange(B, dtype=np.int32) % 3
CASES = {
    "linear": (models.linear(4, 2, num_onehot=5), _features(), REAL, losses.squared),
    "mlp": (
        models.mlp(4, 2, hidden=(6, 5), num_onehot=5), _features(), REAL,
        losses.logistic,
    ),
    "repeated codes": (
        models.mlp(4, 2, hidden=(6,), num_onehot=5), _features(repeated=True), REAL,
        losses.squared,
    ),
    "classes without codes": (
        models.mlp(4, hidden=(6,), outputs=3), _no_codes(), CLASS, losses.cross_entropy
    ),
    "cnn": (
        models.cnn((8, 8, 2), 3, channels=(4, 5), padding=1), _array(8, 8, 2), CLASS,
        losses.cross_entropy,
    ),
    "cnn with biases": (
        models.cnn((8, 8, 1), 3, channels=(4,), use_bias=True), _array(8, 8, 1), CLASS,
        losses.cross_entropy,
    ),
    "lenet": (
        models.lenet((8, 8, 1), 3, channels=3, strides=(2, 1)), _array(8, 8, 1), CLASS,
        losses.cross_entropy,
    ),
    "dense on positions": (_positions(), _array(7, 3), REAL, losses.squared),
    "one layer": (_alone(), _array(4), CLASS, losses.cross_entropy),
}  # fmt: skip


_QUICK = ("mlp", "cnn", "dense on positions")
_MARKED = [
    pytest.param(case, marks=() if name in _QUICK else pytest.mark.slow)
    for name, case in CASES.items()
]


def _params(model):
    """Parameters from N(0, 1/4), without compiling the model's init."""
    rng = np.random.default_rng(3)
    return jax.tree.map(
        lambda leaf: rng.normal(0, 0.5, leaf.shape).astype(leaf.dtype),
        jax.eval_shape(model.init, jax.random.key(0)),
    )


def _assert_close(found, expected):
    """To 1e-6 of the largest entry."""
    found, expected = jax.device_get((found, expected))
    scale = max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(expected))
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("case", _MARKED, ids=CASES)
def test_norms_and_clipped_sums_are_those_of_vmap_of_grad(case):
    model, x, y, element_loss = case
    fast = losses.example_loss(model.apply, element_loss)
    params = _params(model)
    batch = Batch(x, y, np.arange(B) != 2)
    assert per_example.by_layers(fast, params, x)

    def slow(params, x, y):
        return fast(params, x, y)

    assert not per_example.by_layers(slow, params, x)

    @jax.jit
    def measured(params):
        return [
            (
                per_example.gradients(loss_fn, params, x, y).squares,
                clipping.clipped_sum(loss_fn, params, batch, clipping.total(0.3)),
                clipping.clipped_sum(loss_fn, params, batch, clipping.per_layer(0.2)),
            )
            for loss_fn in (fast, slow)
        ]

    for found, expected in zip(*measured(params), strict=True):
        _assert_close(found, expected)


def test_the_plain_sum_is_the_gradient_of_the_batch():
    model, x, y, element_loss = CASES["mlp"]
    loss_fn = losses.example_loss(model.apply, element_loss)
    params = _params(model)
    batch = Batch(x, y, np.arange(B) < 4)

    @jax.jit
    def both(params):
        found = clipping.clipped_sum(loss_fn, params, batch, clipping.total(1e6))
        return found, jax.value_and_grad(losses.batch_loss, 1)(loss_fn, params, batch)

    found, (loss, grads) = jax.device_get(both(params))
    _assert_close(jax.tree.map(lambda leaf: leaf / 4, found.total), grads)
    np.testing.assert_allclose(found.loss, loss, rtol=1e-6)


@pytest.mark.parametrize("name", ["mlp", "cnn with biases"])
def test_a_poisoned_example_does_not_spread(name):
    model, x, y, element_loss = CASES[name]
    loss_fn = losses.example_loss(model.apply, element_loss)
    params = _params(model)

    @jax.jit
    def total(params, x, mask):
        batch = Batch(x, y, mask)
        return clipping.clipped_sum(loss_fn, params, batch, clipping.per_layer(0.2))

    first, *rest = jax.tree.leaves(x)
    first = first.copy()
    first[1] = np.inf
    poisoned = jax.tree.unflatten(jax.tree.structure(x), [first, *rest])
    found = total(params, poisoned, np.ones(B, bool))
    expected = total(params, x, np.arange(B) != 1)
    assert (found.dropped, expected.dropped) == (1, 0)
    _assert_close(found.total, expected.total)


class _Twice(nn.Module):
    @nn.compact
    def __call__(self, x):
        layer = nn.Dense(4)
        return layer(nn.relu(layer(x))).sum()


class _Scaled(nn.Module):
    @nn.compact
    def __call__(self, x):
        scale = self.param("scale", nn.initializers.ones_init(), ())
        return scale * nn.Dense(1)(x)[0]


class _Norm(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.LayerNorm()(x))[0]


class _Tied(nn.Module):
    def setup(self):
        self.layer = nn.Dense(3)

    def __call__(self, x):
        kernel = self.layer.variables["params"]["kernel"] if self.has_rows() else 1.0
        return jnp.sum(self.layer(x)) + jnp.sum(kernel)

    def has_rows(self):
        return not self.is_initializing()


class _Other(nn.Dense):
    @nn.compact
    def __call__(self, inputs):
        kernel = self.param("kernel", self.kernel_init, (4, self.features))
        return jnp.square(inputs @ kernel)


class _Subclass(nn.Module):
    @nn.compact
    def __call__(self, x):
        return jnp.sum(_Other(3, use_bias=False)(x))


class _Mapped(nn.Module):
    @nn.compact
    def __call__(self, x):
        mapped = nn.vmap(
            nn.Dense, variable_axes={"params": None}, split_rngs={"params": False}
        )
        return jnp.sum(mapped(3)(x.reshape(2, 2)))


class _Rematerialised(nn.Module):
    @nn.compact
    def __call__(self, x):
        return jnp.sum(nn.remat(nn.Dense)(3)(x))


class _Transformed(nn.Module):
    @nn.compact
    def __call__(self, x):
        def twice(variables):
            return jax.tree.map(lambda leaf: 2 * leaf, variables)

        mapped = nn.map_variables(nn.Dense, "params", twice, init=True)
        return jnp.sum(mapped(3)(x))


class _Inside(nn.Module):
    """A layer that runs inside another transform."""

    @nn.compact
    def __call__(self, x):
        class Cell(nn.Module):
            @nn.compact
            def __call__(self, carry, row):
                return carry + jnp.sum(nn.Dense(3)(row)), None

        scan = nn.scan(Cell, variable_broadcast="params", split_rngs={"params": False})
        return scan()(jnp.zeros(()), x.reshape(2, 2))[0]


ODD = [
    _Twice, _Scaled, _Norm, _Tied, _Subclass, _Mapped, _Rematerialised, _Transformed,
    _Inside,
]  # fmt: skip


@pytest.mark.parametrize("net", ODD)
def test_models_of_another_kind_take_the_general_path_to_the_same_end(net):
    model = models.from_flax(net(), jnp.zeros(4))
    loss_fn = losses.example_loss(model.apply, losses.squared)
    params, x = _params(model), _array(4)
    assert not per_example.by_layers(loss_fn, params, x)
    ones = jax.tree.map(lambda leaf: np.ones(B, np.float32), params)

    @jax.jit
    def both(params):
        found = per_example.gradients(loss_fn, params, x, REAL)
        each = jax.vmap(jax.grad(lambda p, x, y: loss_fn(p, x, y)), (None, 0, 0))
        return found.weighted_sum(ones), each(params, x, REAL)

    found, grads = jax.device_get(both(params))
    _assert_close(found, jax.tree.map(lambda leaf: leaf.sum(axis=0), grads))


def test_any_loss_of_ones_own_takes_the_general_path():
    def loss_fn(params, x, y):
        return jnp.square(params @ x - y)

    params, x = np.arange(4, dtype=np.float32), _array(4)
    assert not per_example.by_layers(loss_fn, params, x)
    squares = jax.jit(
        lambda params: per_example.gradients(loss_fn, params, x, REAL).squares
    )(params)
    slopes = 2 * (x @ params - REAL)
    wanted = np.square(slopes) * np.sum(x * x, axis=1)
    np.testing.assert_allclose(squares, wanted, rtol=1e-5)


def test_no_gradient_of_an_example_is_held_for_dense_layers():
    model, x, y, element_loss = CASES["mlp"]
    loss_fn = losses.example_loss(model.apply, element_loss)
    params = _params(model)
    batch = Batch(x, y, np.ones(B, bool))

    def total(params):
        return clipping.clipped_sum(loss_fn, params, batch, clipping.total(1.0)).total

    text = str(jax.make_jaxpr(total)(params))
    assert "f32[6,6]" in text  # hidden units of all examples
    assert "f32[6,9,6]" not in text and "f32[6,6,5]" not in text

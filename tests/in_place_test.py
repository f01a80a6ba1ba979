"""Steps in place are those through the gradient, and are taken only where they are."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import in_place, local, losses, models
from fljax.types import Batch, Features

_ROWS, _RATE = 8, 0.1
_COLUMNS = np.array([0, 4, 24])  # where each starts; the last value of none is a column


def _loss(**model):
    built = models.mlp(3, 3, num_onehot=30, **{"hidden": (16,), **model})
    kind = losses.cross_entropy if model.get("outputs", 1) > 1 else losses.squared
    params = built.init(jax.random.key(0))
    return losses.example_loss(built.apply, kind), params


def _batch(target=None):
    rng = np.random.default_rng(0)
    codes = _COLUMNS + rng.integers(0, 6, (_ROWS, 3))
    codes[2, 2] = 30  # the reference category, past the end
    numeric = rng.normal(size=(_ROWS, 3))
    numeric[-1] = np.nan  # no row
    y = rng.normal(size=_ROWS) if target is None else target
    x = Features(jnp.asarray(numeric, jnp.float32), jnp.asarray(codes, jnp.int32))
    mask = jnp.arange(_ROWS) < _ROWS - 2
    return Batch(x, jnp.asarray(y), mask, jnp.int32(0), jnp.int32(3))


@pytest.mark.usefixtures("one_hot")
@pytest.mark.parametrize(
    "model",
    [
        {},
        pytest.param({"use_bias": False}, marks=pytest.mark.slow),
        {"hidden": ()},
        pytest.param({"hidden": (8, 8)}, marks=pytest.mark.slow),
        pytest.param({"outputs": 3}, marks=pytest.mark.slow),
    ],
    ids=["one layer", "no bias", "linear", "two layers", "classes"],
)
def test_a_step_is_that_through_the_gradient(model):
    loss_fn, params = _loss(**model)
    batch = _batch(np.arange(_ROWS) % 3 if "outputs" in model else None)
    found, loss = jax.jit(in_place.step, static_argnums=(0, 1))(
        loss_fn, optax.sgd(_RATE), params, batch, 0.5
    )
    through = jax.jit(jax.value_and_grad(losses.batch_loss, 1), static_argnums=0)
    value, slope = through(loss_fn, params, batch)
    wanted = jax.tree.map(lambda leaf, g: leaf - 0.5 * _RATE * g, params, slope)
    assert jax.tree.structure(found) == jax.tree.structure(params)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7),
        (found, loss), (wanted, value),
    )  # fmt: skip


def _mask(leaf):
    return np.arange(leaf.size, dtype=np.float32).reshape(leaf.shape) % 2


def _matrices(params):
    return jax.tree.map(lambda leaf: leaf.ndim > 1, params)


@pytest.mark.parametrize(
    "optimiser",
    [
        optax.sgd(_RATE, momentum=0.9),
        optax.adam(_RATE),
        optax.sgd(optax.linear_schedule(_RATE, 0.0, 10)),
        optax.sign_sgd(_RATE),
        optax.chain(optax.clip(1.0), optax.sgd(_RATE)),
        optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(_RATE)),
        optax.chain(optax.centralize(), optax.sgd(_RATE)),
        optax.chain(optax.add_decayed_weights(0.1), optax.sgd(_RATE)),
        optax.stateless(lambda g, _: jax.tree.map(jnp.square, g)),
        optax.stateless(lambda g, _: jax.tree.map(lambda x: x * jnp.sum(x), g)),
        optax.stateless(lambda g, _: jax.tree.map(lambda x: x * _mask(x), g)),
        optax.stateless(lambda g, _: jax.tree.map(jnp.zeros_like, g)),
        optax.stateless(lambda g, p: p),
    ],
    ids=[
        "momentum", "adam", "schedule", "sign", "clip", "norm", "centralize", "decay",
        "square", "sum", "mask", "zeros", "params",
    ],
)  # fmt: skip
def test_an_optimiser_that_does_more_than_scale_takes_the_gradient(optimiser):
    assert not in_place.applies(*_asked(optimiser))


def _asked(optimiser):
    loss_fn, params = _loss()
    return loss_fn, optimiser, params


@pytest.mark.parametrize(
    "optimiser",
    [
        optax.sgd(_RATE),
        optax.identity(),
        optax.chain(optax.sgd(_RATE), optax.scale(2.0)),
        optax.masked(optax.scale(-_RATE), _matrices),
    ],
    ids=["sgd", "identity", "chain", "masked"],
)
def test_an_optimiser_that_scales_is_known(optimiser):
    assert in_place.applies(*_asked(optimiser))


@pytest.mark.slow
def test_a_rate_may_be_traced():
    loss_fn, params = _loss()

    def moved(rate):
        optimiser = optax.sgd(rate)
        assert in_place.applies(loss_fn, optimiser, params)
        return in_place.step(loss_fn, optimiser, params, _batch())[0]["Dense_0"]["bias"]

    (still,), (gone,) = jax.jit(jax.vmap(moved))(jnp.array([0.0, _RATE]))
    assert still == params["Dense_0"]["bias"][0] != gone


def test_without_one_hot_columns_or_another_loss_the_gradient_is_taken():
    plain = models.mlp(3)
    params = plain.init(jax.random.key(0))
    loss_fn = losses.example_loss(plain.apply, losses.squared)
    assert not in_place.applies(loss_fn, optax.sgd(_RATE), params)
    loss_fn, params = _loss()

    def own(params, x, y):
        return loss_fn(params, x, y)

    assert not in_place.applies(own, optax.sgd(_RATE), params)


@pytest.mark.parametrize("more", [{}, {"decay": 0.9}], ids=["", "decay"])
def test_a_client_trains_as_through_the_gradient(more):
    loss_fn, params = _loss()
    keys = jax.random.split(jax.random.key(1), 3)

    def trained(optimiser):
        update = local.sgd(loss_fn, optimiser, **more)
        carry, step = update.init(params), jax.jit(update.step)
        for key in keys:
            carry = step(key, carry, params, _batch())
        return carry.params, carry.loss

    found = trained(optax.sgd(_RATE))
    wanted = trained(optax.sgd(_RATE, momentum=0.0))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        found, wanted,
    )  # fmt: skip

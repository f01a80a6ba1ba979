"""The mean loss of a network whose units are dropped, and what simulates it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import dropout, losses, models, per_example
from fljax.types import Begun, Features

_ROWS, _INPUTS, _UNITS, _RATE = 40, 5, 6, 0.3
MODEL = models.mlp(_INPUTS, hidden=(_UNITS,))
LOSS = losses.example_loss(MODEL.apply, losses.squared)


def _rows(seed=0):
    rng = np.random.default_rng(seed)
    x = Features(
        jnp.asarray(rng.normal(size=(_ROWS, _INPUTS)), jnp.float32),
        jnp.zeros((_ROWS, 0), jnp.int32),
    )
    return x, jnp.asarray(rng.normal(size=_ROWS), jnp.float32)


def _exact(params, x, y):
    """The squared loss and the variance of the output, which is linear in what is kept."""
    first, last = params["TabularDense_0"], params["Dense_0"]

    def one(x, y):
        units = jax.nn.relu(x.numeric @ first["kernel"] + first["bias"])
        terms = units * last["kernel"][:, 0]
        output = terms.sum() + last["bias"][0]
        return (output - y) ** 2 + _RATE / (1 - _RATE) * (terms**2).sum()

    return jax.vmap(one)(x, y)


def test_the_mean_over_draws_is_that_of_every_mask():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    loss = dropout.MeanLoss(LOSS, _RATE, draws=1000)
    found = jax.vmap(loss, (None, 0, 0))(params, x, y)
    exact = _exact(params, x, y)
    plain = jax.vmap(LOSS, (None, 0, 0))(params, x, y)
    assert np.abs(found - exact).max() < 0.2 * np.abs(plain - exact).max()


def test_gradients_are_those_of_the_mean_over_rows():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    loss = dropout.MeanLoss(LOSS, _RATE, draws=1000)

    def gradient(of):
        mean = jax.grad(lambda params: of(params).mean())
        return jax.flatten_util.ravel_pytree(mean(params))[0]

    found = gradient(lambda params: jax.vmap(loss, (None, 0, 0))(params, x, y))
    exact = gradient(lambda params: _exact(params, x, y))
    plain = gradient(lambda params: jax.vmap(LOSS, (None, 0, 0))(params, x, y))
    np.testing.assert_array_less(
        jnp.linalg.norm(found - exact), 0.2 * jnp.linalg.norm(plain - exact)
    )


def test_rows_and_parameters_have_draws_of_their_own():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    numbers = jax.vmap(dropout.MeanLoss(LOSS, 0.5)._numbers, (None, 0, 0))
    first, moved = numbers(params, x, y), jax.tree.map(lambda leaf: leaf + 1e-6, params)
    assert len(np.unique(first[:, 0])) > _ROWS / 2
    assert np.mean(numbers(moved, x, y)[:, 0] == first[:, 0]) < 0.2


def test_candidates_of_a_row_share_their_draws():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    loss = dropout.MeanLoss(LOSS, 0.5, block=1)
    other = x._replace(numeric=x.numeric.at[:, -1].set(7.0))
    numbers = jax.vmap(loss._numbers, (None, 0, 0))
    np.testing.assert_array_equal(numbers(params, x, y), numbers(params, other, y))
    begun = [
        Begun(jnp.ones((_ROWS, _UNITS)), jnp.full((_ROWS, 1), v)) for v in (0.0, 1)
    ]
    np.testing.assert_array_equal(*(numbers(params, each, y) for each in begun))


def test_squares_of_examples_are_means_of_those_of_their_draws():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    loss = dropout.MeanLoss(LOSS, 0.5, draws=3)
    found = per_example.gradients(loss, params, x, y)
    like = jax.tree.map(lambda _: jnp.ones(_ROWS) / _ROWS, found.squares)
    whole = jax.grad(lambda p: jnp.mean(jax.vmap(loss, (None, 0, 0))(p, x, y)))(params)
    jax.tree.map(
        lambda one, two: np.testing.assert_allclose(one, two, atol=1e-6),
        found.weighted_sum(like),
        whole,
    )
    of_means = per_example.gradients(loss.__call__, params, x, y)
    total = [
        sum(jnp.sum(leaf) for leaf in jax.tree.leaves(each.weighted_squares(like)))
        for each in (found, of_means)
    ]
    assert total[0] > 1.1 * total[1]


@pytest.mark.parametrize(("hidden", "has"), [((), False), ((4,), True), ((4, 3), True)])
def test_networks_with_hidden_layers_have_what_can_be_dropped(hidden, has):
    model = models.mlp(_INPUTS, hidden=hidden)
    row = jax.tree.map(lambda leaf: leaf[0], _rows()[0])
    params = model.init(jax.random.key(0))
    assert [dropout.drops(model.apply, params, row) for _ in range(2)] == [has, has]

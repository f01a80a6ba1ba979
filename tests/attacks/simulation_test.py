"""The simulated round and its adjoint."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.trajectory import simulation


def _problem():
    keys = [jax.random.fold_in(jax.random.key(0), i) for i in range(5)]
    x = jax.random.normal(keys[0], (12, 3))
    y = jax.random.normal(keys[1], (12,))

    def mean_loss(params, values):
        hidden = jnp.tanh(x @ params[:6].reshape(3, 2))
        low = jnp.square(hidden @ params[6:8] - y)
        high = jnp.square(hidden @ params[6:8] + params[8] - y)
        return jnp.mean((1 - values) * low + values * high)

    params = jax.random.normal(keys[2], (9,))
    values = jax.random.uniform(keys[3], (12,))
    return mean_loss, params, values, jax.random.normal(keys[4], (9,))


def test_the_path_is_gradient_descent():
    mean_loss, params, values, _ = _problem()
    expected = params
    for _ in range(4):
        expected = expected - 0.2 * jax.grad(mean_loss)(expected, values)
    found, _ = _paths(mean_loss, params, 4).end(0, values, jnp.float32(0.8))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "moving", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["path", "chord"]
)
def test_the_adjoint_is_the_derivative(moving):
    mean_loss, params, values, cotangent = _problem()
    if moving:
        simulator = _paths(mean_loss, params, 5)
    else:
        field, other = simulation.of_loss(mean_loss), params[None] + 0.3
        simulator = simulation.chords(field, params[None], other)
    scale = jnp.float32(0.7)
    expected = jax.grad(lambda v, s: simulator.end(0, v, s)[0] @ cotangent, (0, 1))
    _, stored = simulator.end(0, values, scale)
    found = simulator.back(stored, cotangent, values, scale)
    for ours, theirs in zip(found, expected(values, scale), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def _paths(mean_loss, params, steps):
    field = simulation.of_loss(mean_loss)
    return simulation.paths(field, simulation.SGD, params[None], steps)

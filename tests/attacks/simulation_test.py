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
    path = simulation.follow(mean_loss, params, values, jnp.float32(0.8), 4)
    np.testing.assert_allclose(path.end, expected, rtol=1e-5)
    np.testing.assert_array_equal(path.points[0], params)
    assert path.points.shape == (4, 9)


@pytest.mark.parametrize("moving", [True, False], ids=["path", "chord"])
def test_the_adjoint_is_the_derivative(moving):
    mean_loss, params, values, cotangent = _problem()
    other = params + 0.3

    def simulate(values, scale):
        if moving:
            return simulation.follow(mean_loss, params, values, scale, 5)
        return simulation.chord(mean_loss, params, other, values, scale)

    scale = jnp.float32(0.7)
    expected = jax.grad(lambda v, s: simulate(v, s).end @ cotangent, (0, 1))
    found = simulation.pull_back(
        mean_loss, simulate(values, scale), cotangent, values, scale, moving=moving
    )
    for ours, theirs in zip(found, expected(values, scale), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)

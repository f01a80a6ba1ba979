"""Simulated steps of Adam beside what they are on average over shuffled batches."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax.attacks.trajectory import quotients, rules
from fljax.attacks.trajectory.rules import Practice

_DRAWS = 20_000
_RATIOS = jnp.array([0.0, 0.2, 0.5, 1.0, 1.5, 2.0, 4.0])  # mean over deviation


def _moved(slope, variance, table):
    """What the rule moves in each of its steps `[M, P]`, of one constant slope."""
    rule = rules.of(Practice("adam"), lambda sent, values: variance, table)
    params, found = jnp.zeros_like(slope), []
    state, step = rule.init(params, None), jax.jit(rule.step)
    for _ in range(len(table)):
        after, state = step(params, state, slope, params, 1.0)
        found.append(params - after)
        params = after
    return jnp.stack(found)


def _on_average(slope, deviation, batches, epochs):
    optimiser = optax.adam(1.0)

    def drawn(key):
        noise = jax.random.normal(key, (epochs, batches, len(slope)))
        noise = noise - noise.mean(axis=1, keepdims=True)
        noise = noise.reshape(-1, len(slope)) * (batches / (batches - 1)) ** 0.5

        def step(state, gradient):
            move, state = optimiser.update(gradient, state)
            return state, -move

        gradients = slope[None] + deviation * noise
        return jax.lax.scan(step, optimiser.init(slope), gradients)[1]

    keys = jax.random.split(jax.random.key(0), _DRAWS)
    return np.asarray(jax.jit(jax.vmap(drawn))(keys).mean(axis=0))


@pytest.mark.parametrize(
    ("deviation", "batches", "most"), [(1e-4, 3, 0.01), (1.0, 5, 0.01), (1.0, 2, 0.03)]
)
def test_adam_moves_as_it_does_on_average_over_shuffled_batches(
    deviation, batches, most
):
    slope, epochs = _RATIOS * deviation, 2
    expected = _on_average(slope, deviation, batches, epochs)
    table = quotients.table(epochs * batches, batches)
    found = _moved(slope, jnp.full_like(slope, deviation**2), table)
    chance = 4 / _DRAWS**0.5
    np.testing.assert_allclose(found, expected, atol=most + chance)
    without = np.asarray(
        _RATIOS / jnp.sqrt(1 + _RATIOS**2)
    )  # the quotient of expectations
    assert np.abs(without[None] - expected).max() > most + chance


def test_adam_of_full_batches_is_adam():
    slope = jnp.array([0.3, -2.0, 0.0, 1e-12])
    found = _moved(slope, jnp.zeros_like(slope), quotients.table(3, 4))
    state = optax.adam(1.0).init(slope)
    for moved in found:
        move, state = optax.adam(1.0).update(slope, state)
        np.testing.assert_allclose(moved, -move, rtol=1e-5)


@pytest.mark.parametrize("variance", [0.0, 1e-30, 1.0])
def test_derivatives_of_a_step_of_adam_are_numbers(variance):
    slope = jnp.array([0.0, 1e-20, 1.0, 1e15])
    given, table = jnp.full_like(slope, variance), quotients.table(3, 2)
    found = jax.jacobian(lambda slope: _moved(slope, given, table)[-1])(slope)
    assert np.isfinite(found).all()


def test_later_steps_are_nearly_those_of_expectations():
    table = quotients.table(500, 700)
    assert table.shape == (500, 3)
    found = quotients.counted(table[-1], _RATIOS, jnp.ones_like(_RATIOS))
    np.testing.assert_allclose(found, 1, atol=0.1)
    assert np.array_equal(quotients.table(4, 1), quotients.table(4, 2))

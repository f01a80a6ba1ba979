"""Few simulated steps in place of a client's many."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.attribute import conceal
from fljax.attacks.trajectory import matching, merging, rules, simulation
from fljax.attacks.trajectory.attack import trajectory_matching
from fljax.attacks.trajectory.rules import Practice
from fljax.types import Exchange, Features

_NONE = jnp.zeros(1)


def _left(merged: int, table, z: np.ndarray) -> simulation.Simulator:
    """Simulates a round from 1 in directions of such curvatures, in all `z / scale`."""
    field = simulation.of_loss(
        lambda p, v: jnp.sum(jnp.asarray(z) * p**2) / 2 + 0 * v[0]
    )
    rule = rules.of(Practice(), table=None if table is None else jnp.asarray(table))
    return simulation.paths(field, rule, jnp.ones((1, len(z))), merged)


@pytest.mark.parametrize(
    ("steps", "merged", "most"),
    [
        (57, 10, 0.01),
        (19, 10, 0.008),
        (700, 10, 0.011),
        (57, 16, 0.002),
        (11, 10, 0.003),
    ],
)
def test_merged_steps_end_where_the_clients_do(steps, merged, most):
    z = np.linspace(0, min(2.8 * merged, 2 * steps), 80)
    table = merging.table(steps, merged)
    found, _ = _left(merged, table, z).end(0, _NONE, jnp.float32(1))
    wanted = np.sign(1 - z / steps) ** steps * np.abs(1 - z / steps) ** steps
    off = np.abs(found - wanted)
    assert off.max() < most
    equal, _ = _left(16, None, z).end(0, _NONE, jnp.float32(1))
    if steps > 23:  # what 16 equal steps are off
        assert off[z < 4].max() < np.abs(equal - wanted)[z < 4].max()


@pytest.mark.parametrize("merged", [1, 2, 3, 7])
def test_any_number_of_steps_is_as_far_as_all(merged):
    table = merging.table(57, merged)
    small = np.array([1e-3])
    found, _ = _left(merged, table, small).end(0, _NONE, jnp.float32(1))
    assert 1 - found[0] == pytest.approx(1e-3, rel=2e-3)
    large = np.linspace(0, 2.8 * merged, 50)
    left, _ = _left(merged, table, large).end(0, _NONE, jnp.float32(1))
    assert np.abs(left).max() <= 1.001 or merged == 1


@pytest.mark.parametrize(("steps", "merged"), [(122, 61), (300, 250), (5700, 1000)])
def test_many_steps_are_those_of_parts_of_the_round(steps, merged):
    """One polynomial of so many is slow to find, and not found to its last digit."""
    table = merging.table(steps, merged)
    assert table.shape == (merged, 3)
    z = np.linspace(0, min(2.8 * merged, 2 * steps), 400)
    found, _ = _left(merged, table, z).end(0, _NONE, jnp.float32(1))
    base = 1 - z / steps
    wanted = np.sign(base) ** steps * np.abs(base) ** steps
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_a_client_without_rows_stays_where_it_is():
    found, _ = _left(3, merging.table(0, 3), np.ones(2)).end(0, _NONE, jnp.float32(1))
    np.testing.assert_array_equal(found, 1)


def test_only_plain_steps_are_merged_and_as_many_as_are_simulated():
    table = merging.table(9, 4)
    with pytest.raises(ValueError, match="table: expected plain SGD or Adam"):
        rules.of(Practice(momentum=0.9), table=table)
    with pytest.raises(ValueError, match="table: expected 6 steps, got 4"):
        exchange = Exchange({"w": jnp.ones((2, 3))}, {"w": jnp.ones((2, 3))})
        known = conceal(
            Features(jnp.ones((4, 2)), jnp.zeros((4, 0), jnp.int32)),
            jnp.ones(4), jnp.ones(4, bool), width=1,
        )  # fmt: skip
        trajectory_matching(
            jax.random.key(0), lambda params, x, y: x.numeric @ params["w"][:2] - y,
            exchange, known, jnp.array([[0.0], [1.0]]), scale=0.1, table=table,
            settings=matching.Settings(path_steps=6),
        )  # fmt: skip


def test_a_client_of_fewer_steps_takes_its_own():
    z = np.array([0.5, 2.0])
    found, _ = _left(10, merging.table(4, 10), z).end(0, _NONE, jnp.float32(1))
    np.testing.assert_allclose(found, (1 - z / 4) ** 4, atol=1e-6)


def test_the_way_back_is_the_derivative():
    def along(values, scale):
        field = simulation.of_loss(lambda p, v: jnp.sum(jnp.exp(v * p)))
        rule = rules.of(Practice(weight_decay=0.1), table=merging.table(9, 4))
        simulator = simulation.paths(field, rule, jnp.ones((1, 3)), 4)
        return simulator, simulator.end(0, values, scale)

    values, scale = jnp.array([0.1, 0.2, 0.3]), jnp.float32(0.8)
    cotangent = jnp.array([1.0, -2.0, 0.5])
    simulator, (_, stored) = along(values, scale)
    ours = simulator.back(stored, cotangent, values, scale)
    theirs = jax.grad(lambda v, s: along(v, s)[1][0] @ cotangent, (0, 1))(values, scale)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)

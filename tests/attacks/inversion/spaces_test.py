"""Where a search moves: boxes, categorical columns and the seeds it starts from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import losses, models
from fljax.attacks import inversion
from fljax.attacks.inversion import Budget, points, seeds, solvers, spaces
from fljax.types import Features


def test_the_patterned_seed_repeats_one_tile():
    seed = seeds.patterned(jax.random.key(0), (2, 8, 7, 3))
    assert seed.shape == (2, 8, 7, 3)
    np.testing.assert_array_equal(seed[:, :4], seed[:, 4:])
    np.testing.assert_array_equal(seed[:, :, :3], seed[:, :, 4:])
    assert (seed[0] != seed[1]).all()
    with pytest.raises(ValueError, match="h, w, channels"):
        seeds.patterned(jax.random.key(0), (2, 8))


BLOCKS = (spaces.Block(2, 5), spaces.Block(5, 7, dropped=True))


def test_categorical_columns_are_points_of_a_simplex():
    base = spaces.examples((3, 7), seeds.gaussian, y=jnp.arange(3), box=(0, 1))
    space = spaces.tabular(base, BLOCKS)
    variables = space.init(jax.random.key(0))
    x = space.decode(variables).x
    np.testing.assert_array_equal(x[:, :2], variables["x"][:, :2])
    np.testing.assert_allclose(x[:, 2:5].sum(axis=1), 1, rtol=1e-6)
    assert (x[:, 2:] > 0).all()
    assert (x[:, 5:].sum(axis=1) < 1).all()
    hard = spaces.harden(x, BLOCKS)
    np.testing.assert_array_equal(hard[:, 2:5].argmax(axis=1), x[:, 2:5].argmax(axis=1))
    assert set(np.unique(hard[:, 2:])) <= {0.0, 1.0}
    inside = space.project(variables)["x"]
    np.testing.assert_array_equal(inside[:, 2:], variables["x"][:, 2:])
    np.testing.assert_array_equal(inside[:, :2], variables["x"][:, :2].clip(0, 1))


def test_harden_gives_the_dropped_category_its_zeros():
    x = jnp.array([[0.0, 0.0, 0.2, 0.7, 0.1, 0.2, 0.1], [0.0] * 5 + [0.2, 0.7]])
    hard = spaces.harden(x, BLOCKS)
    np.testing.assert_array_equal(hard[:, 5:], [[0, 0], [0, 1]])


@pytest.mark.slow
def test_a_tabular_row_is_recovered():
    model = models.mlp(7, hidden=(16,), outputs=3, initialisation="glorot")
    params = model.init(jax.random.key(5))
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    x = np.array([[0.3, 0.8, 0, 1, 0, 0, 0]], np.float32)
    truth, y = Features(x, np.zeros((1, 0), np.int32)), np.array([1])
    simulate = points.gradient_of(loss_fn)

    def attack(key, params, observed):
        space = spaces.examples((1, 7), seeds.uniform, y=jnp.asarray(y))
        space = spaces.as_features(spaces.tabular(space, BLOCKS))
        return inversion.invert(
            key, params, observed, simulate, space, solvers.lbfgs(memory=10),
            budget=Budget(num_iterations=30, starts=2, patience=3, tolerance=1e-9),
        )  # fmt: skip

    found = jax.jit(attack)(jax.random.key(0), params, simulate(params, truth, y))
    hard = spaces.harden(found.x.numeric, BLOCKS)
    np.testing.assert_array_equal(hard[:, 2:], x[:, 2:])
    np.testing.assert_allclose(found.x.numeric[:, :2], x[:, :2], atol=0.1)

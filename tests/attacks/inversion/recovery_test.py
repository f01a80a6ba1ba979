"""Planted examples and batches come back, and the truth never goes in."""

import inspect
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import image_metrics, losses, parallel
from fljax.attacks import inversion
from fljax.attacks.inversion import (
    Budget,
    objectives,
    points,
    presets,
    seeds,
    solvers,
    spaces,
)


@pytest.mark.parametrize(
    "whitened",
    [pytest.param(False, marks=pytest.mark.slow), True],
    ids=["lbfgs", "whitened"],
)
def test_cpl_recovers_an_example_and_its_label(victim, cpl, images, whitened):
    params, _, simulate = victim
    x, y = images(1)
    attack = cpl(whitened=whitened, num_iterations=6)
    found = attack(jax.random.key(0), params, simulate(params, x, y))
    assert found.y == y
    assert image_metrics.rmse(found.x, x) < 0.01
    assert found.path.shape == (6, 1, *images.shape)
    np.testing.assert_array_equal(found.path[-1], found.x)
    assert (np.diff(found.losses) <= 0).all()
    assert found.losses[-1] == found.loss
    assert found.iterations < 6
    assert 1 <= image_metrics.success(found.path, x, 0.01) <= found.iterations


def test_another_clients_gradient_tells_nothing(victim, cpl, images):
    params, _, simulate = victim
    x, y = images(2)
    observed = simulate(params, x[1:], y[1:])
    found = cpl(whitened=False, num_iterations=6)(jax.random.key(0), params, observed)
    assert image_metrics.rmse(found.x, x[1:]) < 0.01
    assert image_metrics.rmse(found.x, x[:1]) > 0.3


@pytest.mark.slow
def test_dlg_finds_the_label_with_the_example(victim, images):
    params, loss_fn, simulate = victim
    x, y = images(1, seed=1)
    budget = Budget(num_iterations=60, tolerance=1e-9, patience=5)
    attack = presets.dlg(loss_fn, (1, *images.shape), images.classes, budget=budget)
    found = jax.jit(attack)(jax.random.key(0), params, simulate(params, x, y))
    assert found.y.shape == (1, images.classes)
    assert jnp.argmax(found.y[0]) == y[0]
    assert image_metrics.rmse(found.x, x) < 0.02


def test_inverting_gradients_comes_closer_than_its_seed_and_stays_in_the_box(
    victim, images
):
    params, _, simulate = victim
    x, y = images(1)
    x = np.broadcast_to(x[:, :1, :1], x.shape)
    budget = Budget(num_iterations=200, record_every=60)
    attack = presets.inverting_gradients(simulate, (1, *images.shape), budget=budget)
    found = jax.jit(attack)(jax.random.key(0), params, simulate(params, x, y))
    assert image_metrics.rmse(found.x, x) < 0.05
    assert found.path.shape == (4, 1, *images.shape)
    assert found.x.min() >= 0 and found.x.max() <= 1


def test_a_batch_is_recovered_in_some_order(victim, cpl, images):
    params, _, simulate = victim
    x, y = images(2, seed=2)
    observed = simulate(params, x[::-1], y[::-1])
    attack = cpl(count=2, whitened=True, num_iterations=20, patience=6)
    found = attack(jax.random.key(1), params, observed)
    np.testing.assert_array_equal(found.y, [0, 1])
    order = image_metrics.assign(found.x, x)
    assert image_metrics.rmse(found.x[order], x).max() < 0.02
    assert image_metrics.success(found.path, x[::-1], 0.02) <= 20


@pytest.mark.slow
def test_an_update_of_several_steps_is_inverted_through_the_training(
    sigmoid_net, images
):
    model = sigmoid_net((5, 12, images.classes))
    params = model.init(jax.random.key(0))
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    x = np.random.default_rng(0).uniform(size=(2, 5)).astype(np.float32)
    y = np.array([1, 3])
    simulate = points.steps_of(points.gradient_of(loss_fn), 0.3, 4, batch_size=1)
    observed = simulate(params, x, y)

    def attack(key, params, observed):
        space = spaces.examples(x.shape, seeds.uniform, y=jnp.asarray(y))
        solver = solvers.whitened_lbfgs(1e-3)
        budget = Budget(num_iterations=20, tolerance=1e-11, patience=8)
        return inversion.invert(
            key, params, observed, simulate, space, solver, budget=budget
        )

    found = jax.jit(attack)(jax.random.key(1), params, observed)
    np.testing.assert_allclose(found.x, x, atol=0.02)


@pytest.mark.slow
def test_more_starts_never_end_worse(victim, cpl, images):
    params, _, simulate = victim
    x, y = images(1, seed=4)
    observed = simulate(params, x, y)
    one, three = (
        attack(jax.random.key(0), params, observed)
        for attack in (
            cpl(whitened=False, num_iterations=6),
            cpl(num_iterations=6, starts=3),
        )
    )
    assert (three.losses <= one.losses).all()
    assert three.iterations > one.iterations
    loss = objectives.squared_distance(simulate(params, three.x, three.y), observed)
    assert loss == pytest.approx(float(three.loss), rel=1e-2)


@pytest.mark.slow
def test_clients_side_by_side_equal_clients_one_by_one(victim, cpl, images):
    params, _, simulate = victim
    x, y = images(3)
    attack = cpl(whitened=False, num_iterations=6)
    observed = jax.vmap(simulate, (None, 0, 0))(params, x[:, None], y[:, None])

    def one(item, params):
        number, message = item
        return attack(jax.random.fold_in(jax.random.key(0), number), params, message)

    @jax.jit
    def every(observed):
        items = (jnp.arange(3), observed)
        return parallel.map_items(one, items, params, parallel.mesh(2), at_once=2)

    found = every(observed)
    assert found.x.shape == (3, 1, *images.shape)
    for i in range(3):
        alone = one((i, jax.tree.map(operator.itemgetter(i), observed)), params)
        np.testing.assert_allclose(found.x[i], alone.x, atol=1e-3)


def test_the_truth_is_no_argument():
    names = set(inspect.signature(inversion.invert).parameters)
    assert names == {
        "key", "params", "observed", "simulate", "space", "solver", "distance",
        "prior", "budget",
    }  # fmt: skip

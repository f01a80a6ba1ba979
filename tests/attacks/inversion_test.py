"""Gradient inversion: planted examples come back, and the truth never goes in."""

import functools
import inspect
import itertools
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import image_metrics, losses, models, parallel
from fljax.attacks import inversion
from fljax.attacks.inversion import (
    Budget,
    labels,
    objectives,
    points,
    presets,
    seeds,
    solvers,
    spaces,
)
from fljax.types import Features, Model

SHAPE, CLASSES = (8, 8, 1), 4


def _sigmoid_net(sizes):
    """Dense layers with sigmoids between, without compiling for long."""

    def init(key):
        params = {}
        for i, shape in enumerate(itertools.pairwise(sizes)):
            key_w, key_b = jax.random.split(jax.random.fold_in(key, i))
            params[f"Dense_{i}"] = {
                "kernel": jax.random.uniform(key_w, shape, minval=-0.5, maxval=0.5),
                "bias": jax.random.uniform(key_b, shape[1:], minval=-0.5, maxval=0.5),
            }
        return params

    def apply(params, x):
        x = x.ravel()
        for i in range(len(sizes) - 1):
            layer = params[f"Dense_{i}"]
            x = jax.nn.sigmoid(x) if i else x
            x = x @ layer["kernel"] + layer["bias"]
        return x

    return Model(init, apply)


@functools.cache
def _victim():
    """Params, loss of one example, and its mean gradient."""
    model = _sigmoid_net((64, 24, CLASSES))
    params = model.init(jax.random.key(3))
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    return params, loss_fn, jax.jit(points.gradient_of(loss_fn))


@functools.cache
def _cpl(count=1, whitened=False, **budget):
    """One attack for several tests, which is compiled once."""
    solver = solvers.whitened_lbfgs() if whitened else solvers.lbfgs()
    budget = Budget(tolerance=1e-9, **budget)
    return jax.jit(
        presets.cpl(_victim()[2], (count, *SHAPE), solver=solver, budget=budget)
    )


def _images(count, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(count, *SHAPE)).astype(np.float32)
    return x, np.arange(count, dtype=np.int32) % CLASSES


# ---- recovery


@pytest.mark.parametrize("whitened", [False, True], ids=["lbfgs", "whitened"])
def test_cpl_recovers_an_example_and_its_label(whitened):
    params, _, simulate = _victim()
    x, y = _images(1)
    attack = _cpl(whitened=whitened, num_iterations=6)
    found = attack(jax.random.key(0), params, simulate(params, x, y))
    assert found.y == y
    assert image_metrics.rmse(found.x, x) < 0.01
    assert found.path.shape == (6, 1, *SHAPE)
    np.testing.assert_array_equal(found.path[-1], found.x)
    assert (np.diff(found.losses) <= 0).all()
    assert found.losses[-1] == found.loss
    assert found.iterations < 6
    assert 1 <= image_metrics.success(found.path, x, 0.01) <= found.iterations


def test_another_clients_gradient_tells_nothing():
    params, _, simulate = _victim()
    x, y = _images(2)
    observed = simulate(params, x[1:], y[1:])
    found = _cpl(whitened=False, num_iterations=6)(jax.random.key(0), params, observed)
    assert image_metrics.rmse(found.x, x[1:]) < 0.01
    assert image_metrics.rmse(found.x, x[:1]) > 0.3


def test_dlg_finds_the_label_with_the_example():
    params, loss_fn, simulate = _victim()
    x, y = _images(1, seed=1)
    budget = Budget(num_iterations=60, tolerance=1e-9, patience=5)
    attack = presets.dlg(loss_fn, (1, *SHAPE), CLASSES, budget=budget)
    found = jax.jit(attack)(jax.random.key(0), params, simulate(params, x, y))
    assert found.y.shape == (1, CLASSES)
    assert jnp.argmax(found.y[0]) == y[0]
    assert image_metrics.rmse(found.x, x) < 0.02


def test_inverting_gradients_comes_closer_than_its_seed_and_stays_in_the_box():
    params, _, simulate = _victim()
    x, y = _images(1)
    x = np.broadcast_to(x[:, :1, :1], x.shape)
    budget = Budget(num_iterations=200, record_every=60)
    attack = presets.inverting_gradients(simulate, (1, *SHAPE), budget=budget)
    found = jax.jit(attack)(jax.random.key(0), params, simulate(params, x, y))
    assert image_metrics.rmse(found.x, x) < 0.05
    assert found.path.shape == (4, 1, *SHAPE)
    assert found.x.min() >= 0 and found.x.max() <= 1


def test_a_batch_is_recovered_in_some_order():
    params, _, simulate = _victim()
    x, y = _images(2, seed=2)
    observed = simulate(params, x[::-1], y[::-1])
    attack = _cpl(count=2, whitened=True, num_iterations=20, patience=6)
    found = attack(jax.random.key(1), params, observed)
    np.testing.assert_array_equal(found.y, [0, 1])
    order = image_metrics.assign(found.x, x)
    assert image_metrics.rmse(found.x[order], x).max() < 0.02
    assert image_metrics.success(found.path, x[::-1], 0.02) <= 20


def test_an_update_of_several_steps_is_inverted_through_the_training():
    model = _sigmoid_net((5, 12, CLASSES))
    params = model.init(jax.random.key(0))
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    x = np.random.default_rng(0).uniform(size=(2, 5)).astype(np.float32)
    y = np.array([1, 3])
    simulate = points.update_of(loss_fn, 0.3, 4, batch_size=1)
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


def test_an_update_is_what_the_steps_make():
    model = _sigmoid_net((5, 12, CLASSES))
    params = model.init(jax.random.key(0))
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    x, y = jnp.linspace(0, 1, 20).reshape(4, 5), jnp.arange(4)
    returned = params
    for batch in (slice(0, 2), slice(2, 4), slice(0, 2)):
        slope = points.gradient_of(loss_fn)(returned, x[batch], y[batch])
        returned = jax.tree.map(lambda p, g: p - 0.1 * g, returned, slope)
    found = points.update_of(loss_fn, 0.1, 3, 2)(params, x, y)
    expected = jax.tree.map(jnp.subtract, params, returned)
    for ours, theirs in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


# ---- labels


@pytest.mark.parametrize("use_bias", [True, False], ids=["bias", "kernel"])
def test_the_label_of_one_example_is_read_off_the_last_layer(use_bias):
    model = models.cnn(SHAPE, CLASSES, channels=(4, 8), padding=1, use_bias=use_bias)
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    x, y = _images(CLASSES)
    params = model.init(jax.random.key(0))
    grads = jax.jit(jax.vmap(jax.grad(loss_fn), (None, 0, 0)))(params, x, y)
    for index, label in enumerate(y):
        observed = jax.tree.map(operator.itemgetter(index), grads)
        assert labels.infer(labels.last_layer(observed), 1) == label


def test_repeated_labels_of_a_batch_are_counted():
    drawn = np.array([2, 0, 2, 2])
    bias = 1 / 6 - np.bincount(drawn, minlength=6) / len(drawn)
    found = labels.infer({"bias": jnp.asarray(0.01 * bias)}, len(drawn))
    np.testing.assert_array_equal(found, [0, 2, 2, 2])


def test_the_expected_loss_of_a_certain_label_is_its_loss():
    params, loss_fn, _ = _victim()
    x, _ = _images(1)
    loss = labels.expected(loss_fn, CLASSES)(params, x[0], jnp.eye(CLASSES)[2])
    assert loss == pytest.approx(float(loss_fn(params, x[0], 2)), rel=1e-6)


def test_a_message_without_a_known_last_layer_is_refused():
    with pytest.raises(ValueError, match="Dense_<number>"):
        labels.last_layer({"layer": {"kernel": jnp.zeros((2, 2))}})


# ---- spaces and seeds


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


# ---- the engine


def _six_searches(simulate, **budget):
    """Attacks from six seeds on two numbers, side by side."""

    def attack(key):
        space = spaces.examples((1, 2), seeds.uniform, y=jnp.zeros(1, jnp.int32))
        return inversion.invert(
            key, jnp.zeros(2), jnp.array([0.5, 0.25]), simulate, space,
            solvers.lbfgs(memory=5), budget=Budget(**budget),
        )  # fmt: skip

    return jax.jit(jax.vmap(attack))(jax.random.split(jax.random.key(0), 6))


def _miss(found):
    return np.abs(np.asarray(found.x)[:, 0] - [0.5, 0.25]).max(axis=1)


def test_a_loss_that_is_no_number_sends_the_search_to_another_seed():
    # No number wherever the first coordinate is above 0.6: nearly half of the seeds.
    found = _six_searches(
        lambda params, x, y: jnp.where(x[0, 0] > 0.6, jnp.nan, x[0]), num_iterations=20
    )
    assert found.restarts.max() > 0
    assert _miss(found).max() < 1e-3


def test_a_search_that_finds_only_nonsense_ends_with_an_infinite_loss():
    found = _six_searches(lambda params, x, y: x[0] * jnp.nan, num_iterations=4)
    assert (found.loss == jnp.inf).all()
    assert (found.restarts == 4).all()
    assert np.isfinite(found.x).all()


def test_patience_leaves_a_local_minimum():
    # Flat, and far from the observation, above 0.6.
    def simulate(params, x, y):
        return jnp.where(x[0, 0] > 0.6, 2.0 + 0 * x[0], x[0])

    stuck = _six_searches(simulate, num_iterations=30)
    found = _six_searches(simulate, num_iterations=30, patience=2)
    assert _miss(stuck).max() > 0.1
    assert _miss(found).max() < 1e-3
    assert not stuck.restarts.any()


def test_a_search_without_progress_gives_up_and_shows_its_best():
    def simulate(params, x, y):
        return jnp.where(x[0, 0] > 0.6, 2.0 + 0 * x[0], x[0])

    whole = _six_searches(simulate, num_iterations=30, tolerance=1e-12)
    found = _six_searches(simulate, num_iterations=30, tolerance=1e-12, give_up=3)
    stuck = _miss(whole) > 0.1
    assert stuck.any() and not stuck.all()
    assert (found.iterations[stuck] == 4).all()  # the first one is progress
    np.testing.assert_array_equal(found.iterations[~stuck], whole.iterations[~stuck])
    np.testing.assert_array_equal(found.x, whole.x)
    assert (found.path[:, -1] == found.x).all()


def test_more_starts_never_end_worse():
    params, _, simulate = _victim()
    x, y = _images(1, seed=4)
    observed = simulate(params, x, y)
    one, three = (
        attack(jax.random.key(0), params, observed)
        for attack in (
            _cpl(whitened=False, num_iterations=6),
            _cpl(num_iterations=6, starts=3),
        )
    )
    assert (three.losses <= one.losses).all()
    assert three.iterations > one.iterations
    loss = objectives.squared_distance(simulate(params, three.x, three.y), observed)
    assert loss == pytest.approx(float(three.loss), rel=1e-2)


def test_clients_side_by_side_equal_clients_one_by_one():
    params, _, simulate = _victim()
    x, y = _images(3)
    attack = _cpl(whitened=False, num_iterations=6)
    observed = jax.vmap(simulate, (None, 0, 0))(params, x[:, None], y[:, None])

    def one(item, params):
        number, message = item
        return attack(jax.random.fold_in(jax.random.key(0), number), params, message)

    @jax.jit
    def every(observed):
        items = (jnp.arange(3), observed)
        return inversion.over_clients(one, items, params, parallel.mesh(2), at_once=2)

    found = every(observed)
    assert found.x.shape == (3, 1, *SHAPE)
    for i in range(3):
        alone = one((i, jax.tree.map(operator.itemgetter(i), observed)), params)
        np.testing.assert_allclose(found.x[i], alone.x, atol=1e-3)


def test_what_was_pruned_can_be_left_out():
    observed = {"a": jnp.array([0.0, 2.0]), "b": jnp.array([0.0])}
    simulate = points.where_sent(
        lambda params, x, y: {"a": jnp.array([5.0, 3.0]), "b": jnp.ones(1)}, observed
    )
    found = simulate(None, None, None)
    np.testing.assert_array_equal(found["a"], [0.0, 3.0])
    np.testing.assert_array_equal(found["b"], [0.0])


def test_the_truth_is_no_argument():
    names = set(inspect.signature(inversion.invert).parameters)
    assert names == {
        "key", "params", "observed", "simulate", "space", "solver", "distance",
        "prior", "budget",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: solvers.whitened_lbfgs(0.0), "damping"),
        (lambda: points.update_of(losses.squared, 0.1, 0), "num_steps"),
        (lambda: spaces.examples((1, 2), seeds.uniform), "either y or"),
        (
            lambda: spaces.examples((1, 2), seeds.uniform, y=np.zeros(2)),
            "expected 1 labels",
        ),
        (
            lambda: spaces.tabular(None, [spaces.Block(0, 3), spaces.Block(2, 4)]),
            "separate ranges",
        ),
        (
            lambda: _six_searches(lambda p, x, y: x[0], starts=0),
            "counts of 1",
        ),
        (
            lambda: _six_searches(lambda p, x, y: x[0], tolerance=2),
            "tolerance",
        ),
    ],
    ids=["damping", "steps", "no labels", "labels", "blocks", "starts", "tolerance"],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("silent", ["simulated", "observed"])
def test_the_cosine_of_a_vanished_gradient_is_finite(silent):
    some = {"a": jnp.array([3.0, 4.0])}
    zero = {"a": jnp.zeros(2)}
    pair = (zero, some) if silent == "simulated" else (some, zero)
    value, slope = jax.value_and_grad(objectives.cosine_distance)(*pair)
    assert value == pytest.approx(1.0)
    assert np.isfinite(slope["a"]).all()
    assert objectives.cosine_distance(some, {"a": 2 * some["a"]}) == pytest.approx(0)


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (objectives.total_variation, (3 + 0) / 2 + (1 + 2) / 2),
        (objectives.roughness, (9 + 0) / 2 + (1 + 4) / 2),
    ],
    ids=["absolute", "squared"],
)
def test_a_prior_is_the_mean_step_between_neighbours(prior, expected):
    x = jnp.array([[0.0, 1.0], [3.0, 1.0]]).reshape(1, 2, 2, 1)
    assert prior(0.5)(x) == pytest.approx(0.5 * expected)

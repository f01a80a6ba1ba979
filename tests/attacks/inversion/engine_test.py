"""The search itself: seeds anew, patience, giving up, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import losses
from fljax.attacks import inversion
from fljax.attacks.inversion import Budget, points, seeds, solvers, spaces


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


@pytest.mark.slow
def test_a_loss_that_is_no_number_sends_the_search_to_another_seed():
    # No number wherever the first coordinate is above 0.6: nearly half of the seeds.
    found = _six_searches(
        lambda params, x, y: jnp.where(x[0, 0] > 0.6, jnp.nan, x[0]), num_iterations=20
    )
    assert found.restarts.max() > 0
    assert _miss(found).max() < 1e-3


@pytest.mark.slow
def test_a_step_to_no_number_is_not_one_without_progress():
    def simulate(params, x, y):
        return jnp.where(x[0, 0] > 0.6, jnp.nan, x[0])

    found = _six_searches(simulate, num_iterations=20, give_up=1)
    assert found.restarts.max() > 0
    assert np.isfinite(found.loss).all()


@pytest.mark.slow
def test_a_search_that_finds_only_nonsense_ends_with_an_infinite_loss():
    found = _six_searches(lambda params, x, y: x[0] * jnp.nan, num_iterations=4)
    assert (found.loss == jnp.inf).all()
    assert (found.restarts == 4).all()
    assert np.isfinite(found.x).all()


@pytest.mark.slow
def test_patience_leaves_a_local_minimum():
    # Flat, and far from the observation, above 0.6.
    def simulate(params, x, y):
        return jnp.where(x[0, 0] > 0.6, 2.0 + 0 * x[0], x[0])

    stuck = _six_searches(simulate, num_iterations=30)
    found = _six_searches(simulate, num_iterations=30, patience=2)
    assert _miss(stuck).max() > 0.1
    assert _miss(found).max() < 1e-3
    assert not stuck.restarts.any()


@pytest.mark.slow
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


@pytest.mark.parametrize("how", [{"give_up": 5}, {"patience": 5}], ids=str)
def test_small_steps_that_add_up_are_progress(how):
    """Each lowers the loss by less than a thousandth, as one update of Adam does."""

    def step(problem, variables, loss):
        loss = 0.9995 * loss
        return solvers.Step(variables, loss, variables, loss)

    found = inversion.invert(
        jax.random.key(0), jnp.zeros(2), jnp.ones(2), lambda p, x, y: x[0],
        spaces.examples((1, 2), seeds.uniform, y=jnp.zeros(1, jnp.int32)),
        solvers.Solver(lambda _: jnp.float32(1), step),
        budget=Budget(num_iterations=50, **how),
    )  # fmt: skip
    assert found.iterations == 50 and found.restarts == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: solvers.whitened_lbfgs(0.0), "damping"),
        (
            lambda: points.steps_of(points.gradient_of(losses.squared), 0.1, 0),
            "num_steps",
        ),
        (lambda: spaces.examples((1, 2), seeds.uniform), "either y or"),
        (
            lambda: spaces.examples((1, 2), seeds.uniform, y=np.zeros(2)),
            "expected 1 labels",
        ),
        (
            lambda: _six_searches(lambda p, x, y: x[0], starts=0),
            "counts of 1",
        ),
        (
            lambda: _six_searches(lambda p, x, y: x[0], tolerance=2),
            "tolerance",
        ),
        (
            lambda: _six_searches(lambda p, x, y: x[0], patience=3, give_up=3),
            "give_up above patience",
        ),
    ],
    ids=("damping", "steps", "no labels", "labels", "starts", "tolerance", "patience"),
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()

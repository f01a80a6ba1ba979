"""Rows that are solved for where messages hold no noise but rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.trajectory import exact
from fljax.attacks.trajectory.matching import Problem, Settings
from fljax.attacks.trajectory.simulation import Simulator

_ROUNDS, _WIDTH, _ROWS = 4, 40, 9


def _problem(error):
    """Messages that are products of a matrix with the weights of three candidates."""
    rng = np.random.default_rng(0)
    table = jnp.asarray(rng.normal(size=(_ROUNDS, _WIDTH, _ROWS, 3)), jnp.float32)
    truth = rng.integers(0, 3, _ROWS)
    weights = jax.nn.one_hot(truth, 3)
    observed = jnp.einsum("rpnk,nk->rp", table, weights)
    observed += error * rng.normal(size=observed.shape)
    return _of_table(table, weights, observed), truth


def _of_table(table, weights, observed=None):
    if observed is None:
        observed = jnp.einsum("rpnk,nk->rp", table, weights)

    def end(round_, values, scale):
        return scale * jnp.einsum("pnk,nk->p", table[round_], values), round_

    def back(round_, cotangent, values, scale):
        return scale * jnp.einsum("pnk,p->nk", table[round_], cotangent), None

    def relax(logits):
        return jax.nn.softmax(jnp.pad(logits, ((0, 0), (1, 0))))

    rounding = jnp.full(observed.shape, 1e-6)
    return Problem(
        observed, observed, Simulator(end, back), relax, jnp.ones(()), Settings(),
        rounding=rounding,
    )  # fmt: skip


def test_values_are_found_to_rounding():
    problem, truth = _problem(error=1e-6)
    logits = exact.start(jax.random.key(0), problem, jnp.zeros((_ROWS, 2)))
    values = problem.relax(logits)
    np.testing.assert_allclose(values, jax.nn.one_hot(truth, 3), atol=1e-3)


def _off(problem, logits):
    return float(exact._squares(problem, problem.relax(logits)))


@pytest.mark.parametrize("error", [1e-2, 1.0])
def test_the_search_begins_at_what_comes_nearest_where_more_is_left(error):
    problem, truth = _problem(error)
    logits = jnp.zeros((_ROWS, 2))
    found = exact.start(jax.random.key(0), problem, logits)
    assert _off(problem, found) < 0.3 * _off(problem, logits)
    if error < 1:
        assert (problem.relax(found).argmax(axis=1) == truth).all()


@pytest.mark.slow
def test_single_values_of_many_are_found_from_fewer_equations_than_weights():
    rng = np.random.default_rng(0)
    count, width = 30, 12
    table = jnp.asarray(rng.normal(size=(_ROUNDS, width, _ROWS, count)), jnp.float32)
    truth = rng.integers(0, count, _ROWS)  # 9 of 30 each; 48 equations of 261 weights
    problem = _of_table(table, jax.nn.one_hot(truth, count))
    found = exact.start(jax.random.key(0), problem, jnp.zeros((_ROWS, count - 1)))
    right = problem.relax(found).argmax(axis=1) == truth
    assert right.mean() > 0.7 and _off(problem, found) < 1e-2


def test_too_many_values_stay_as_they_are():
    problem, _ = _problem(error=1e-6)
    logits = jnp.ones((_ROWS, exact.MOST // _ROWS + 1))
    assert exact.start(jax.random.key(0), problem, logits) is logits

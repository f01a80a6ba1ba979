"""Rows that are solved for where messages hold no noise but rounding."""

import jax
import jax.numpy as jnp
import numpy as np

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

    def end(round_, values, scale):
        return scale * jnp.einsum("pnk,nk->p", table[round_], values), round_

    def back(round_, cotangent, values, scale):
        return scale * jnp.einsum("pnk,p->nk", table[round_], cotangent), None

    def relax(logits):
        return jax.nn.softmax(jnp.pad(logits, ((0, 0), (1, 0))))

    rounding = jnp.full(observed.shape, 1e-6)
    problem = Problem(
        observed, observed, Simulator(end, back), relax, jnp.ones(()), Settings(),
        rounding=rounding,
    )  # fmt: skip
    return problem, truth


def test_values_are_found_to_rounding():
    problem, truth = _problem(error=1e-6)
    logits = exact.start(jax.random.key(0), problem, jnp.zeros((_ROWS, 2)), True)
    values = problem.relax(logits)
    np.testing.assert_allclose(values, jax.nn.one_hot(truth, 3), atol=1e-3)


def test_the_search_begins_as_ever_where_more_than_rounding_is_left():
    problem, _ = _problem(error=1e-2)
    logits = jnp.ones((_ROWS, 2))
    found = exact.start(jax.random.key(0), problem, logits, True)
    np.testing.assert_array_equal(found, logits)

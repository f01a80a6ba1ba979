"""How far trajectory matching believes where its search ended, on linear messages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.trajectory import matching, noise, posterior
from fljax.attacks.trajectory.matching import Point, Problem, Settings, Unexplained
from fljax.attacks.trajectory.simulation import Simulator

_ROWS, _WIDTH = 12, 40


def _searched(believed, truth, num_rounds=30, size=0.1, seed=0):
    """A search that ended in what is believed, with noise of that size."""
    rng = np.random.default_rng(seed)
    maps = jnp.asarray(rng.normal(size=(num_rounds, _WIDTH, _ROWS)))
    drawn = size * rng.normal(size=(num_rounds, _WIDTH))
    observed = jnp.einsum("rwn,n->rw", maps, truth) + drawn
    simulator = Simulator(
        lambda t, values, scale: (maps[t] @ values[:, 1], t),
        lambda t, cotangent, values, scale: (
            jnp.stack([jnp.zeros(_ROWS), maps[t].T @ cotangent], axis=1),
            jnp.zeros(()),
        ),
    )
    problem = Problem(
        observed,
        observed,
        simulator,
        lambda logits: jax.nn.softmax(jnp.pad(logits, ((0, 0), (1, 0)))),
        jnp.ones(()),
        Settings(),
    )
    odds = jnp.log(believed) - jnp.log1p(-believed)
    residuals = jnp.einsum("rwn,n->rw", maps, believed) - observed
    left = Unexplained(residuals, jnp.ones(num_rounds, bool), noise.estimate(residuals))
    point = Point(odds[:, None], jnp.zeros(()))
    return problem, point, left


def _share(believed, truth, **case):
    """Of the way from even odds to what is believed."""
    problem, point, left = _searched(believed, truth, **case)
    even = jnp.full((_ROWS, 2), 0.5)
    toward = jax.jit(lambda *a: posterior.toward_end(problem, *a, 1.0)[0])
    found = toward(point, left, even)
    way = believed - even[:, 1]
    return float(way @ (found - even)[:, 1] / (way @ way))


def _told(begun, misfit=1.0, **case):
    """Where the search ended in the truth: accuracy, and mean probability of the truth."""
    problem, point, left = _searched(_RIGHT, _TRUTH, **case)
    odds = jnp.log(begun) - jnp.log1p(-begun)
    key, misfit = jax.random.key(0), jnp.asarray(misfit)
    weights = jax.jit(lambda key, *a: posterior.posterior(key, problem, *a))(
        key, odds[None, :, None], point, left, misfit
    )
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    right = jnp.where(_TRUTH == 1, weights[:, 1], weights[:, 0])
    return float(jnp.mean(right > 0.5)), float(jnp.mean(right))


_TRUTH = jnp.asarray(np.random.default_rng(1).integers(0, 2, _ROWS), jnp.float32)
_RIGHT = 0.02 + 0.96 * _TRUTH


@pytest.mark.slow
def test_what_held_out_rounds_confirm_is_believed():
    assert _share(_RIGHT, _TRUTH) > 0.95


@pytest.mark.slow
def test_what_they_contradict_is_not():
    assert _share(1 - _RIGHT, _TRUTH) == 0.0


def test_half_of_it_is_believed_to_that_extent():
    """Where every other row is wrong, the best mix with even odds is even odds."""
    wrong = jnp.where(jnp.arange(_ROWS) % 2 == 0, _RIGHT, 1 - _RIGHT)
    assert _share(wrong, _TRUTH) < 0.3


def test_where_they_tell_nothing_it_is_not_believed():
    assert _share(_RIGHT, _TRUTH, size=1e3) < 0.1


@pytest.mark.slow
def test_where_messages_tell_nothing_the_start_is_believed():
    accuracy, right = _told(0.8 - 0.6 * _TRUTH, size=1e3)
    assert accuracy == 0.0 and 0.2 < right < 0.4


@pytest.mark.parametrize("begun", [_RIGHT, 0.5 + 0 * _RIGHT, 1 - _RIGHT])
def test_where_messages_tell_all_a_wrong_start_does_no_harm(begun):
    accuracy, sure = _told(begun)
    assert accuracy == 1.0 and sure > 0.95


@pytest.mark.slow
def test_a_misfit_makes_rows_less_sure_and_its_lack_no_surer():
    few = {"num_rounds": 3, "size": 3.0}
    (_, less), (_, usual), (_, surer) = (
        _told(_RIGHT, misfit, **few) for misfit in (4.0, 1.0, 0.1)
    )
    assert 0.5 < less < usual - 0.02 and usual == surer


@pytest.mark.slow
def test_a_search_returns_to_where_held_out_rounds_are_explained_best():
    problem, start, _ = _searched(_RIGHT, _TRUTH)
    far = Settings(rate=50.0, stages=1, checkpoints=1, iterations=1)
    problem = problem._replace(settings=far)
    found, left = matching.search(jax.random.key(0), problem, start)
    np.testing.assert_array_equal(found.logits, start.logits)
    _, expected = matching.still(problem, start.logits)
    np.testing.assert_allclose(left.residuals, expected.residuals, atol=1e-6)


def test_without_held_out_rounds_the_start_counts_for_nothing():
    wrong, right = (_told(begun, num_rounds=3) for begun in (1 - _RIGHT, _RIGHT))
    assert wrong == right

"""Where a search on sums begins, on messages that are linear in the sensitive values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from fljax.attacks.trajectory import associations
from fljax.attacks.trajectory.matching import Problem, Settings
from fljax.attacks.trajectory.simulation import Simulator
from fljax.types import Features, Known

_CLIENTS, _ROWS, _WIDTH, _ROUNDS = 3, 40, 30, 12
_SIGNS = np.array([1, -1, 1])  # of a value with the target, in each client


def _started(logits, num_rounds=_ROUNDS, size=0.1, spoilt=False):
    """Where the search begins, and the values behind sums of all clients."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(_CLIENTS, _ROWS))
    truth = (_SIGNS[:, None] * y + 0.5 * rng.normal(size=y.shape) > 0).astype(
        np.float32
    )
    y[:, -1] = np.nan  # no row
    mask = np.ones(y.shape, bool)
    mask[:, -1] = False
    maps = jnp.asarray(rng.normal(size=(num_rounds, _CLIENTS, _WIDTH, _ROWS)))
    maps = maps * mask[None, :, None]
    seen = jnp.einsum("rmwn,mn->rw", maps, truth)
    seen = seen + size * rng.normal(size=seen.shape) + (jnp.nan if spoilt else 0.0)

    def members(t, values):
        return jnp.arange(_CLIENTS), jnp.einsum("mwn,mn->mw", maps[t], values[..., 1])

    def relax(logits):
        return jax.nn.softmax(jnp.pad(logits, ((0, 0), (0, 0), (1, 0))))

    unused = Simulator(lambda *_: None, lambda *_: None)
    problem = Problem(seen, seen, unused, relax, jnp.ones(()), Settings())
    public = Features(np.zeros((_CLIENTS, _ROWS, 1)), np.zeros((_CLIENTS, _ROWS, 0)))
    known = jax.tree.map(jnp.asarray, Known(public, y, mask))
    found = associations.start(
        members, problem, known, logits, _CLIENTS, associations.ways(2, False)
    )
    return found, truth, mask


_NOTHING = jnp.zeros((_CLIENTS, _ROWS, 1))


def _right(found, truth, mask):
    """Share of rows of each client."""
    hit = (np.asarray(found)[..., 0] > 0) == (truth == 1)
    return (hit & mask).sum(axis=1) / mask.sum(axis=1)


@pytest.mark.slow
def test_each_client_begins_with_its_own_association():
    assert _right(*_started(_NOTHING)).min() > 0.7


@pytest.mark.slow
def test_what_the_model_tells_is_turned_round_where_a_client_is_the_other_way():
    rng = np.random.default_rng(1)
    _, truth, mask = _started(_NOTHING)
    told = (2 * truth - 1) * _SIGNS[:, None] * rng.uniform(0.5, 1.5, truth.shape)
    found, *_ = _started(jnp.asarray(told, jnp.float32)[..., None])
    assert _right(told[..., None], truth, mask)[1] == 0.0
    assert _right(found, truth, mask).min() == 1.0


@pytest.mark.parametrize(
    "case", [{"num_rounds": 2}, pytest.param({"spoilt": True}, marks=pytest.mark.slow)]
)
def test_what_tells_nothing_changes_nothing(case):
    begun = jnp.full_like(_NOTHING, 0.7)
    np.testing.assert_array_equal(_started(begun, **case)[0], begun)


@pytest.mark.slow
def test_under_strong_noise_it_begins_with_what_the_model_tells():
    rng = np.random.default_rng(1)
    _, truth, mask = _started(_NOTHING)
    told = (2 * truth - 1) * rng.uniform(0.5, 1.5, truth.shape)
    found, *_ = _started(jnp.asarray(told, jnp.float32)[..., None], size=1e3)
    assert _right(found, truth, mask).min() == 1.0


def test_a_target_that_is_one_number_is_no_direction():
    known = Known(None, jnp.full((2, 1001), 1234.567), jnp.ones((2, 1001), bool))
    directions = associations._directions(
        known, jnp.ones((2, 1001, 1)), associations.ways(2, False)
    )
    np.testing.assert_array_equal(directions[1], 0)


@pytest.mark.parametrize("own", [1.0, 0.1], ids=["apart", "alike"])
def test_the_least_is_that_of_bounded_least_squares(own):
    """Also where all columns have nearly all of their length in common."""
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(400, 1)) + own * rng.normal(size=(400, 24))
    wanted = matrix @ rng.normal(size=24) + rng.normal(size=400)
    found = associations.least(
        *map(jnp.asarray, (matrix.T @ matrix, -matrix.T @ wanted))
    )
    other = scipy.optimize.lsq_linear(matrix, wanted, (0, 1))
    np.testing.assert_allclose(found, other.x, atol=0.01)

"""Rows of an epoch's local steps: all of them in their order, proven by the steps."""

import jax
import numpy as np
import pytest

from fljax.attacks.rows import epoch, network, repeated
from fljax.attacks.rows.steps import Steps, moved

_STEPS = Steps(2, 0.1, 2)


def _recovered(problem, message, steps=_STEPS):
    schema, params, loss_fn = problem.schema, problem.params, problem.loss_fn
    asked = params, message, loss_fn, steps, schema, len(problem.y)
    return epoch.recover(*asked, np.arange(2))


def _message(problem, steps=_STEPS):
    x = problem.schema.encode(problem.raw)
    return moved(problem.params, problem.loss_fn, x, problem.y, steps)


@pytest.mark.parametrize("hidden", [(24, 24), (24,)], ids=["units", "deltas"])
def test_rows_come_with_their_targets_in_the_order_of_their_steps(problem, hidden):
    given = problem(hidden, len(hidden), 1)
    found = _recovered(given, _message(given))
    assert found.exact and found.explained > 1 - 1e-5
    for step in (slice(0, 2), slice(2, 4)):
        truth = np.column_stack([given.raw, given.y])[step]
        read = np.column_stack([found.raw, found.y])[step]
        np.testing.assert_array_equal(np.unique(read, axis=0), np.unique(truth, axis=0))


def test_steps_are_over_their_own_rows(problem):
    given = problem((24, 24), 2, 1)
    first = _message(given._replace(raw=given.raw[:2], y=given.y[:2]), Steps(1, 0.1))
    both, whole = _message(given), _message(given, Steps(2, 0.1))
    second = jax.tree.map(lambda both, first: 2 * both - first, both, first)
    there = jax.tree.map(
        lambda leaf, step: leaf - np.float32(0.1) * step, given.params, first
    )
    after = given._replace(raw=given.raw[2:], y=given.y[2:], params=there)
    for ours, theirs in zip(
        jax.tree.leaves(second),
        jax.tree.leaves(_message(after, Steps(1, 0.1))),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=2e-6)
    assert network.missed(whole, both) > 1e-3


def _whole(given) -> int:
    """Rows that are found with every digit."""
    found = _recovered(given, _message(given))
    return sum(bool((found.raw == row).all(axis=1).any()) for row in given.raw)


@pytest.mark.parametrize("seed", [5, 6])
def test_digits_that_rounding_hides_are_solved_for_by_the_steps(
    problem, seed, monkeypatch
):
    given = problem((24, 24), 2, seed)
    mean, scale, high = (
        leaf.astype(float)
        for leaf in (given.schema.mean, given.schema.scale, given.schema.high)
    )
    mean[11], scale[11], high[1] = 1e6, 3e5, 2e6
    raw = given.raw.copy()
    raw[:, 11] = np.random.default_rng(seed + 50).integers(0, 2_000_000, len(raw))
    schema = given.schema._replace(mean=mean, scale=scale, high=high)
    given = given._replace(schema=schema, raw=raw)
    assert _whole(given) == 4
    monkeypatch.setattr(epoch, "_TIMES", 0)
    assert _whole(given) < 4


def test_a_wrong_rate_is_not_proven(problem):
    given = problem((24, 24), 2, 1)
    found = _recovered(given, _message(given), _STEPS._replace(rate=0.3))
    assert not found.exact


def test_nothing_is_proven_of_noise(problem):
    given = problem((24, 24), 2, 1)
    draws = np.random.default_rng(0)
    noise = jax.tree.map(
        lambda leaf: np.float32(draws.normal(size=leaf.shape)), given.params
    )
    found = _recovered(given, noise)
    assert not found.exact and found.explained < 0.5


def test_steps_over_other_numbers_of_rows_are_refused(problem):
    given = problem((24, 24), 2, 1)
    with pytest.raises(ValueError, match="steps: expected 4 rows in all, got 3 of 2"):
        _recovered(given, _message(given), _STEPS._replace(count=3))


def test_a_message_of_nothing_holds_no_rows(problem):
    given = problem((24, 24), 2, 1)
    nothing = jax.tree.map(np.zeros_like, given.params)
    asked = given.params, nothing, given.loss_fn, _STEPS, given.schema, len(given.y)
    for found in (
        epoch.recover(*asked, np.arange(2)),
        repeated.recover(*asked, np.arange(2)),
    ):
        assert not len(found.raw) and not found.exact and found.explained == 0

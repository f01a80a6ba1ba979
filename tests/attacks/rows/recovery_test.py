"""Rows of a table from one gradient: all of them, and none where there is none."""

import jax
import numpy as np
import pytest

from fljax.attacks import rows
from fljax.attacks.rows import repeated
from fljax.attacks.rows.steps import Steps, moved

_ROWS, _WIDTH = 4, 24


def _sorted(raw: np.ndarray, y: np.ndarray) -> np.ndarray:
    every = np.column_stack([raw, y])
    return every[np.lexsort(every.T)]


@pytest.mark.parametrize(
    ("hidden", "outputs"),
    [((_WIDTH, _WIDTH), 2), ((_WIDTH,), 1)],
    ids=["units", "deltas"],
)
def test_rows_and_targets_of_a_batch_are_found_and_proven(problem, hidden, outputs):
    schema, raw, y, params, loss_fn = given = problem(hidden, outputs, 1)
    message = given.message()
    found = rows.recover(params, message, loss_fn, schema, _ROWS, np.arange(2))
    assert found.exact
    np.testing.assert_array_equal(_sorted(found.raw, found.y), _sorted(raw, y))


def test_nothing_is_proven_of_a_message_of_noise(problem):
    schema, _, _, params, loss_fn = given = problem((_WIDTH, _WIDTH), 2, 1)
    message = given.message()
    draws = np.random.default_rng(0)
    noise = jax.tree.map(
        lambda leaf: np.float32(draws.normal(size=leaf.shape)), message
    )
    found = rows.recover(params, noise, loss_fn, schema, _ROWS, np.arange(2))
    assert not found.exact and found.explained < 0.5


def test_a_row_that_is_twice_in_the_batch_is_given_twice(problem):
    schema, raw, y, params, loss_fn = problem((_WIDTH, _WIDTH), 2, 1)
    raw[3], y[3] = raw[2], y[2]
    asked = rows.Network(params, loss_fn)
    message = asked.message(schema.encode(raw), y, np.full(_ROWS, 1 / _ROWS))
    found = rows.recover(params, message, loss_fn, schema, _ROWS, np.arange(2))
    assert found.exact
    np.testing.assert_array_equal(_sorted(found.raw, found.y), _sorted(raw, y))


def test_rows_of_several_steps_are_proven_by_these_steps_and_no_others(problem):
    schema, raw, y, params, loss_fn = problem((_WIDTH, _WIDTH), 2, 1)
    steps = Steps(3, 0.05)
    message = moved(params, loss_fn, schema.encode(raw), y, steps)
    sent, about = (params, message, loss_fn), (schema, _ROWS, np.arange(2), 1000)
    found = repeated.recover(*sent, steps, *about)
    assert found.exact
    np.testing.assert_array_equal(_sorted(found.raw, found.y), _sorted(raw, y))
    other = repeated.recover(*sent, steps._replace(rate=0.1), *about)
    assert not other.exact and other.explained < 0.999
    one = moved(params, loss_fn, schema.encode(raw), y, Steps(1, 1.0))
    off = jax.tree.map(lambda ours, theirs: np.abs(ours - theirs).max(), one, message)
    assert 1e-3 < max(jax.tree.leaves(off)) < 0.3


def test_where_categories_leave_numbers_open_several_steps_tell_no_row(problem):
    schema, raw, y, params, loss_fn = problem((_WIDTH, _WIDTH), 2, 1)
    raw[1, :10] = raw[0, :10]
    steps = Steps(2, 0.05)
    message = moved(params, loss_fn, schema.encode(raw), y, steps)
    sent, about = (params, message, loss_fn), (schema, _ROWS, np.arange(2), 1000)
    found = repeated.recover(*sent, steps, *about)
    assert not found.exact and not len(found.raw)

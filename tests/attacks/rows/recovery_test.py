"""Rows of a table from one gradient: all of them, and none where there is none."""

import jax
import numpy as np
import pytest

from fljax import losses
from fljax.attacks import rows
from fljax.attacks.rows import repeated
from fljax.models import mlp

_ROWS, _WIDTH, _COLUMNS = 4, 24, 12


def _schema() -> rows.Schema:
    """Three groups, one with a reference and one of a single column, and two numbers."""
    mean, scale = np.zeros(_COLUMNS), np.ones(_COLUMNS)
    mean[10:], scale[10:] = (40, 10), (12, 30)
    mean[:5], scale[:5] = 0.2, 0.4
    return rows.Schema(
        groups=(
            rows.Group((0, 1, 2, 3, 4)),
            rows.Group((5, 6, 7, 8), reference=True),
            rows.Group((9,), reference=True),
        ),
        numbers=np.array([10, 11]),
        mean=mean,
        scale=scale,
        low=np.array([18, 0]),
        high=np.array([90, 200]),
        whole=np.array([True, True]),
    )


def _table(schema: rows.Schema, seed: int) -> np.ndarray:
    draws = np.random.default_rng(seed)
    raw = np.zeros((_ROWS, _COLUMNS))
    raw[np.arange(_ROWS), draws.permutation(5)[:_ROWS]] = 1
    last = draws.integers(0, 5, _ROWS)
    for row, column in enumerate(last):
        raw[row, 5 + column : 6 + column] = column < 4
    raw[:, 9] = draws.integers(0, 2, _ROWS)
    raw[:, 10] = draws.integers(18, 91, _ROWS)
    raw[:, 11] = draws.integers(0, 2, _ROWS) * draws.integers(1, 200, _ROWS)
    return raw


def _problem(hidden: tuple[int, ...], outputs: int, seed: int):
    schema = _schema()
    raw = _table(schema, seed)
    y = np.random.default_rng(seed).integers(0, 2, _ROWS)
    model = mlp(_COLUMNS, hidden=hidden, outputs=outputs)
    element = losses.logistic if outputs == 1 else losses.cross_entropy
    loss_fn = losses.example_loss(model.apply, element)
    params = model.init(jax.random.key(seed))
    asked = rows.Network(params, loss_fn)
    message = asked.message(schema.encode(raw), y, np.full(_ROWS, 1 / _ROWS))
    return schema, raw, y, params, message, loss_fn


def _sorted(raw: np.ndarray, y: np.ndarray) -> np.ndarray:
    every = np.column_stack([raw, y])
    return every[np.lexsort(every.T)]


@pytest.mark.parametrize(
    ("hidden", "outputs"),
    [((_WIDTH, _WIDTH), 2), ((_WIDTH,), 1)],
    ids=["units", "deltas"],
)
def test_rows_and_targets_of_a_batch_are_found_and_proven(hidden, outputs):
    schema, raw, y, params, message, loss_fn = _problem(hidden, outputs, 1)
    found = rows.recover(params, message, loss_fn, schema, _ROWS, np.arange(2))
    assert found.exact
    np.testing.assert_array_equal(_sorted(found.raw, found.y), _sorted(raw, y))


def test_nothing_is_proven_of_a_message_of_noise():
    schema, _, _, params, message, loss_fn = _problem((_WIDTH, _WIDTH), 2, 1)
    draws = np.random.default_rng(0)
    noise = jax.tree.map(
        lambda leaf: np.float32(draws.normal(size=leaf.shape)), message
    )
    found = rows.recover(params, noise, loss_fn, schema, _ROWS, np.arange(2))
    assert not found.exact and found.explained < 0.5


def test_a_row_that_is_twice_in_the_batch_is_given_twice():
    schema, raw, y, params, _, loss_fn = _problem((_WIDTH, _WIDTH), 2, 1)
    raw[3], y[3] = raw[2], y[2]
    asked = rows.Network(params, loss_fn)
    message = asked.message(schema.encode(raw), y, np.full(_ROWS, 1 / _ROWS))
    found = rows.recover(params, message, loss_fn, schema, _ROWS, np.arange(2))
    assert found.exact
    np.testing.assert_array_equal(_sorted(found.raw, found.y), _sorted(raw, y))


def test_rows_of_several_steps_are_proven_by_these_steps_and_no_others():
    schema, raw, y, params, _, loss_fn = _problem((_WIDTH, _WIDTH), 2, 1)
    steps = repeated.Steps(3, 0.05)
    message = repeated.moved(params, loss_fn, schema.encode(raw), y, steps)
    sent, about = (params, message, loss_fn), (schema, _ROWS, np.arange(2), 1000)
    found = repeated.recover(*sent, steps, *about)
    assert found.exact
    np.testing.assert_array_equal(_sorted(found.raw, found.y), _sorted(raw, y))
    other = repeated.recover(*sent, steps._replace(rate=0.1), *about)
    assert not other.exact and other.explained < 0.999
    one = repeated.moved(params, loss_fn, schema.encode(raw), y, repeated.Steps(1, 1.0))
    off = jax.tree.map(lambda ours, theirs: np.abs(ours - theirs).max(), one, message)
    assert 1e-3 < max(jax.tree.leaves(off)) < 0.3


def test_where_categories_leave_numbers_open_several_steps_tell_no_row():
    schema, raw, y, params, _, loss_fn = _problem((_WIDTH, _WIDTH), 2, 1)
    raw[1, :10] = raw[0, :10]
    steps = repeated.Steps(2, 0.05)
    message = repeated.moved(params, loss_fn, schema.encode(raw), y, steps)
    sent, about = (params, message, loss_fn), (schema, _ROWS, np.arange(2), 1000)
    found = repeated.recover(*sent, steps, *about)
    assert not found.exact and not len(found.raw)

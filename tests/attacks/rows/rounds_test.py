"""Rows behind gradients at many models: all of them, to rounding, and proven."""

import jax
import numpy as np
import pytest

from fljax.attacks.rows import rounds
from fljax.attacks.rows.network import Network
from fljax.models import mlp

_MODELS = 8


def _models(hidden):
    model = mlp(12, hidden=hidden)
    keys = jax.random.split(jax.random.key(3), _MODELS)
    return jax.device_get(jax.vmap(model.init)(keys))


def _messages(problem, params):
    x, shares = problem.schema.encode(problem.raw), np.full(len(problem.y), 0.25)

    def at(number):
        own = jax.tree.map(lambda leaf: leaf[number], params)
        return Network(own, problem.loss_fn).message(x, problem.y, shares)

    return jax.tree.map(lambda *leaves: np.stack(leaves), *map(at, range(_MODELS)))


def _recovered(problem, params, message, **how):
    return rounds.recover(
        params, message, problem.loss_fn, problem.schema, len(problem.y), (0, 1), **how
    )


@pytest.mark.parametrize(
    "hidden",
    [(16,), pytest.param((12, 12), marks=pytest.mark.slow)],
    ids=["one hidden", "two hidden"],
)
def test_rows_and_targets_are_found_and_proven(problem, hidden):
    given = problem(hidden, 1, 1)
    params = _models(hidden)
    found = _recovered(given, params, _messages(given, params))
    assert found.exact and found.explained > 1 - 1e-4
    truth = np.column_stack([given.raw, given.y])
    read = np.column_stack([found.raw, np.round(found.y)])
    np.testing.assert_array_equal(np.unique(read, axis=0), np.unique(truth, axis=0))
    np.testing.assert_allclose(found.y, np.round(found.y), atol=1e-3)


@pytest.mark.slow
def test_nothing_is_proven_of_noise_or_of_too_few_rows(problem):
    given = problem((16,), 1, 1)
    params = _models((16,))
    message = _messages(given, params)
    fewer = given._replace(raw=given.raw[:2], y=given.y[:2])
    assert not _recovered(fewer, params, message, searches=2).exact
    draws = np.random.default_rng(0)
    noise = jax.tree.map(
        lambda leaf: np.float32(draws.normal(size=leaf.shape)), message
    )
    found = _recovered(given, params, noise, searches=1)
    assert not found.exact and found.explained < 0.5


def test_the_same_seed_finds_the_same(problem):
    given = problem((16,), 1, 2)
    params = _models((16,))
    message = _messages(given, params)
    first, second = (
        _recovered(given, params, message, seed=5, searches=2) for _ in range(2)
    )
    np.testing.assert_array_equal(first.raw, second.raw)
    np.testing.assert_array_equal(first.y, second.y)


def _judged(problem, params, message, raw):
    z = np.column_stack([problem.schema.encode(raw), problem.y])
    return rounds.judged(params, message, problem.loss_fn, problem.schema, z)


def test_what_is_proven_are_the_rows_and_none_close_by(problem):
    given = problem((16,), 1, 1)
    params = _models((16,))
    message = _messages(given, params)
    assert _judged(given, params, message, given.raw).exact
    older = given.raw.copy()
    older[0, 10] += 1
    assert not _judged(given, params, message, older).exact
    others = given.raw.copy()
    others[0, 9] = 1 - others[0, 9]
    assert not _judged(given, params, message, others).exact


def test_one_message_in_ten_may_be_missed_and_no_more(problem):
    given = problem((16,), 1, 1)
    params = _models((16,))
    message = _messages(given, params)
    wide = jax.tree.map(lambda leaf: np.concatenate([leaf] * 3), (params, message))

    def spoilt(count):
        sent = jax.tree.map(np.copy, wide[1])
        sent["Dense_0"]["bias"][:count] += 1
        return _judged(given, wide[0], sent, given.raw).exact

    assert spoilt(2) and not spoilt(3)


def test_nothing_is_proven_where_other_rows_give_the_same(problem):
    given = problem((16,), 1, 1)
    params = _models((16,))
    first = params["TabularDense_0"]
    first["bias"] = first["bias"] + 100  # all units on: nothing but sums is seen
    found = _judged(given, params, _messages(given, params), given.raw)
    assert found.explained > 1 - 1e-4 and not found.exact


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "no gradient of zeros, got 8"), (np.nan, "finite numbers")],
)
def test_gradients_that_tell_nothing_are_refused(problem, value, said):
    given = problem((16,), 1, 1)
    params = _models((16,))
    message = jax.tree.map(lambda leaf: np.full_like(leaf, value), params)
    with pytest.raises(ValueError, match=said):
        _recovered(given, params, message)


def test_other_networks_than_those_of_relu_are_refused(problem):
    given = problem((16,), 1, 1, activation="gelu")
    params = _models((16,))
    with pytest.raises(ValueError, match="expected a network with ReLU, got gelu"):
        _recovered(given, params, params)


def test_arguments_out_of_range_are_refused(problem):
    given = problem((16,), 1, 1)
    params = _models((16,))
    message = _messages(given, params)
    asked = params, message, given.loss_fn, given.schema
    with pytest.raises(ValueError, match="rows, searches: expected at least 1"):
        rounds.recover(*asked, 0, (0, 1))
    with pytest.raises(ValueError, match="targets: expected least below largest"):
        rounds.recover(*asked, 4, (1, 0))


def test_messages_that_are_missed_do_not_prove_a_row_that_no_other_has(problem):
    given = problem((16,), 1, 1)
    params = _models((16,))
    x = given.schema.encode(given.raw)
    # A kernel that switches the first row off in all models but the first.
    layer = {k: v.copy() for k, v in params["TabularDense_0"].items()}
    hidden = np.einsum("d,qdh->qh", x[0], layer["kernel"]) + layer["bias"]
    aside = x[0] - x[1:].T @ np.linalg.lstsq(x[1:].T, x[0])[0]
    aside /= aside @ x[0]
    layer["kernel"][1:] -= np.einsum("d,qh->qdh", aside, np.abs(hidden) + hidden + 1)[
        1:
    ]
    params = {**params, "TabularDense_0": layer}
    message = _messages(given, params)
    # Many copies of the others, so that nine in ten of the messages are theirs.
    often = np.r_[0, np.tile(np.arange(1, _MODELS), 2)]
    params, message = jax.tree.map(lambda leaf: leaf[often], (params, message))
    assert _judged(given, params, message, given.raw).exact
    older = given.raw.copy()
    older[0, 10] += 1
    assert not _judged(given, params, message, older).exact

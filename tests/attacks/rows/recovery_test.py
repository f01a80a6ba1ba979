"""Rows of a table from one gradient: all of them, and none where there is none."""

import jax
import numpy as np
import pytest

from fljax import losses
from fljax.attacks import rows
from fljax.attacks.rows import network, numbers, polish, repeated
from fljax.attacks.rows.categories import Rows
from fljax.attacks.rows.steps import Steps, moved
from fljax.models import mlp

_ROWS, _WIDTH, _MANY = 4, 24, 18


def _sorted(raw: np.ndarray, y: np.ndarray) -> np.ndarray:
    every = np.column_stack([raw, y])
    return every[np.lexsort(every.T)]


@pytest.mark.parametrize(
    ("hidden", "outputs", "network"),
    [
        ((_WIDTH, _WIDTH), 2, {}),
        pytest.param(
            (_WIDTH, _WIDTH), 2, {"activation": "gelu"}, marks=pytest.mark.slow
        ),
        pytest.param(
            (_WIDTH, _WIDTH),
            2,
            {"activation": "gelu", "norm": "layernorm"},
            marks=pytest.mark.slow,
        ),
        ((_WIDTH,), 1, {}),
    ],
    ids=["units", "gelu", "layernorm", "deltas"],
)
def test_rows_and_targets_of_a_batch_are_found_and_proven(
    problem, hidden, outputs, network
):
    schema, raw, y, params, loss_fn = given = problem(hidden, outputs, 1, **network)
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


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("hidden", [(_WIDTH,), (_WIDTH, _WIDTH)])
def test_nothing_is_found_in_a_message_of_zeros(problem, hidden):
    schema, _, _, params, loss_fn = problem(hidden, 2, 1)
    nothing = jax.tree.map(np.zeros_like, params)
    found = rows.recover(params, nothing, loss_fn, schema, _ROWS, np.arange(2))
    assert not len(found.raw) and not found.exact


def test_a_row_that_is_twice_in_the_batch_is_given_twice(problem):
    schema, raw, y, params, loss_fn = problem((_WIDTH, _WIDTH), 2, 1)
    raw[3], y[3] = raw[2], y[2]
    asked = rows.Network(params, loss_fn)
    message = asked.message(schema.encode(raw), y, np.full(_ROWS, 1 / _ROWS))
    found = rows.recover(params, message, loss_fn, schema, _ROWS, np.arange(2))
    np.testing.assert_array_equal(_sorted(found.raw, found.y), _sorted(raw, y))
    # Moved apart along what no unit sees, the two have the same message.
    assert found.explained > 1 - 1e-6 and not found.exact


@pytest.mark.slow
def test_two_rows_that_only_their_mean_is_told_of_are_not_proven(problem):
    schema, raw, y, params, loss_fn = problem((10,), 2, 5)
    raw, y = raw[:3], y[:3]
    raw[1, :10], y[1] = raw[0, :10], y[0]
    shares = np.full(3, 1 / 3)
    message = rows.Network(params, loss_fn).message(schema.encode(raw), y, shares)
    found = rows.recover(params, message, loss_fn, schema, 3, np.arange(2))
    assert found.explained > 1 - 1e-5 and not found.exact
    mean = raw[:2, schema.numbers].mean(axis=0)
    np.testing.assert_array_equal(found.raw[-2:, schema.numbers], [mean, mean])


@pytest.mark.parametrize("seed", [0, 2])
def test_numbers_that_the_message_leaves_open_are_not_proven(problem, seed):
    """Two rows of one class that differ in their numbers alone, which are no integers.

    With one of the two networks the message tells them, with the other hardly.
    """
    schema, raw, y, params, loss_fn = problem((_WIDTH, _WIDTH), 2, seed)
    schema = schema._replace(whole=np.array([False, False]))
    raw[1], y = raw[0], np.array([0, 0, 0, 1])
    raw[0, 10:], raw[1, 10:] = (50, 60), (51.2, 58.5)
    asked = rows.Network(params, loss_fn)
    message = asked.message(schema.encode(raw), y, np.full(_ROWS, 1 / _ROWS))
    found = rows.recover(params, message, loss_fn, schema, _ROWS, np.arange(2))
    off = np.abs(_sorted(found.raw, found.y) - _sorted(raw, y)).max()
    assert found.explained > 1 - 1e-5
    assert found.exact == (seed == 0) == (off < 1e-2)


def test_a_message_that_is_not_finite_is_refused(problem):
    schema, _, _, params, loss_fn = problem((_WIDTH, _WIDTH), 2, 1)
    message = jax.tree.map(lambda leaf: np.full_like(leaf, np.nan), params)
    with pytest.raises(ValueError, match="params, message: expected finite numbers"):
        rows.recover(params, message, loss_fn, schema, _ROWS, np.arange(2))
    for count, targets in ((0, 2), (-1, 2), (_ROWS, 0)):
        with pytest.raises(ValueError, match="rows, targets: expected at least 1, got"):
            rows.recover(params, params, loss_fn, schema, count, np.arange(targets))


def test_a_loss_that_hides_a_model_with_other_layers_is_refused(problem):
    given = problem((_WIDTH, _WIDTH), 2, 1, norm="layernorm")
    asked = rows.Network(given.params, lambda *args: given.loss_fn(*args))
    with pytest.raises(
        ValueError, match="layers LayerNorm_0, LayerNorm_1 are not known"
    ):
        asked.units  # noqa: B018


def test_rows_of_several_steps_are_proven_by_these_steps_and_no_others(problem):
    schema, raw, y, params, loss_fn = problem((_WIDTH, _WIDTH), 2, 1)
    steps = Steps(3, 0.05)
    message = moved(params, loss_fn, schema.encode(raw), y, steps)
    sent, about = (params, message, loss_fn), (schema, _ROWS, np.arange(2))
    found = repeated.recover(*sent, steps, *about)
    assert found.exact
    np.testing.assert_array_equal(_sorted(found.raw, found.y), _sorted(raw, y))
    other = repeated.recover(*sent, steps._replace(rate=0.1), *about)
    assert not other.exact and other.explained < 0.999
    one = moved(params, loss_fn, schema.encode(raw), y, Steps(1, 1.0))
    off = jax.tree.map(lambda ours, theirs: np.abs(ours - theirs).max(), one, message)
    assert 1e-3 < max(jax.tree.leaves(off)) < 0.3


@pytest.mark.parametrize("layer", [0, 1])
def test_of_layers_that_are_off_several_steps_tell_no_row(problem, layer):
    schema, raw, y, params, loss_fn = problem((_WIDTH, _WIDTH), 2, 1)
    off = sorted(params, key=lambda name: name.startswith("Dense"))[layer]
    params = {**params, off: {**params[off], "bias": params[off]["bias"] - 1e3}}
    steps = Steps(2, 0.05)
    message = moved(params, loss_fn, schema.encode(raw), y, steps)
    sent, about = (params, message, loss_fn), (schema, _ROWS, np.arange(2))
    found = repeated.recover(*sent, steps, *about)
    assert not found.exact and not len(found.raw)


def test_where_categories_leave_numbers_open_several_steps_tell_no_row(problem):
    schema, raw, y, params, loss_fn = problem((_WIDTH, _WIDTH), 2, 1)
    raw[1, :10] = raw[0, :10]
    steps = Steps(2, 0.05)
    message = moved(params, loss_fn, schema.encode(raw), y, steps)
    sent, about = (params, message, loss_fn), (schema, _ROWS, np.arange(2))
    found = repeated.recover(*sent, steps, *about)
    assert not found.exact and not len(found.raw)


def _of_numbers(count: int, **network):
    """A schema of four numbers, rows of it, targets, and a network that sees them."""
    draws = np.random.default_rng(3)
    raw = np.float32(draws.normal(size=(count, 4)))
    y = np.float32(draws.normal(size=count))
    schema = rows.Schema(
        (), np.arange(4), np.zeros(4), np.ones(4), raw.min(0), raw.max(0), raw[0] > 9
    )
    model = mlp(4, hidden=(_WIDTH, _WIDTH), **network)
    params = jax.device_get(model.init(jax.random.key(3)))
    return schema, raw, y, params, losses.example_loss(model.apply, losses.squared)


@pytest.mark.slow
@pytest.mark.parametrize("initialisation", ["torch", "glorot"])
def test_more_rows_of_numbers_than_inputs_are_found_whatever_the_layer_sees_of_them(
    initialisation,
):
    """Normalised products without a bias are blind to the length of a row.

    Nearly as many rows as the layer has units: what is found of one after another alone
    does not give the message to rounding.
    """
    network = {"activation": "gelu", "norm": "layernorm"}
    made = _of_numbers(_MANY, initialisation=initialisation, **network)
    schema, raw, y, params, loss_fn = made
    message = rows.Network(params, loss_fn).message(raw, y, np.full(_MANY, 1 / _MANY))
    found = rows.recover(params, message, loss_fn, schema, _MANY, y)
    assert found.exact
    assert found.explained > 1 - 1e-5
    off = np.abs(_sorted(found.raw, found.y) - _sorted(raw, y))
    assert off.max() < 1e-2 and np.median(off) < 1e-4


def test_rows_and_targets_that_are_nearly_right_are_polished():
    schema, raw, y, params, loss_fn = _of_numbers(6)
    network = rows.Network(params, loss_fn)
    message = network.message(raw, y, np.full(6, 1 / 6))
    draws = np.random.default_rng(0)
    near = raw + np.float32(draws.normal(0, 0.02, raw.shape))
    order = np.argsort(y)
    close = y[order][np.clip(np.argsort(order) + 1, 0, 5)]  # each the next larger one
    x, told = polish.polished(network, message, near, close, schema, y)
    np.testing.assert_allclose(x, raw, atol=1e-3)
    np.testing.assert_array_equal(told, y)


def test_categories_and_classes_stay_as_they_are_when_numbers_are_polished(problem):
    schema, raw, y, params, loss_fn = given = problem((_WIDTH, _WIDTH), 2, 1)
    x, message = schema.encode(raw), given.message()
    near = x.copy()
    near[:, schema.numbers] += 0.01
    asked = rows.Network(params, loss_fn), message, near, y, schema
    found, told = polish.polished(*asked, np.arange(2))
    np.testing.assert_allclose(found, x, atol=1e-4)
    np.testing.assert_array_equal(found[:, :10], x[:, :10])
    np.testing.assert_array_equal(told, y)


def test_a_message_in_half_precision_is_as_large_as_its_numbers():
    large, small = np.float16([300, -400]), np.float16([3e-5, 4e-5])
    assert network.size({"w": large}) == 500
    np.testing.assert_allclose(network.size({"w": small}), 5e-5, rtol=0.01)
    off = network.missed({"w": np.float16([300, 0])}, {"w": large})
    np.testing.assert_allclose(off, 0.8)


def test_numbers_far_from_zero_are_drawn_from_their_whole_range():
    every = np.arange(3)
    schema = rows.Schema(
        (), every, np.zeros(3), np.ones(3), np.array([18.0, -200, -9]),
        np.array([80.0, -90, 9]), np.zeros(3, bool),
    )  # fmt: skip
    low, high = numbers._usual(schema)
    np.testing.assert_array_equal(low, [18, -200, -numbers._SPREAD])
    np.testing.assert_array_equal(high, [80, -90, numbers._SPREAD])
    given = Rows(np.zeros((1, 3)), np.eye(3))
    begun = numbers.begun(given, schema, np.random.default_rng(0))
    assert np.all(begun.x[:, 0] >= 18) and np.all(begun.x[:, 1] <= -90)

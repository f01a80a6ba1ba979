"""Which batches have their message with other targets, too."""

import itertools

import jax
import numpy as np
import pytest

from fljax import losses, models
from fljax.attacks import rows
from fljax.attacks.rows import other_targets

_WIDTH, _SEED = 24, 2
_A, _B, _C, _D = np.array(
    [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]], float
)


@pytest.fixture
def exist():
    """`exist` of a batch with hidden units that are all on, or not."""

    def call(x, y, targets, loss=losses.squared, outputs=1, on=False):
        model = models.mlp(len(x[0]), hidden=(_WIDTH, _WIDTH), outputs=outputs)
        params = jax.device_get(model.init(jax.random.key(_SEED)))
        if on:
            params = {n: {**p, "bias": p["bias"] + 10} for n, p in params.items()}
        loss_fn = losses.example_loss(model.apply, loss)
        network, x, y = rows.Network(params, loss_fn), np.array(x), np.array(y)
        message = network.message(x, y, np.full(len(y), 1 / len(y)))
        return other_targets.exist(network, message, x, y, np.array(targets))

    return call


@pytest.mark.parametrize("loss", [losses.squared, losses.absolute])
def test_targets_of_whose_errors_the_sign_alone_is_known_are_not_told(problem, loss):
    schema, raw, _, params, _ = problem((_WIDTH, _WIDTH), 1, _SEED)
    model = models.mlp(len(schema.mean), hidden=(_WIDTH, _WIDTH))
    loss_fn = losses.example_loss(model.apply, loss)
    network, x = rows.Network(params, loss_fn), schema.encode(raw)
    y = np.linspace(5, 9, len(x), dtype=np.float32)
    message = network.message(x, y, np.full(len(y), 1 / len(y)))
    known = loss is losses.squared
    assert other_targets.exist(network, message, x, y, y) != known
    found = rows.recover(params, message, loss_fn, schema, len(x), y)
    assert found.exact == known


@pytest.mark.parametrize(
    ("targets", "open_"),
    [
        ([0, 1, 2, 3], True),
        ([1, 3, 5], False),
        ([1, 1.5, 2.5, 3], True),
        ([1, 3], False),
    ],
    ids=["2 and 2", "nothing between", "1.5 and 2.5", "two"],
)
def test_equal_rows_may_share_a_sum_of_targets(exist, targets, open_):
    x, y = [_A, _A, _B, _D], np.float32([1, 3, 1, 3])
    assert exist(x, y, np.float32(targets)) == open_


@pytest.mark.parametrize("y", list(itertools.permutations([1, 2, 3])))
def test_three_equal_rows_may_have_the_same_target(exist, y):
    assert exist([_A, _A, _A, _D], [*y, 1], np.arange(1, 4))


def test_a_row_that_switches_nothing_on_hides_no_other(exist):
    x, y = [_A, _A, _B, 0 * _A], np.float32([1, 3, 1, 3])
    assert exist(x, y, np.arange(4, dtype=np.float32))


def test_a_target_that_is_true_or_false_is_told(exist):
    y = np.array([True, False, True, False])
    assert not exist([_A, _A, _B, _D], y, [False, True], losses.logistic)


@pytest.mark.parametrize(
    ("loss", "outputs", "targets"),
    [(losses.logistic, 1, [0, 1]), (losses.cross_entropy, 3, [0, 1, 2])],
)
def test_equal_rows_of_other_classes_are_told(exist, loss, outputs, targets):
    assert not exist([_A, _A, _B, _D], [0, 1, 1, 0], targets, loss, outputs)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    ("loss", "outputs", "targets"),
    [(losses.squared, 1, [0.0, 1.0, 2.0]), (losses.cross_entropy, 3, [0, 1, 2])],
)
def test_rows_with_equal_sums_may_exchange_targets(exist, loss, outputs, targets, on):
    x, y = [_A, _B, _C, _D], [0, 1, 1, 0]
    # Where they switch on unlike units each of them is told.
    assert exist(x, np.array(y, type(targets[0])), targets, loss, outputs, on) == on


@pytest.mark.slow
def test_a_batch_proves_no_targets_that_equal_rows_share():
    groups, none = (rows.Group((0, 1, 2)), rows.Group((3, 4, 5))), np.zeros(0)
    about = none.astype(int), np.zeros(6), np.ones(6), none, none, none.astype(bool)
    model = models.mlp(6, hidden=(32, 32))
    loss_fn = losses.example_loss(model.apply, losses.squared)
    params = jax.device_get(model.init(jax.random.key(0)))
    x = np.eye(6)[[0, 0, 1, 2]] + np.eye(6)[[3, 3, 4, 5]]
    y, every = np.array([1.0, 3.0, 2.0, 0.0]), np.arange(4.0)
    message = rows.Network(params, loss_fn).message(x, y, np.full(4, 1 / 4))
    schema = rows.Schema(groups, *about)
    found = rows.recover(params, message, loss_fn, schema, 4, every)
    assert found.explained > 0.9999
    assert not found.exact

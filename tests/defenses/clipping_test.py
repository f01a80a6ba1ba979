"""Norms after clipping, what is dropped, and clips that follow a schedule."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import losses, models, per_example
from fljax.defenses import clipping
from fljax.types import Batch, Features

PARAMS = {"a": jnp.zeros(2), "b": jnp.zeros(2)}


def _linear(params, x, y):
    """Its gradient is the row itself."""
    return jnp.sum(params["a"] * x[:2]) + jnp.sum(params["b"] * x[2:]) + y


def _batch(rows, mask=None):
    x = jnp.asarray(rows, jnp.float32).reshape(-1, 4)
    mask = jnp.ones(len(x), bool) if mask is None else jnp.asarray(mask, bool)
    return Batch(x, jnp.arange(len(x), dtype=jnp.float32), mask)


_clipped_sum = jax.jit(clipping.clipped_sum, static_argnums=(0, 3))


def _clip(rows, clip_fn, mask=None):
    found = _clipped_sum(_linear, PARAMS, _batch(rows, mask), clip_fn)
    return np.concatenate([found.total["a"], found.total["b"]]), found


WILD = np.random.default_rng(0).normal(size=(40, 4)) * np.exp(
    np.random.default_rng(1).normal(0, 3, (40, 1))
)


@pytest.mark.parametrize(
    ("clip_fn", "sensitivity"),
    [
        (clipping.total(0.7), 0.7),
        (clipping.per_layer(0.7), 0.7 * np.sqrt(2)),
        (clipping.per_layer(0.7 / np.sqrt(2)), 0.7),
    ],
    ids=["total", "per layer", "recommended"],
)
def test_one_record_changes_the_sum_by_the_sensitivity_at_most(clip_fn, sensitivity):
    whole, _ = _clip(WILD, clip_fn)
    changes = [
        np.linalg.norm(whole - _clip(WILD, clip_fn, np.arange(40) != left_out)[0])
        for left_out in range(40)
    ]
    # A bound that nobody reaches would overstate the noise.
    assert max(changes) == pytest.approx(sensitivity, rel=1e-4)


def test_layers_are_clipped_on_their_own():
    # The first layer has norm 5, the second 0.5.
    found, _ = _clip([[3, 4, 0.3, 0.4]], clipping.per_layer(1.0))
    np.testing.assert_allclose(found, [0.6, 0.8, 0.3, 0.4], rtol=1e-6)


@pytest.mark.parametrize("count", [3, 4], ids=["odd", "even"])
def test_the_median_norm_of_each_layer_is_the_clip(count):
    rows = np.zeros((5, 4))
    rows[:, 0], rows[:, 2] = [1, 2, 4, 9, 100], [5, 5, 5, 8, 0]
    mask = np.arange(5) < count
    found, _ = _clip(rows, clipping.median(), mask)
    first, second = np.median(rows[mask, 0]), np.median(rows[mask, 2])
    expected = [
        np.minimum(rows[mask, 0], first).sum(), 0,
        np.minimum(rows[mask, 2], second).sum(), 0,
    ]  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-6)


CLIP_FNS = pytest.mark.parametrize(
    "clip_fn",
    [clipping.total(1.0), clipping.per_layer(1.0), clipping.median()],
    ids=["total", "per layer", "median"],
)


@CLIP_FNS
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30], ids=["nan", "inf", "overflow"])
def test_a_poisoned_example_is_dropped_whole_and_counted(clip_fn, bad):
    good = [[0.1, 0.2, 0.3, 0.4], [0.2, 0.1, 0.1, 0.2]]
    found, parts = _clip([good[0], [bad, 0, 0, 1], good[1]], clip_fn)
    expected, _ = _clip(good, clip_fn)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert parts.dropped == 1
    assert np.isfinite(parts.loss)


@CLIP_FNS
def test_padding_is_neither_summed_nor_counted(clip_fn):
    found, parts = _clip([[0.1, 0, 0, 0.4], [np.nan] * 4], clip_fn, [True, False])
    expected, _ = _clip([[0.1, 0, 0, 0.4]], clip_fn)
    np.testing.assert_array_equal(found, expected)
    assert parts.dropped == 0
    empty, parts = _clip(np.full((3, 4), np.inf), clip_fn, [False] * 3)
    np.testing.assert_array_equal(empty, 0)
    assert (parts.loss, parts.dropped) == (0, 0)


def test_the_loss_is_the_mean_of_the_real_examples():
    _, parts = _clip(np.zeros((3, 4)), clipping.total(1.0), [True, False, True])
    assert parts.loss == 1.0


@pytest.mark.parametrize("clip", [1.0, 0.0], ids=["one", "zero"])
def test_one_tree_is_clipped_as_an_example_of_a_batch_is(clip):
    tree = {"a": jnp.array([3.0, 4.0]), "b": jnp.zeros(2)}
    found = clipping.clipped(tree, clipping.per_layer(clip))
    np.testing.assert_allclose(found["a"], [0.6 * clip, 0.8 * clip], rtol=1e-6)
    np.testing.assert_array_equal(found["b"], 0)


def test_a_tree_without_a_finite_norm_becomes_zero_as_a_whole():
    tree = {"a": jnp.array([jnp.nan, 4.0]), "b": jnp.ones(2)}
    found = clipping.clipped(tree, clipping.per_layer(1.0))
    np.testing.assert_array_equal(np.concatenate([found["a"], found["b"]]), 0)


def test_the_decay_is_linear_from_six_to_two():
    clip = clipping.linear_decay(num_rounds=100)
    found = [clip(t) for t in (0, 33, 99, 150)]
    np.testing.assert_allclose(found, [6, 6 - 4 / 3, 2, 2], rtol=1e-6)
    assert clipping.largest(clip, 100) == 6
    assert clipping.linear_decay(num_rounds=1)(0) == 6


def test_any_optax_schedule_serves_and_is_checked_inside_a_trace():
    clip = optax.exponential_decay(8.0, 1, 0.5)
    assert jax.jit(lambda: clipping.largest(clip, 4))() == 8
    assert clipping.at_round(clip, jnp.int32(2)) == 2
    # A traced schedule cannot be checked.
    traced = jax.jit(lambda c: clipping.largest(optax.constant_schedule(c), 3))
    assert traced(-5.0) == -5


@pytest.mark.parametrize(
    ("clip", "num_rounds", "message"),
    [
        (clipping.linear_decay(1.0, -1.0, num_rounds=5), 5, "got 0 in round 2"),
        (clipping.linear_decay(1.0, 0.0, num_rounds=5), 5, "got 0 in round 4"),
        (lambda t: jnp.where(t > 2, jnp.nan, 1.0), 5, "got nan in round 3"),
        (clipping.linear_decay(num_rounds=5), None, "num_rounds must be >= 1"),
        (clipping.linear_decay(num_rounds=5), 0, "num_rounds must be >= 1"),
        (0.0, None, "clip must be >= 1e-12"),
        (-1.0, 3, "clip must be >= 1e-12"),
        (1e-20, None, "clip must be >= 1e-12"),  # squares of such gradients are 0
        (np.inf, None, "clip must be >= 1e-12 and finite"),
    ],
    ids=["negative", "zero at the end", "nan", "no rounds", "zero rounds",
         "zero", "minus one", "vanishing", "inf"],
)  # fmt: skip
def test_clips_that_are_not_positive_are_refused(clip, num_rounds, message):
    with pytest.raises(ValueError, match=message):
        clipping.largest(clip, num_rounds)


def test_beyond_its_check_a_schedule_does_not_turn_gradients_around():
    clip = clipping.at_round(lambda t: 1.0 - t, jnp.int32(3))
    found, _ = _clip([[3, 0, 0, 4]], clipping.total(clip))
    np.testing.assert_array_equal(found, 0)


def test_a_schedule_needs_a_round():
    with pytest.raises(ValueError, match="round: expected a number"):
        clipping.at_round(clipping.linear_decay(num_rounds=3), None)


def test_layers_are_arrays_and_their_number_is_checked():
    assert clipping.num_layers(PARAMS) == 2
    with pytest.raises(ValueError, match="num_layers must be that of the params, 2"):
        clipping.check_layers(PARAMS, 3)


_WIDE = models.mlp(1000, hidden=(), outputs=1, num_onehot=3)
_TINY = {
    "rows": (1e-19, 2e18, 3),
    "smaller rows": (3e-20, 6e18, 3),
    "rows and a one": (1e-19, 2e18, 0),
    "slopes": (2e17, 2e-20, 3),
}


@pytest.mark.parametrize(("entry", "target", "code"), _TINY.values(), ids=_TINY)
def test_a_factor_whose_square_underflows_does_not_escape_the_clip(entry, target, code):
    x = Features(np.full((1, 1000), entry, np.float32), np.array([[code]], np.int32))
    batch = Batch(x, np.array([target], np.float32), np.ones(1, bool))
    loss_fn = losses.example_loss(_WIDE.apply, losses.squared)
    params = jax.tree.map(jnp.zeros_like, _WIDE.init(jax.random.key(0)))

    @jax.jit
    def clipped(params):
        clip_fn = clipping.per_layer(0.01)
        return clipping.clipped_sum(loss_fn, params, batch, clip_fn)

    found = clipped(params)
    kernel = found.total["TabularDense_0"]["kernel"]
    assert 0.001 < np.linalg.norm(kernel) <= 0.01 * (1 + 1e-6)
    assert found.dropped == 0


def test_a_row_of_zeros_has_the_norm_zero():
    x = Features(np.zeros((1, 1000), np.float32), np.array([[3]], np.int32))
    loss_fn = losses.example_loss(_WIDE.apply, losses.squared)
    params = jax.tree.map(jnp.zeros_like, _WIDE.init(jax.random.key(0)))
    y = np.array([1e4], np.float32)
    found = jax.jit(lambda p: per_example.gradients(loss_fn, p, x, y).squares)(params)
    assert found["TabularDense_0"]["kernel"] == 0

"""Sound private steps pass, and each kind of mistake is found by its own test."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import losses, models, privacy
from fljax.defenses import clipping, dp_sgd, fed_cdp
from fljax.types import Batch, Features

_CLIP, _SIGMA, _SIZE = 0.5, 2.0, 6
_MODEL = models.mlp(4, hidden=(5,))
_LOSS = losses.example_loss(_MODEL.apply, losses.squared)
_PARAMS = _MODEL.init(jax.random.key(3))


def _batch():
    rng = np.random.default_rng(0)
    x = Features(
        rng.normal(size=(_SIZE, 4)).astype(np.float32), np.zeros((_SIZE, 0), np.int32)
    )
    y = rng.normal(size=_SIZE).astype(np.float32)
    mask = np.arange(_SIZE) < _SIZE - 1
    return Batch(x, y, mask, np.int32(0), np.int32(0))


def _dp_sgd(sigma=_SIGMA):
    return dp_sgd.dp_sgd(
        _LOSS, clip=_CLIP, noise_multiplier=np.array([sigma]),
        sampling_rate=np.array([0.1]), batch_size=np.array([_SIZE]),
    ).gradient  # fmt: skip


def _check(step, **changed):
    told = {
        "params": _PARAMS, "batch": _batch(), "noise": _SIGMA * _CLIP,
        "sensitivity": _CLIP, "batch_size": _SIZE,
    }  # fmt: skip
    return privacy.check_dp(step, **(told | changed))


def _failed(findings):
    return {f.name.partition(" of ")[0] for f in findings if not f.passed}


def test_dp_sgd_is_as_its_accountant_is_told():
    assert not _failed(_check(_dp_sgd()))


@pytest.mark.parametrize("mode", fed_cdp.MODES)
def test_fed_cdp_states_its_own_noise_and_sensitivity(mode):
    defense = fed_cdp.fed_cdp(
        _LOSS, clip=_CLIP, noise_scale=_SIGMA, sampling_rate=0.1, batch_size=_SIZE,
        num_layers=len(jax.tree.leaves(_PARAMS)), mode=mode,
    )  # fmt: skip
    (spec,) = defense.noise
    noise = float(spec.noise_multiplier * spec.sensitivity)
    told = {"noise": noise, "sensitivity": float(spec.sensitivity)}
    found = _check(defense.gradient, **told)
    assert not _failed(found)
    (change,) = (f for f in found if f.name == "change by one example")
    # The paper's sensitivity, as if there were one layer.
    assert (change.measured > 1.01 * _CLIP) is (mode != "recommended")


def _one_silent_layer(key, params, batch):
    grads, loss = _dp_sgd()(key, params, batch)
    leaves, treedef = jax.tree.flatten(grads)
    return treedef.unflatten([jnp.zeros_like(leaves[0]), *leaves[1:]]), loss


def _noisy(total):
    """Sound noise on what `total` makes of every example's gradient and the mask."""

    def step(key, params, batch):
        noise, _ = _dp_sgd()(key, params, batch._replace(mask=batch.mask & False))
        each = jax.vmap(jax.grad(_LOSS), (None, 0, 0))(params, batch.x, batch.y)
        found = total(each, jnp.float32(batch.mask))
        return jax.tree.map(lambda a, b: a / _SIZE + b, found, noise), 0.0

    return step


def _clipped(grads):
    return clipping.clipped(grads, clipping.total(_CLIP))


def _sum(each, weights):
    return jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, 1), each)


def _sum_clipped(each, mask):
    return _clipped(_sum(each, mask))


def _sum_times_count(each, mask):
    return _sum(jax.vmap(_clipped)(each), mask * mask.sum())


def _mean_of_those_there_are(each, mask):
    return _sum(jax.vmap(_clipped)(each), mask * _SIZE / jnp.maximum(mask.sum(), 1))


def _one_key_for_all(key, params, batch):
    del key
    return _dp_sgd()(jax.random.key(1), params, batch)


def _the_same_in_every_layer(key, params, batch):
    grads, loss = _dp_sgd()(key, params, batch._replace(mask=batch.mask & False))
    scale = _SIGMA * _CLIP / _SIZE
    return jax.tree.map(
        lambda leaf: scale * jax.random.normal(key, leaf.shape), grads
    ), loss


def _deaf_to_the_mask(key, params, batch):
    """It clips nothing, either."""
    noise, loss = _dp_sgd()(key, params, batch._replace(mask=batch.mask & False))
    each = jax.vmap(jax.grad(_LOSS), (None, 0, 0))(params, batch.x, batch.y)
    found = _sum(each, jnp.ones(_SIZE))
    return jax.tree.map(lambda a, b: a / _SIZE + b, found, noise), loss


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "found"),
    [
        (_dp_sgd(_SIGMA / 2), {"noise scale"}),
        (_one_silent_layer, {"noise scale", "correlation"}),
        (_noisy(_sum), {"change by one example"}),
        (_one_key_for_all, {"noise scale", "share", "correlation"}),
        (_the_same_in_every_layer, {"correlation", "change by one example"}),
        (_deaf_to_the_mask, {"change by one example"}),
    ],
    ids=[
        "half the noise",
        "silent layer",
        "no clip",
        "one key",
        "same in layers",
        "deaf to the mask",
    ],
)
def test_a_mistake_is_found(step, found):
    with jax.debug_key_reuse(False):  # it finds one of them, too
        assert _failed(_check(step)) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("total", "sensitivity"),
    [
        (_sum_clipped, _CLIP),
        (_sum_times_count, _CLIP),
        # As if two means of five examples were all that there is.
        (_mean_of_those_there_are, 2 * _CLIP * _SIZE / 5),
    ],
)
def test_a_change_may_show_beside_other_examples_only_or_alone_only(total, sensitivity):
    found = _check(_noisy(total), sensitivity=sensitivity)
    assert _failed(found) == {"change by one example"}


def _of_many_parameters(key, params, batch):
    each = _CLIP / np.sqrt(params.size)
    noise = _SIGMA * _CLIP * jax.random.normal(key, params.shape)
    return (batch.mask.sum() * each + noise) / _SIZE, 0.0


def _with_few_keys(key, params, batch):
    few = jax.random.fold_in(jax.random.key(1), jax.random.bits(key) % 8)
    return _of_many_parameters(few, params, batch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "failed"),
    [
        (_of_many_parameters, set()),
        (_with_few_keys, {"noise scale", "share", "correlation"}),
    ],
    ids=["own noise", "few draws of noise"],
)
def test_noise_on_many_parameters_is_its_own_or_used_again(step, failed):
    found = _check(step, params=jnp.zeros(4_000))
    assert _failed(found) == failed
    serial = next(f for f in found if "successive" in f.name)
    # Deviations from a mean over 200 draws are not independent.
    assert (serial.low + serial.high) / 2 == pytest.approx(-1 / 199)
    assert serial.passed == (not failed)


def _rows(key, params, batch, *, noise, dtype=jnp.float32, clip_the_sum=False):
    """Rows that are gradients themselves, each clipped to 1, and noise of deviation 1."""
    weights, limit = jnp.float32(batch.mask), clipping.total(1.0)
    if clip_the_sum:
        found = clipping.clipped(weights @ batch.x, limit)
    else:
        clipped = jax.vmap(lambda row: clipping.clipped(row, limit))(batch.x)
        found = (clipped * weights[:, None]).astype(dtype).sum(axis=0)
    return (found + noise(key, params.shape)).astype(dtype), 0.0


def _every_number_twice(key, shape):
    return jnp.tile(jax.random.normal(key, (shape[0] // 2,)), 2)


def _but_for_one_number(key, shape):
    return jax.random.normal(key, shape).at[0].set(0)


def _check_rows(width, draws=50, **how):
    x = np.random.default_rng(0).normal(size=(8, width)).astype(np.float32)
    return privacy.check_dp(
        functools.partial(_rows, **({"noise": jax.random.normal} | how)),
        jnp.zeros(width), _batch()._replace(x=x, mask=np.ones(8, bool)),
        noise=1.0, sensitivity=1.0, batch_size=1.0, draws=draws,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("width", "how", "named"),
    [
        (20, {"noise": _every_number_twice}, "two numbers"),
        (3_000, {"noise": _every_number_twice}, "all numbers"),
        (500, {"noise": _but_for_one_number}, "quietest number"),
        (20, {"clip_the_sum": True}, "change by one"),
    ],
    ids=["twice", "twice of many", "a silent number", "sum clipped"],
)
def test_noise_that_leaves_directions_bare_and_a_clipped_sum_are_found(
    width, how, named
):
    failed = [each.name for each in _check_rows(width, **how) if not each.passed]
    assert any(named in each for each in failed), failed


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16], ids=str)
@pytest.mark.parametrize("width", [1, pytest.param(2, marks=pytest.mark.slow), 500])
def test_few_numbers_and_little_precision_are_sound(width, dtype):
    """Of few such numbers two draws are often alike, and sums are rounded."""
    assert not _failed(_check_rows(width, dtype=dtype, draws=100))


def test_an_array_of_nothing_is_sound():
    def step(key, params, batch):
        grads, loss = _rows(key, params["a"], batch, noise=jax.random.normal)
        return {"a": grads, "b": params["b"]}, loss

    params = {"a": jnp.zeros(20), "b": jnp.zeros(0)}
    x = np.random.default_rng(0).normal(size=(8, 20)).astype(np.float32)
    batch = _batch()._replace(x=x, mask=np.ones(8, bool))
    told = {"noise": 1.0, "sensitivity": 1.0, "batch_size": 1.0, "draws": 20}
    assert not _failed(privacy.check_dp(step, params, batch, **told))


def test_one_draw_for_all_is_found_of_a_single_number():
    def once(key, shape):
        return jax.random.normal(jax.random.key(0), shape)

    with jax.debug_key_reuse(False):
        assert "noise scale" in _failed(_check_rows(1, noise=once))


def test_two_arrays_have_a_degree_of_freedom_less_than_draws():
    (found,) = (
        f for f in _check(_of_many_parameters, params=jnp.zeros(1), draws=10)
        if "two clients" in f.name
    )  # fmt: skip
    # Pearson's r of 10 pairs, level 0.001 on two sides, in any printed table.
    assert found.high == -found.low == pytest.approx(0.8721, abs=1e-4)


def test_findings_say_what_was_measured_and_expected():
    failed = privacy.Finding("noise scale of ['w']", False, 0.5, 0.9, 1.1)
    assert str(failed) == "FAILED noise scale of ['w']: 0.5, expected 0.9 to 1.1"
    assert str(failed._replace(passed=True)).startswith("passed noise scale of ['w']")


@pytest.mark.parametrize(
    "changed", [{"noise": 0.0}, {"sensitivity": -1.0}, {"draws": 3}], ids=str
)
def test_numbers_out_of_range_are_refused(changed):
    with pytest.raises(ValueError, match=next(iter(changed))):
        _check(_dp_sgd(), **changed)


def test_a_batch_of_nothing_is_refused():
    batch = _batch()._replace(mask=np.zeros(_SIZE, bool))
    with pytest.raises(ValueError, match="batch must have an example"):
        _check(_dp_sgd(), batch=batch)

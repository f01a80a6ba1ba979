"""Sound private steps pass, and each kind of mistake is found by its own test."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import accounting, losses, models
from fljax.defenses import dp_sgd, fed_cdp
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
    told = {"noise": _SIGMA * _CLIP, "sensitivity": _CLIP, "batch_size": _SIZE}
    return accounting.check_dp(step, _PARAMS, _batch(), **(told | changed))


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
    assert not _failed(_check(defense.gradient, **told))
    paper = {"noise": noise, "sensitivity": _CLIP}  # as if there were one layer
    wrong = {"change by one example"} if mode != "recommended" else set()
    assert _failed(_check(defense.gradient, **paper)) == wrong


def _one_silent_layer(key, params, batch):
    grads, loss = _dp_sgd()(key, params, batch)
    leaves, treedef = jax.tree.flatten(grads)
    return treedef.unflatten([jnp.zeros_like(leaves[0]), *leaves[1:]]), loss


def _not_clipped(key, params, batch):
    noise, _ = _dp_sgd()(key, params, batch._replace(mask=batch.mask & False))
    each = jax.vmap(jax.grad(_LOSS), (None, 0, 0))(params, batch.x, batch.y)
    total = jax.tree.map(
        lambda leaf: jnp.tensordot(batch.mask.astype(leaf.dtype), leaf, 1), each
    )
    return jax.tree.map(lambda a, b: a / _SIZE + b, total, noise), 0.0


def _one_key_for_all(key, params, batch):
    del key
    return _dp_sgd()(jax.random.key(1), params, batch)


def _the_same_in_every_layer(key, params, batch):
    grads, loss = _dp_sgd()(key, params, batch._replace(mask=batch.mask & False))
    scale = _SIGMA * _CLIP / _SIZE
    return jax.tree.map(
        lambda leaf: scale * jax.random.normal(key, leaf.shape), grads
    ), loss


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (_dp_sgd(_SIGMA / 2), {"noise scale"}),
        (_one_silent_layer, {"noise scale", "correlation"}),
        (_not_clipped, {"change by one example"}),
        (_one_key_for_all, {"noise scale", "share", "correlation"}),
        (_the_same_in_every_layer, {"correlation"}),
    ],
    ids=["half the noise", "silent layer", "no clip", "one key", "same in layers"],
)
def test_a_mistake_is_found(step, found):
    with jax.debug_key_reuse(False):  # it finds one of them, too
        assert _failed(_check(step)) == found


def test_findings_say_what_was_measured_and_expected():
    said = [str(f) for f in _check(_dp_sgd(_SIGMA / 2))]
    assert any(line.startswith("FAILED noise scale of ['") for line in said)
    assert any(line.startswith("passed change by one example: 0.5") for line in said)


@pytest.mark.parametrize(
    "changed", [{"noise": 0.0}, {"sensitivity": -1.0}, {"draws": 3}], ids=str
)
def test_numbers_out_of_range_are_refused(changed):
    with pytest.raises(ValueError, match=next(iter(changed))):
        _check(_dp_sgd(), **changed)

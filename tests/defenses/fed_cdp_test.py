"""Fed-CDP: the noise of each mode, what the accountant is told, and type-2 views."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local, losses, models
from fljax.defenses import clipping
from fljax.defenses.fed_cdp import MODES, fed_cdp, sanitise_example
from fljax.types import Batch, Features, Sender

CLIP, SIGMA, ROWS = 2.0, 1.5, 5
PARAMS = {"a": jnp.zeros(3), "b": jnp.zeros((2, 3)), "c": jnp.zeros(())}


def _flat_loss(params, x, y):
    del y
    return 0.0 * (jnp.sum(params["a"]) + jnp.sum(params["b"]) + params["c"]) * x[0]


def _row_loss(params, x, y):
    """Gradient: the row's first entry everywhere."""
    del y
    return (jnp.sum(params["a"]) + jnp.sum(params["b"]) + params["c"]) * x[0]


def _defense(loss_fn=_flat_loss, **changed):
    numbers = {
        "clip": CLIP, "noise_scale": SIGMA, "sampling_rate": 0.1, "batch_size": ROWS,
        "num_layers": 3, "mode": "recommended",
    }  # fmt: skip
    return fed_cdp(loss_fn, **(numbers | changed))


def _batch(values=(0.0,) * ROWS, mask=None, client=0, round=0):
    x = jnp.asarray(values, jnp.float32)[:, None]
    mask = jnp.ones(len(x), bool) if mask is None else jnp.asarray(mask, bool)
    return Batch(x, jnp.zeros(len(x)), mask, jnp.int32(client), jnp.int32(round))


def _vector(tree, lead=0):
    """Leaves side by side, after `lead` axes."""
    return np.concatenate(
        [leaf.reshape(*leaf.shape[:lead], -1) for leaf in jax.tree.leaves(tree)], -1
    )


def _draws(defense, batch, count=1500):
    keys = jax.random.split(jax.random.key(7), count)
    draw = jax.vmap(lambda key: defense.gradient(key, PARAMS, batch)[0])
    return _vector(jax.jit(draw)(keys), 1)


DEVIATION = {
    "per_example": SIGMA * CLIP * np.sqrt(ROWS),
    "per_batch": SIGMA * CLIP,
    "recommended": SIGMA * CLIP,
}
MULTIPLIER = {
    "per_example": SIGMA * np.sqrt(ROWS / 3),
    "per_batch": SIGMA / np.sqrt(3),
    "recommended": SIGMA,
}


@pytest.mark.parametrize("mode", MODES)
def test_the_noise_on_the_sum_is_that_of_the_mode_and_of_its_spec(mode):
    defense = _defense(mode=mode)
    on_sum = ROWS * _draws(defense, _batch())
    tolerance = 4 / np.sqrt(2 * on_sum.size)
    assert on_sum.std() == pytest.approx(DEVIATION[mode], rel=tolerance)
    assert abs(on_sum.mean()) < 4 * DEVIATION[mode] / np.sqrt(on_sum.size)
    (spec,) = defense.noise
    assert spec.noise_multiplier == pytest.approx(MULTIPLIER[mode])
    told = spec.noise_multiplier * spec.sensitivity
    assert told == pytest.approx(DEVIATION[mode])
    assert (spec.unit, spec.sampling) == ("record", "poisson")
    # Every array has noise of its own.
    off = np.corrcoef(on_sum.T)[~np.eye(10, dtype=bool)]
    assert np.abs(off).max() < 4.5 / np.sqrt(len(on_sum))


@pytest.mark.parametrize("mode", MODES)
def test_one_record_changes_the_sum_by_the_stated_sensitivity(mode):
    defense = _defense(_row_loss, mode=mode, noise_scale=0.0)
    values, sums = [9.0, 0.01, -7.0], []
    gradient = jax.jit(defense.gradient)
    for mask in ([True] * 3, [False, True, True]):
        grads, _ = gradient(jax.random.key(0), PARAMS, _batch(values, mask))
        sums.append(ROWS * _vector(grads))
    change = np.linalg.norm(sums[0] - sums[1])
    assert change == pytest.approx(defense.noise[0].sensitivity, rel=1e-5)
    assert change == pytest.approx(CLIP * (1 if mode == "recommended" else np.sqrt(3)))


@pytest.mark.slow
def test_noise_per_example_has_the_distribution_of_a_draw_for_each_of_them():
    keys = jax.random.split(jax.random.key(1), (1500, ROWS))
    zeros = jax.tree.map(jnp.zeros_like, PARAMS)

    def one(key):
        return sanitise_example(
            key, zeros, clip=CLIP, noise_scale=SIGMA, mode="per_example"
        )

    printed = _vector(jax.jit(jax.vmap(jax.vmap(one)))(keys), 2).sum(axis=1)
    drawn = ROWS * _draws(_defense(mode="per_example"), _batch())
    ratio = printed.std() / drawn.std()
    assert ratio == pytest.approx(1, rel=6 / np.sqrt(2 * drawn.size))


@pytest.mark.parametrize("mode", MODES)
def test_the_multiplier_covers_batches_with_fewer_rows_than_stated(mode):
    small = _draws(_defense(mode=mode), _batch([0.0], [False]), 500)
    assert ROWS * small.std() == pytest.approx(DEVIATION[mode], rel=0.05)


def test_poisson_batches_are_divided_by_the_expected_rows_and_others_by_theirs():
    batch = _batch([0.1, 0.2, 5.0], [True, True, False])
    how = {"loss_fn": _row_loss, "noise_scale": 0.0, "mode": "per_batch", "clip": 10.0}
    found = {
        sampling: jax.jit(_defense(sampling=sampling, **how).gradient)(
            jax.random.key(0), PARAMS, batch
        )[0]["c"]
        for sampling in ("poisson", "fixed")
    }
    assert found["poisson"] == pytest.approx(0.3 / ROWS)
    assert found["fixed"] == pytest.approx(0.15)


def test_numbers_may_differ_by_client():
    defense = _defense(
        noise_scale=np.array([0.0, 3.0]), batch_size=np.array([2.0, 8.0]),
        mode="per_example",
    )  # fmt: skip
    expected = np.array([0.0, 3.0]) * np.sqrt(np.array([2.0, 8.0]) / 3)
    np.testing.assert_allclose(defense.noise[0].noise_multiplier, expected)
    quiet, loud = (_draws(defense, _batch(client=c), 300) for c in (0, 1))
    np.testing.assert_array_equal(quiet, 0)
    assert loud.std() * 8 == pytest.approx(3 * CLIP * np.sqrt(8), rel=0.06)


def test_decay_lowers_clip_and_noise_and_keeps_the_multiplier():
    clip = clipping.linear_decay(num_rounds=100)
    defense = _defense(clip=clip, num_rounds=100)
    assert defense.noise[0].noise_multiplier == SIGMA
    assert defense.noise[0].sensitivity == 6
    first, last = (_draws(defense, _batch(round=t), 300) for t in (0, 99))
    np.testing.assert_allclose(first, 3 * last, rtol=1e-5)


def test_without_noise_and_clipping_it_is_the_mean_gradient():
    model = models.mlp(3, hidden=(4,))
    loss_fn = losses.example_loss(model.apply, losses.squared)
    params = model.init(jax.random.key(0))
    rng = np.random.default_rng(0)
    x = Features(
        jnp.asarray(rng.normal(size=(6, 3)), jnp.float32), jnp.zeros((6, 0), jnp.int32)
    )
    batch = Batch(x, jnp.asarray(rng.normal(size=6), jnp.float32), jnp.arange(6) < 4)
    defense = _defense(
        loss_fn, clip=1e6, noise_scale=0.0, num_layers=4, mode="per_batch",
        sampling="fixed",
    )  # fmt: skip
    steps = [
        local.sgd(loss_fn, optax.sgd(0.1), gradient=gradient)
        for gradient in (None, defense.gradient)
    ]
    deltas = []
    for update in steps:
        begin = update.init(params)
        carry = jax.jit(update.step)(jax.random.key(0), begin, params, batch)
        sender = Sender(jnp.int32(0), jnp.int32(0))
        message = update.final(jax.random.key(1), carry, params, sender)
        deltas.append((message.delta, message.loss))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), *deltas)


@pytest.mark.parametrize(
    ("mode", "norm", "deviation"),
    [
        ("per_example", CLIP, SIGMA * CLIP),
        ("per_batch", CLIP, 0.0),
        ("recommended", CLIP / np.sqrt(3), SIGMA * CLIP),
    ],
)
def test_one_examples_gradient_is_clipped_and_noisy_as_the_mode_says(
    mode, norm, deviation
):
    grads = {"a": jnp.array([3.0, 0, 4]), "b": jnp.ones((2, 3)), "c": jnp.array(0.5)}
    how = {"clip": CLIP, "mode": mode}
    bare = sanitise_example(jax.random.key(0), grads, noise_scale=0.0, **how)
    assert np.linalg.norm(bare["a"]) == pytest.approx(norm, rel=1e-6)
    assert bare["c"] == 0.5
    keys = jax.random.split(jax.random.key(1), 1500)
    draw = jax.vmap(lambda key: sanitise_example(key, grads, noise_scale=SIGMA, **how))
    noisy = jax.jit(draw)(keys)
    found = _vector(noisy, 1) - _vector(bare)
    tolerance = 4 / np.sqrt(2 * found.size)
    assert found.std() == pytest.approx(deviation, rel=tolerance, abs=1e-6)


def test_a_poisoned_example_of_its_own_is_noise():
    grads = {"a": jnp.full(3, jnp.nan), "b": jnp.ones((2, 3)), "c": jnp.array(0.5)}
    found = sanitise_example(
        jax.random.key(0), grads, clip=CLIP, noise_scale=SIGMA, mode="per_example"
    )
    zeros = sanitise_example(
        jax.random.key(0), jax.tree.map(jnp.zeros_like, grads), clip=CLIP,
        noise_scale=SIGMA, mode="per_example",
    )  # fmt: skip
    np.testing.assert_array_equal(_vector(found), _vector(zeros))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clip": 0.0}, "clip must be >= 1e-12"),
        ({"clip": -1.0}, "clip must be >= 1e-12"),
        ({"clip": clipping.linear_decay(1.0, -1.0, num_rounds=9), "num_rounds": 9},
         "clip must be >= 1e-12 and finite in every round, got 0 in round 4"),
        ({"clip": clipping.linear_decay(num_rounds=9)}, "num_rounds must be >= 1"),
        ({"noise_scale": -0.5}, "noise_scale must be >= 0"),
        ({"noise_scale": np.array([1.0, np.nan])}, "noise_scale must be >= 0"),
        ({"sampling_rate": 0.0}, "sampling_rate must be in"),
        ({"sampling_rate": 1.5}, "sampling_rate must be in"),
        ({"batch_size": 0}, "batch_size must be > 0"),
        ({"num_layers": 0}, "num_layers must be > 0"),
        ({"mode": "printed"}, "mode must be one of per_example, per_batch"),
        ({"sampling": "random"}, "sampling must be one of poisson"),
        ({"sampling": "fixed"}, "sampling must be 'poisson' in mode recommended"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, dict) else part,
)  # fmt: skip
def test_bad_numbers_are_refused(changed, message):
    with pytest.raises(ValueError, match=message) as caught:
        _defense(**changed)
    assert "\n" not in str(caught.value)


def test_params_with_other_layers_than_the_guarantee_assumes_are_refused():
    with pytest.raises(ValueError, match="num_layers must be that of the params, 3"):
        _defense(num_layers=6).gradient(jax.random.key(0), PARAMS, _batch())

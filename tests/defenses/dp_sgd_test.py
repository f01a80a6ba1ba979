"""DP-SGD: what one example can change, the noise that is drawn, and plain SGD within."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from fljax import local, losses, models, rounds, schedule
from fljax.defenses.dp_sgd import dp_sgd
from fljax.types import Batch, Features, Rows

SIGMA, EXPECTED = np.array([0.5, 2.0]), np.array([4.0, 2.5])


def _linear(params, x, y):
    """Its gradient is the row itself."""
    del y
    return jnp.sum(params["a"] * x[:2]) + jnp.sum(params["b"] * x[2:])


def _defense(loss_fn=_linear, **changed):
    numbers = {
        "clip": 1.0,
        "noise_multiplier": np.zeros(2),
        "sampling_rate": np.full(2, 0.1),
        "batch_size": np.ones(2),
    }
    return dp_sgd(loss_fn, **(numbers | changed))


def _batch(rows, mask=None, client=0):
    x = jnp.asarray(rows, jnp.float32).reshape(-1, 4)
    mask = jnp.ones(len(x), bool) if mask is None else jnp.asarray(mask, bool)
    return Batch(x, jnp.zeros(len(x)), mask, jnp.int32(client))


PARAMS = {"a": jnp.zeros(2), "b": jnp.zeros(2)}


def _sum(rows, mask=None, **changed):
    """Clipped sum without noise, all parameters in one vector."""
    grads, _ = _defense(**changed).gradient(
        jax.random.key(0), PARAMS, _batch(rows, mask)
    )
    return np.concatenate([grads["a"], grads["b"]])


# ---- clipping


def test_an_example_is_clipped_to_the_norm_over_all_parameters():
    # Norms 5 (over both arrays) and 0.5: the first shrinks to 1, the second stays.
    found = _sum([[3, 0, 0, 4], [0, 0.3, 0.4, 0]])
    np.testing.assert_allclose(found, [0.6, 0.3, 0.4, 0.8], rtol=1e-6)


def test_one_record_changes_the_sum_by_the_stated_sensitivity_at_most():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 4)) * np.exp(rng.normal(0, 3, (50, 1)))
    sensitivity = _defense(clip=0.7).noise[0].sensitivity
    whole = _sum(rows, clip=0.7)
    changes = []
    for left_out in range(50):
        mask = np.arange(50) != left_out
        changes.append(np.linalg.norm(whole - _sum(rows, mask, clip=0.7)))
    norms = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(changes, np.minimum(norms, 0.7), atol=1e-5)
    # A bound that nobody reaches would overstate the noise.
    assert max(changes) == pytest.approx(sensitivity, rel=1e-4)


def test_clipping_agrees_with_that_of_optax():
    model = models.mlp(4, hidden=(8,))
    loss_fn = losses.example_loss(
        lambda params, x: model.apply(params, _features(x)), losses.squared
    )
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.normal(size=(16, 4)), jnp.float32)
    y = jnp.asarray(3 * rng.normal(size=16), jnp.float32)
    params = model.init(jax.random.key(2))
    each = jax.vmap(jax.grad(loss_fn), (None, 0, 0))(params, x, y)
    transform = optax.contrib.differentially_private_aggregate(0.8, 0.0, 0)
    expected, _ = transform.update(each, transform.init(params))
    defense = _defense(loss_fn, clip=0.8, batch_size=np.array([16.0, 1.0]))
    batch = Batch(x, y, jnp.ones(16, bool), jnp.int32(0))
    found, loss = defense.gradient(jax.random.key(0), params, batch)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), found, expected
    )
    np.testing.assert_allclose(
        loss, losses.batch_loss(loss_fn, params, batch), rtol=1e-6
    )


def _features(x):
    return Features(x, jnp.zeros(0, jnp.int32))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30], ids=["nan", "inf", "overflow"])
def test_an_example_without_a_finite_norm_counts_as_zero(bad):
    found = _sum([[bad, 0, 0, 1], [0, 0.3, 0.4, 0]])
    np.testing.assert_allclose(found, [0, 0.3, 0.4, 0], rtol=1e-6)


def test_padding_contributes_exactly_zero_whatever_it_holds():
    rows = [[0.1, 0.2, 0.3, 0.4], [np.nan, np.inf, 7, 7]]
    found = _sum(rows, [True, False])
    np.testing.assert_array_equal(found, _sum(rows[:1]))


def test_padding_contributes_zero_where_the_loss_of_zeros_has_a_gradient():
    def loss_fn(params, x, y):
        return jnp.sum(jnp.square(params["a"] + 1)) + _linear(params, x, y)

    def total(rows, mask):
        return _sum(rows, mask, loss_fn=loss_fn, clip=1e6)

    rows = np.ones((3, 4))
    np.testing.assert_array_equal(
        total(rows, [True, False, False]), total(rows[:1], [True])
    )


def test_the_reported_loss_is_the_mean_of_the_batch():
    def loss_fn(params, x, y):
        return _linear(params, x, y) + x[0]

    batch = _batch([[1, 0, 0, 0], [3, 0, 0, 0], [9, 0, 0, 0]], [True, True, False])
    _, loss = _defense(loss_fn).gradient(jax.random.key(0), PARAMS, batch)
    assert loss == 2.0


# ---- noise


def _draws(client, count=4000, rows=(), clip=3.0, **changed):
    """`[count, 4]` noisy gradients of one client."""
    how = {"noise_multiplier": SIGMA, "batch_size": EXPECTED} | changed
    defense = _defense(clip=clip, **how)
    batch = _batch(
        np.array(rows or [[0] * 4]), [bool(rows)] * max(len(rows), 1), client
    )
    keys = jax.random.split(jax.random.key(7), count)
    grads = jax.vmap(lambda key: defense.gradient(key, PARAMS, batch)[0])(keys)
    return np.concatenate([grads["a"], grads["b"]], axis=1), defense.noise[0]


@pytest.mark.parametrize("client", [0, 1])
def test_the_noise_on_the_sum_is_what_the_accountant_is_told(client):
    found, spec = _draws(client)
    on_sum = (found * EXPECTED[client]).ravel()
    scale = spec.noise_multiplier[client] * spec.sensitivity
    assert on_sum.std() == pytest.approx(scale, rel=4 / np.sqrt(2 * on_sum.size))
    assert abs(on_sum.mean()) < 4 * scale / np.sqrt(on_sum.size)
    assert stats.kstest(on_sum / scale, "norm").pvalue > 1e-3


def test_noise_is_added_to_the_clipped_sum_before_the_division():
    rows = [[3, 0, 0, 0], [0, 30, 0, 0]]
    found, _ = _draws(0, rows=rows)
    scale = SIGMA[0] * 3.0
    mean = found.mean(axis=0) * EXPECTED[0]
    np.testing.assert_allclose(mean, [3, 3, 0, 0], atol=4 * scale / np.sqrt(len(found)))
    deviation = found.std(axis=0) * EXPECTED[0]
    np.testing.assert_allclose(deviation, scale, rtol=4 / np.sqrt(2 * len(found)))


def test_an_empty_batch_gives_noise_and_no_loss():
    batch = _batch(np.full((3, 4), np.nan), [False] * 3)
    grads, loss = _defense(noise_multiplier=SIGMA).gradient(
        jax.random.key(0), PARAMS, batch
    )
    assert loss == 0
    assert np.isfinite(grads["a"]).all() and (np.asarray(grads["a"]) != 0).all()
    np.testing.assert_array_equal(_sum(np.full((3, 4), np.nan), [False] * 3), 0)


def test_arrays_of_the_same_shape_get_different_noise():
    found, _ = _draws(0)
    correlation = np.corrcoef(found.T)
    off = correlation[~np.eye(4, dtype=bool)]
    assert np.abs(off).max() < 4.5 / np.sqrt(len(found))


def _noise_of_a_training(num_rounds=60, steps=3):
    """Deltas `[R, C, 2 * 40]` of clients whose loss is flat: nothing but noise."""
    sizes, width = [9, 9, 5], 40
    params = {"a": jnp.zeros(width), "b": jnp.zeros(width)}
    plan = schedule.build(
        sizes, num_rounds=num_rounds, batch_size=3, steps=steps, poisson=True
    )
    defense = dp_sgd(
        lambda params, x, y: 0.0 * jnp.sum(params["a"]),
        clip=2.0,
        noise_multiplier=np.array([1.5, 1.5, 0.5]),
        sampling_rate=plan.sampling_rate[:-1],
        batch_size=np.ones(3),
    )
    update = local.sgd(None, optax.sgd(1.0), gradient=defense.gradient)
    server = optax.sgd(1.0)
    run = rounds.start(params, plan, server)
    advance = functools.partial(rounds.advance, local=update, server_optimiser=server)
    rows = Rows(jnp.zeros((23, 1)), jnp.zeros(23))
    run = jax.jit(advance)(jax.random.key(0), run, rows, plan, num_rounds)
    return np.concatenate([run.transcript.delta["a"], run.transcript.delta["b"]], -1)


def test_in_a_training_noise_is_independent_across_clients_layers_rounds_and_steps():
    num_rounds, steps = 60, 3
    delta = _noise_of_a_training(num_rounds, steps)
    # Equal noise in all steps would give `steps` times the deviation, not its root.
    scale = 2.0 * np.array([1.5, 1.5, 0.5]) * np.sqrt(steps)
    found, count = delta.std(axis=(0, 2)), delta[:, 0].size
    np.testing.assert_allclose(found, scale, rtol=4 / np.sqrt(2 * count))
    first, second = delta[..., :40], delta[..., 40:]
    streams = {
        (part, client, shift): np.roll(values[:, client], shift, axis=0).ravel()
        for part, values in (("a", first), ("b", second))
        for client in range(3)
        for shift in (0, 1)
    }
    for one, other in itertools.combinations(streams, 2):
        correlation = np.corrcoef(streams[one], streams[other])[0, 1]
        assert abs(correlation) < 4.5 / np.sqrt(first[:, 0].size), (one, other)


# ---- one function for all clients


def test_clients_side_by_side_equal_each_alone():
    rng = np.random.default_rng(3)
    defense = _defense(noise_multiplier=SIGMA, batch_size=EXPECTED, clip=0.5)
    keys = jax.random.split(jax.random.key(1), 2)
    batches = [
        _batch(rng.normal(size=(6, 4)), rng.random(6) < 0.7, client)
        for client in (0, 1)
    ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *batches)
    both, loss = jax.vmap(defense.gradient, (0, None, 0))(keys, PARAMS, stacked)
    key_of = list(jax.random.split(jax.random.key(1), 2))
    for client in (0, 1):
        alone, alone_loss = defense.gradient(key_of[client], PARAMS, batches[client])
        for name in PARAMS:
            np.testing.assert_allclose(both[name][client], alone[name], atol=1e-6)
        np.testing.assert_allclose(loss[client], alone_loss, atol=1e-6)


def test_without_noise_and_clipping_a_full_batch_step_is_plain_sgd():
    rng = np.random.default_rng(4)
    x = jnp.asarray(rng.normal(size=(12, 4)), jnp.float32)
    rows = Rows(x, jnp.asarray(rng.normal(size=12), jnp.float32))

    def loss_fn(params, x, y):
        return jnp.square(_linear(params, x, y) - y)

    sizes = np.array([7, 5])
    plan = schedule.build(sizes, num_rounds=5, batch_size=None, poisson=True)
    defense = _defense(
        loss_fn, clip=1e6, sampling_rate=plan.sampling_rate[:-1], batch_size=1.0 * sizes
    )
    server = optax.sgd(1.0)
    found, expected = (
        jax.jit(
            functools.partial(rounds.advance, local=update, server_optimiser=server)
        )(jax.random.key(0), rounds.start(PARAMS, plan, server), rows, plan, 5)
        for update in (
            local.sgd(loss_fn, optax.sgd(0.1), gradient=defense.gradient),
            local.sgd(loss_fn, optax.sgd(0.1)),
        )
    )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected
    )
    assert np.abs(found.transcript.delta["a"]).min() > 1e-4


def test_the_numbers_may_be_traced():
    def gradient(clip, sigma):
        defense = _defense(clip=clip, noise_multiplier=sigma)
        batch = _batch([[3, 0, 0, 4]])
        return defense.gradient(jax.random.key(0), PARAMS, batch)[0]["a"][0]

    found = jax.jit(jax.vmap(gradient))(jnp.array([1.0, 2.0]), jnp.zeros((2, 2)))
    np.testing.assert_allclose(found, [0.6, 1.2], rtol=1e-6)


def test_the_clip_and_its_noise_may_follow_a_schedule():
    defense = _defense(
        clip=lambda round: jnp.where(round < 2, 1.0, 2.0), num_rounds=4,
        noise_multiplier=SIGMA,
    )  # fmt: skip
    assert defense.noise[0].sensitivity == 2

    def gradient(rows, round):
        batch = _batch(rows)._replace(round=jnp.int32(round))
        return defense.gradient(jax.random.key(0), PARAMS, batch)[0]["a"]

    noise = [gradient([[0, 0, 0, 0]], round) for round in (0, 3)]
    np.testing.assert_allclose(noise[1], 2 * noise[0], rtol=1e-6)
    for round, clip in ((0, 1.0), (3, 2.0)):
        found = gradient([[3, 0, 0, 4]], round)[0] - noise[round // 3][0]
        assert found == pytest.approx(0.6 * clip, rel=1e-5)


def test_a_batch_must_say_whose_rows_it_holds():
    batch = _batch([[1, 0, 0, 0]])._replace(client=None)
    with pytest.raises(ValueError, match="batch.client"):
        _defense().gradient(jax.random.key(0), PARAMS, batch)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clip": 0.0}, "clip must be > 0"),
        ({"clip": -1}, "clip must be > 0"),
        ({"clip": np.inf}, "clip must be > 0 and finite"),
        ({"clip": np.nan}, "clip must be > 0"),
        ({"noise_multiplier": np.array([1.0, -0.1])}, "noise_multiplier must be >= 0"),
        (
            {"noise_multiplier": np.array([np.nan, 1.0])},
            "noise_multiplier must be >= 0",
        ),
        ({"sampling_rate": np.array([0.5, 1.5])}, "sampling_rate must be in"),
        ({"sampling_rate": np.array([0.0, 0.5])}, "sampling_rate must be in"),
        ({"batch_size": np.array([0.0, 1.0])}, "batch_size must be > 0"),
    ],
    ids=str,
)
def test_bad_numbers_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        _defense(**changed)

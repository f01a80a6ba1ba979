"""Gradient-based inference: its slope, planted truths, and what must not matter."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from fljax.attacks.attribute import gradient
from fljax.types import Exchange, Features, Known

NUM_ROWS, NUM_ROUNDS = 12, 8
BINARY = np.array([[0.0], [1.0]])
THREE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def _loss(params, x, y):
    hidden = jnp.tanh(x.numeric @ params["first"])
    return jnp.square(jnp.sum(hidden * params["second"]) - y)


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None, None))
def _one_step(params, features, y):
    def mean_loss(params):
        return jnp.mean(jax.vmap(_loss, (None, 0, 0))(params, features, y))

    return jax.tree.map(lambda leaf: 0.05 * leaf, jax.grad(mean_loss)(params))


def _client(seed, candidates):
    """Messages of one full-batch step a round on balanced rows, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(NUM_ROWS) % len(candidates))
    public = rng.normal(size=(NUM_ROWS, 3))
    x = np.concatenate([public, candidates[truth]], axis=1)
    # Half of the clients pay for the attribute what the others get for it, so that
    # the message of another client says nothing about this one's rows.
    weight = np.append(rng.normal(size=3), np.full(x.shape[1] - 3, 1.5))
    weight[3:] *= 1 if seed // 2 % 2 else -1
    y = x @ weight + 0.1 * rng.normal(size=NUM_ROWS)
    params = {
        "first": jnp.asarray(rng.normal(size=(NUM_ROUNDS, x.shape[1], 6)), jnp.float32),
        "second": jnp.asarray(rng.normal(size=(NUM_ROUNDS, 6)), jnp.float32),
    }
    codes = jnp.zeros((NUM_ROWS, 0), jnp.int32)
    features = Features(jnp.asarray(x, jnp.float32), codes)
    y = jnp.asarray(y, jnp.float32)

    delta = _one_step(params, features, y)
    known = Known(Features(features.numeric[:, :3], codes), y, jnp.ones(NUM_ROWS, bool))
    return Exchange(params, delta), known, jnp.asarray(truth)


@functools.cache
def _clients(num_clients, num_values):
    candidates = BINARY if num_values == 2 else THREE
    draws = [_client(seed, candidates) for seed in range(num_clients)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *draws)


@functools.partial(jax.jit, static_argnames=("noise", "num_iterations"))
def _attack(exchange, known, candidates, noise, num_rounds, num_iterations=100):
    def one(key, exchange, known):
        return gradient.gradient_based(
            key,
            _loss,
            exchange,
            known,
            candidates,
            num_rounds=num_rounds,
            optimiser=optax.adam(0.3),
            num_iterations=num_iterations,
            noise=noise,
        )

    keys = jax.random.split(jax.random.key(0), known.y.shape[0])
    return jax.vmap(one)(keys, exchange, known)


_mismatch = jax.jit(functools.partial(gradient._mismatch, _loss))


@pytest.mark.parametrize("num_rounds", [1, 5])
def test_the_slope_is_the_gradient_through_the_whole_objective(num_rounds):
    exchange, known, truth = _client(0, BINARY)
    known = known._replace(mask=jnp.arange(NUM_ROWS) < 9)
    block = 0.3 + 0.4 * jnp.asarray(BINARY, jnp.float32)[truth]

    def mean_loss(params, block):
        numeric = jnp.concatenate([known.public.numeric, block], axis=1)
        rows = Features(numeric, known.public.codes)
        values = jax.vmap(_loss, (None, 0, 0))(params, rows, known.y)
        return jnp.sum(jnp.where(known.mask, values, 0.0)) / 9

    def mismatch(block):
        total = 0.0
        for t in range(num_rounds):
            params, delta = (
                {name: leaf[t] for name, leaf in tree.items()} for tree in exchange
            )
            grads, _ = ravel_pytree(jax.grad(mean_loss)(params, block))
            delta, _ = ravel_pytree(delta)
            total += 1 - grads @ delta / jnp.sqrt((grads @ grads) * (delta @ delta))
        return total

    loss, slope = _mismatch(exchange, known, block, num_rounds)
    expected_loss, expected = jax.jit(jax.value_and_grad(mismatch))(block)
    assert loss == pytest.approx(float(expected_loss), rel=1e-4, abs=1e-5)
    tolerance = 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(slope, expected, rtol=0, atol=tolerance)
    assert np.abs(expected[:9]).min() > 0
    np.testing.assert_array_equal(slope[9:], 0.0)


def test_the_truth_has_no_mismatch():
    exchange, known, truth = _client(0, BINARY)
    block = jnp.asarray(BINARY, jnp.float32)[truth]
    loss, slope = _mismatch(exchange, known, block, NUM_ROUNDS)
    assert abs(loss) < 1e-4
    assert np.abs(slope).max() < 1e-2


def test_a_vanished_message_gives_a_finite_slope():
    exchange, known, truth = _client(0, BINARY)
    silent = exchange._replace(delta=jax.tree.map(jnp.zeros_like, exchange.delta))
    block = jnp.asarray(BINARY, jnp.float32)[truth]
    loss, slope = _mismatch(silent, known, block, 2)
    assert loss == pytest.approx(2.0)
    assert np.isfinite(slope).all()


def test_of_rows_that_are_absent_nothing_is_learned():
    exchange, known, truth = _client(0, BINARY)
    block = 0.3 + 0.4 * jnp.asarray(BINARY, jnp.float32)[truth]
    there = jnp.arange(NUM_ROWS) < 7
    present = jnp.broadcast_to(there, (NUM_ROUNDS, NUM_ROWS))
    found = _mismatch(exchange, known, block, 5, present)
    expected = _mismatch(exchange, known._replace(mask=there), block, 5)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_clients_weigh_in_a_sum_what_the_server_gives_them():
    """Two clients of six rows, one with a tenth of the sum."""
    exchange, known, truth = _client(0, BINARY)
    block = jnp.asarray(BINARY, jnp.float32)[truth]
    numeric = jnp.concatenate([known.public.numeric, block], axis=1)
    first, second = (
        _one_step(exchange.params, Features(x, y[:, :0].astype(int)), y[:, 0])
        for x, y in zip(
            jnp.split(numeric, 2), jnp.split(known.y[:, None], 2), strict=True
        )
    )
    delta = jax.tree.map(lambda a, b: 0.1 * a + 0.9 * b, first, second)
    weight = jnp.tile(jnp.repeat(jnp.array([0.1, 0.9]), 6), (NUM_ROUNDS, 1))
    told = exchange._replace(delta=delta), known, block, NUM_ROUNDS
    assert abs(_mismatch(*told, weight)[0]) < 1e-4
    assert _mismatch(*told, weight > 0)[0] > 0.01


@pytest.mark.parametrize(
    ("num_values", "noise", "bound"),
    [
        (2, "gumbel", 0.9),
        pytest.param(2, "logistic", 0.9, marks=pytest.mark.slow),
        pytest.param(3, "gumbel", 0.65, marks=pytest.mark.slow),
    ],
    ids=["binary", "binary logistic", "three values"],
)
def test_planted_attributes_are_recovered(num_values, noise, bound):
    exchange, known, truth = _clients(8, num_values)
    candidates = jnp.asarray(BINARY if num_values == 2 else THREE, jnp.float32)
    found = _attack(exchange, known, candidates, noise, NUM_ROUNDS)
    assert found.logits.shape == (8, NUM_ROWS, num_values - 1)
    assert np.mean(found.index == truth) > bound
    assert found.dissimilarity.max() < 0.1


def test_another_clients_messages_tell_nothing():
    exchange, known, truth = _clients(8, 2)
    others = jax.tree.map(lambda leaf: jnp.roll(leaf, 1, axis=0), exchange)
    candidates = jnp.asarray(BINARY, jnp.float32)
    found = _attack(others, known, candidates, "gumbel", NUM_ROUNDS)
    tolerance = 4 * 0.5 / np.sqrt(truth.size)
    assert abs(np.mean(found.index == truth) - 0.5) < tolerance


def test_silent_messages_leave_the_guess_to_chance():
    exchange, known, truth = _clients(8, 2)
    silent = jax.tree.map(jnp.zeros_like, exchange)._replace(params=exchange.params)
    candidates = jnp.asarray(BINARY, jnp.float32)
    found = _attack(silent, known, candidates, "gumbel", NUM_ROUNDS)
    tolerance = 4 * 0.5 / np.sqrt(truth.size)
    assert abs(np.mean(found.index == truth) - 0.5) < tolerance


def test_messages_that_are_no_numbers_name_no_value():
    exchange, known, _ = _clients(8, 2)
    delta = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), exchange.delta)
    broken = exchange._replace(delta=delta)
    candidates = jnp.asarray(BINARY, jnp.float32)
    found = _attack(broken, known, candidates, "gumbel", NUM_ROUNDS)
    assert (found.index == -1).all()


def test_later_rounds_are_not_read():
    exchange, known, _ = _clients(8, 2)
    candidates = jnp.asarray(BINARY, jnp.float32)
    cut = jax.tree.map(lambda leaf: leaf.at[:, 3:].set(jnp.nan), exchange)
    whole = _attack(exchange, known, candidates, "gumbel", 3)
    found = _attack(cut, known, candidates, "gumbel", 3)
    np.testing.assert_array_equal(found.logits, whole.logits)
    more = _attack(exchange, known, candidates, "gumbel", 4)
    assert (found.logits != more.logits).any()


def test_the_dissimilarity_is_a_mean_over_the_rounds_used():
    # With all messages alike it cannot depend on how many of them are used.
    exchange, known, _ = _clients(8, 2)
    alike = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf[:, :1], leaf.shape), exchange
    )
    candidates = jnp.asarray(BINARY, jnp.float32)
    one, all_ = (
        _attack(alike, known, candidates, "gumbel", r, num_iterations=1).dissimilarity
        for r in (1, NUM_ROUNDS)
    )
    np.testing.assert_allclose(one, all_, rtol=1e-4, atol=1e-6)


def test_padding_rows_do_not_matter():
    exchange, known, _ = _client(0, BINARY)
    mask = jnp.arange(NUM_ROWS) < 9

    @jax.jit
    def attack(y):
        return gradient.gradient_based(
            jax.random.key(0),
            _loss,
            exchange,
            known._replace(y=y, mask=mask),
            jnp.asarray(BINARY, jnp.float32),
            num_rounds=2,
            optimiser=optax.sgd(10.0),
            num_iterations=5,
        )

    found, expected = attack(known.y.at[9:].set(99.0)), attack(known.y)
    np.testing.assert_array_equal(found.logits, expected.logits)


@pytest.mark.slow
def test_learning_rates_vmap():
    exchange, known, _ = _client(0, BINARY)

    def attack(rate):
        return gradient.gradient_based(
            jax.random.key(0),
            _loss,
            exchange,
            known,
            jnp.asarray(BINARY, jnp.float32),
            num_rounds=4,
            optimiser=optax.sgd(rate),
            num_iterations=3,
        ).logits

    rates = jnp.array([0.1, 1.0, 10.0])
    found, alone = jax.jit(jax.vmap(attack))(rates), jax.jit(attack)
    for logits, rate in zip(found, rates, strict=True):
        np.testing.assert_allclose(logits, alone(rate), rtol=1e-4, atol=1e-5)
    assert np.abs(found[0] - found[2]).max() > 1e-2

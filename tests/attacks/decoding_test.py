"""Decoding: exact where the exact attack is, honest where nothing is determined."""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from fljax import local, losses, rounds, schedule
from fljax.attacks.reconstruction import decoding, least_squares
from fljax.attacks.reconstruction.decoding import Adam, Messages
from fljax.types import Exchange, Rows, Transcript

pytestmark = pytest.mark.usefixtures("float64")


def _least_squares(seed, num_params, num_messages, num_steps, rate=0.1):
    """Generic models, deltas after full-batch steps, and the optimum."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3 * num_params, num_params))
    y = x @ rng.normal(size=num_params) + rng.normal(size=len(x))
    hessian, linear = 2 * x.T @ x / len(x), 2 * x.T @ y / len(x)
    sent = rng.normal(size=(num_messages, num_params))
    theta = sent.copy()
    for _ in range(num_steps):
        theta = theta - rate * (theta @ hessian - linear)
    return sent, sent - theta, np.linalg.solve(hessian, linear)


def _messages(sent, delta, mask=None):
    mask = np.ones(len(sent), bool) if mask is None else mask
    return Messages(jnp.asarray(sent), jnp.asarray(delta), jnp.asarray(mask))


_affine = jax.jit(decoding.affine, static_argnames="rcond")


@pytest.mark.parametrize("num_params", [3, 12, 30])
@pytest.mark.parametrize("num_steps", [1, 7])
def test_affine_on_full_batches_is_the_exact_attack(num_params, num_steps):
    sent, delta, optimum = _least_squares(0, num_params, 2 * num_params, num_steps)
    found = _affine(_messages(sent, delta))
    exact = least_squares.reconstruct_linear(jnp.asarray(sent), jnp.asarray(delta))
    np.testing.assert_allclose(found.estimate, exact.estimate, atol=1e-10)
    np.testing.assert_allclose(found.singular_values, exact.singular_values)
    np.testing.assert_allclose(found.estimate, optimum, atol=1e-5)
    assert found.determined
    assert found.rank == num_params
    assert found.loss < 1e-12
    assert found.left < 1e-6


@pytest.mark.slow
def test_five_hundred_parameters_need_one_message_more():
    sent, delta, optimum = _least_squares(1, 500, 501, 3)
    found = _affine(_messages(sent, delta))
    assert found.determined
    assert np.linalg.norm(found.estimate - optimum) < 1e-5 * np.linalg.norm(optimum)
    assert not _affine(_messages(sent[:-1], delta[:-1])).determined


def test_clients_with_the_same_first_messages_are_not_told_apart():
    # Two Hessians that agree on the span of all that was sent but not beyond.
    num_params = 8
    sent, _, _ = _least_squares(2, num_params, num_params, 1)
    hessian = np.diag(np.arange(1.0, num_params + 1))
    point = sent[0]
    beyond = np.linalg.svd(sent[1:] - point)[2][-1]
    other = hessian + 3 * np.outer(beyond, beyond)
    pull = np.arange(num_params) - 2.0  # the delta at the first model sent
    deltas = [pull + (sent - point) @ h for h in (hessian, other)]
    optima = [point - np.linalg.solve(h, pull) for h in (hessian, other)]
    np.testing.assert_allclose(deltas[0], deltas[1], atol=1e-12)
    assert np.linalg.norm(optima[0] - optima[1]) > 0.1
    found = _affine(_messages(sent, deltas[0]), rcond=1e-10)
    assert found.rank == num_params - 1
    assert not found.determined


def test_rounds_without_the_client_do_not_count():
    sent, delta, _ = _least_squares(3, 6, 30, 2)
    mask = np.arange(30) % 3 > 0
    some = _affine(_messages(sent[mask], delta[mask]), rcond=1e-10)
    spoilt = np.where(mask[:, None], delta, np.nan)
    whole = _affine(_messages(sent, spoilt, mask), rcond=1e-10)
    np.testing.assert_allclose(whole.estimate, some.estimate, atol=1e-9)
    assert whole.rank == some.rank == 6
    last = decoding.last_returned(_messages(sent, spoilt, mask))
    np.testing.assert_allclose(last, (sent - delta)[mask][-1])


_FAST = {"fit": Adam(3e-3, 400), "decode": Adam(3e-2, 200)}


def _simulation(num_inputs, rate=0.5, num_rows=20):
    def loss(params, x, y):
        return losses.logistic(x @ params[:-1] + params[-1], y)

    unravel = ravel_pytree(jnp.zeros(num_inputs + 1))[1]
    return decoding.simulated_client(
        loss, unravel, num_inputs, rate=rate, num_rows=num_rows
    )


def _mlp(key, messages):
    return decoding.learned(key, messages, decoding.mlp(3, 64), **_FAST)


def _simulated(key, messages):
    settings = decoding.Settings(iterations=40, ensemble_size=3, floor=1e-3)
    return decoding.simulated(key, messages, _simulation(2), settings=settings)


_LEARNED = {"mlp": _mlp, "simulated": _simulated}


@functools.cache
def _logistic(seed, num_messages=40):
    """A logistic client of three parameters, and its optimum."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(1, 1, (60, 2)), np.ones(60)])
    chance = 1 / (1 + np.exp(-x @ [1.0, -2.0, 0.5]))
    y = (rng.random(60) < chance).astype(float)
    sent = np.linspace([-0.5, 0.5, 0], [0.5, -0.5, 0.5], num_messages)
    sent = sent + 0.3 * rng.normal(size=sent.shape)

    def gradient(theta):
        return (1 / (1 + np.exp(-theta @ x.T)) - y) @ x / len(y)

    optimum = np.zeros(3)
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ optimum))
        optimum -= np.linalg.solve((x.T * (p * (1 - p))) @ x / 60, gradient(optimum))
    return sent, 0.5 * gradient(sent), optimum


@pytest.mark.parametrize(
    ("name", "share"),
    [("mlp", 0.7), pytest.param("simulated", 0.5, marks=pytest.mark.slow)],
)
def test_a_learned_mapping_comes_nearer_to_the_optimum(name, share):
    sent, delta, optimum = _logistic(0)
    found = jax.jit(_LEARNED[name])(jax.random.key(0), _messages(sent, delta))
    before = np.linalg.norm(sent[-1] - delta[-1] - optimum)
    assert np.linalg.norm(found.estimate - optimum) < share * before
    assert found.loss < 0.05 * np.mean(np.sum(np.square(delta), axis=1))
    assert found.left < np.linalg.norm(delta[-1])
    assert found.determined


@pytest.mark.slow
def test_the_simulated_client_beats_the_affine_mapping_under_noise():
    errors = []
    for seed in range(3):
        sent, delta, optimum = _logistic(seed)
        noise = 0.3 * np.std(delta) * np.random.default_rng(seed).normal(size=(40, 3))
        seen = _messages(sent, delta + noise)
        found = jax.jit(_simulated)(jax.random.key(seed), seen)
        regression = _affine(seen)
        errors.append(
            [np.linalg.norm(f.estimate - optimum) for f in (found, regression)]
        )
    ours, affine = np.median(errors, axis=0)
    assert ours < affine


@pytest.mark.slow
@pytest.mark.parametrize("name", _LEARNED)
def test_clients_side_by_side_are_as_alone(name):
    seen = [_messages(*_logistic(seed)[:2]) for seed in (0, 1)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *seen)

    def keyed(number, messages):
        return _LEARNED[name](jax.random.key(number), messages)

    together = jax.jit(jax.vmap(keyed))(jnp.arange(2), stacked)
    alone = jax.jit(keyed)
    for number, messages in enumerate(seen):
        each = alone(jnp.asarray(number), messages)
        np.testing.assert_allclose(together.estimate[number], each.estimate, rtol=1e-5)
        np.testing.assert_allclose(together.loss[number], each.loss, rtol=1e-4)


@pytest.mark.parametrize("name", ["affine", *_LEARNED])
def test_without_any_message_nothing_is_determined(name):
    sent, delta, _ = _logistic(0)
    seen = _messages(sent, np.full_like(delta, np.nan), np.zeros(40, bool))
    decode = _LEARNED.get(name, lambda _, m: decoding.affine(m))
    found = jax.jit(decode)(jax.random.key(0), seen)
    assert np.isfinite(found.estimate).all()
    assert found.rank == 0
    assert not found.determined


def test_scaling_and_iterations_are_checked():
    seen = _messages(*_logistic(0)[:2])
    with pytest.raises(ValueError, match="scaling must be"):
        decoding.learned(jax.random.key(0), seen, decoding.mlp(3), scaling="other")
    with pytest.raises(ValueError, match="iterations >= 1"):
        decoding.learned(jax.random.key(0), seen, decoding.mlp(3), decode=Adam(1e-2, 0))


@pytest.mark.parametrize("name", ["affine", "learned", "simulated"])
def test_no_attack_is_given_the_truth(name):
    known = {"key", "messages", "mapping", "simulation", "settings", "fit", "decode",
             "scaling", "rcond", "weights"}  # fmt: skip
    assert set(inspect.signature(getattr(decoding, name)).parameters) <= known


@pytest.mark.parametrize("proximal", [None, 0.5], ids=["fed_avg", "fed_prox"])
def test_messages_of_sampled_clients_decode_from_a_transcript(proximal):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(36, 3)), rng.normal(size=36)
    chosen = [rng.choice(3, 2, replace=False) for _ in range(16)]
    table = schedule.build(
        [12] * 3, num_rounds=16, batch_size=None, participants=chosen, steps=4
    )
    loss = losses.example_loss(lambda params, x: x @ params, losses.squared)
    server = optax.sgd(1.0)
    seen = rounds.advance(
        jax.random.key(0),
        rounds.start(jnp.zeros(3), table, server),
        Rows(x, y),
        table,
        16,
        local=local.sgd(loss, optax.sgd(0.05), proximal=proximal),
        server_optimiser=server,
    ).transcript
    for client in range(3):
        own = slice(12 * client, 12 * client + 12)
        optimum = np.linalg.lstsq(x[own], y[own])[0]
        messages = jax.jit(decoding.of_client)(seen, client)
        assert int(messages.mask.sum()) == sum(client in each for each in chosen)
        found = _affine(messages, rcond=1e-8)
        np.testing.assert_allclose(found.estimate, optimum, atol=1e-4)


def test_an_exchange_is_flattened_round_by_round():
    tree = {"b": np.arange(2.0)[:, None], "a": np.arange(8.0).reshape(2, 2, 2)}
    seen = decoding.of_exchange(Exchange(tree, tree), [True, False])
    np.testing.assert_array_equal(seen.sent, [[0, 1, 2, 3, 0], [4, 5, 6, 7, 1]])
    np.testing.assert_array_equal(seen.mask, [True, False])
    nobody = Transcript(np.arange(2), np.array([[1], [-1]]), tree, tree["b"][:, None])
    nobody = nobody._replace(delta=jax.tree.map(lambda a: a[:, None], tree))
    assert not decoding.of_client(nobody, 0).mask.any()


@pytest.mark.slow
def test_what_never_varies_is_not_learned():
    rng = np.random.default_rng(0)
    sent = np.column_stack([rng.normal(size=(30, 2)), np.zeros(30)])
    delta = np.column_stack([0.1 * sent[:, :2], np.zeros(30)])
    seen = Messages(jnp.asarray(sent), jnp.asarray(delta), jnp.ones(30, bool))

    def learned(messages):
        told = {"fit": Adam(3e-3, 300), "decode": Adam(1e-2, 50)}
        mapping = decoding.mlp(3, 16)
        return decoding.learned(jax.random.key(0), messages, mapping, **told)

    moved = seen._replace(
        sent=seen.sent + jnp.asarray([[0, 0, 4.0]]),
        delta=seen.delta + jnp.asarray([[0, 0, 0.5]]),
    )
    found, other = learned(seen), learned(moved)
    np.testing.assert_allclose(found.loss, other.loss, rtol=1e-4)
    assert float(found.estimate[2]) == 0

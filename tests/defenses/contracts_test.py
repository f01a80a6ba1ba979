"""What every defense keeps to, alone and inside a training; and several as one."""

import functools
import itertools

import jax
import numpy as np
import optax
import pytest

from fljax import defenses, local, losses, models, rounds, schedule
from fljax.defenses import noise, pruning
from fljax.types import Batch, Features, Rows, Sender
from tests.defenses import examples

MODEL = models.mlp(3, 1, hidden=(4,), num_onehot=2)
LOSS = losses.example_loss(MODEL.apply, losses.squared)
CLIENTS, STEPS, DRAWS = 3, 2, 2000
EVERY = pytest.mark.parametrize("text", [*examples.marked(examples.TEXTS)])
WITH_NOISE = pytest.mark.parametrize("text", [*examples.marked(examples.NOISY)])
CDP = "fed_cdp(clip=0.5, sigma={}, mode=recommended)"
SDP = "fed_sdp(clip=0.5, sigma={}, where=%s)"


def _make(text, scale=0.3):
    return examples.built(text, LOSS, CLIENTS, scale=scale)


def _rows(number, seed=0):
    rng = np.random.default_rng(seed)
    numeric = rng.normal(size=(number, 3)).astype(np.float32)
    codes = rng.integers(0, 3, (number, 1)).astype(np.int32)
    y = rng.normal(size=number).astype(np.float32)
    return Rows(Features(numeric, codes), y)


def _batch(client, number=4, real=3):
    rows = _rows(number, client)
    mask = np.arange(number) < real
    return Batch(rows.x, rows.y, mask, np.int32(client), np.int32(client + 1))


def _empty():
    """Rows that nobody has, whose numbers are not finite."""
    batch = _batch(1, real=0)
    bad = np.full_like(batch.x.numeric, np.nan)
    return batch._replace(x=batch.x._replace(numeric=bad))


def _update(defense, rate=0.1):
    return local.sgd(
        LOSS, optax.sgd(rate), gradient=defense.gradient, encode=defense.encode
    )


def _one_client(defense, params, key, batch):
    """Delta of one step as the server takes it."""
    update, sender = _update(defense), Sender(batch.client, batch.round)
    keys = [jax.random.fold_in(key, i) for i in range(3)]
    carry = update.step(keys[0], update.init(params), params, batch)
    delta = update.final(keys[1], carry, params, sender).delta
    return defense.receive(keys[2], delta, sender) if defense.receive else delta


@functools.cache
def _params():
    return jax.jit(MODEL.init)(jax.random.key(0))


@functools.cache
def _together(text):
    """Deltas of all clients, and of one who has no rows under many keys."""
    batches = [_batch(client) for client in range(CLIENTS)] + [_empty()] * DRAWS
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *batches)
    keys = jax.vmap(jax.random.key)(np.arange(len(batches)))
    one = functools.partial(_one_client, _make(text), _params())
    return jax.device_get(jax.jit(jax.vmap(one))(keys, stacked))


@pytest.mark.slow
@EVERY
def test_clients_side_by_side_equal_each_alone_in_shape_and_value(text):
    one = jax.jit(functools.partial(_one_client, _make(text), _params()))
    for client in range(CLIENTS):
        alone = one(jax.random.key(client), _batch(client))
        shapes = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), alone)
        assert shapes == jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), _params())
        mine = jax.tree.map(lambda leaf, c=client: leaf[c], _together(text))
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6), mine, alone
        )


@EVERY
def test_a_batch_of_padding_gives_a_finite_message_of_noise_alone(text):
    silent = functools.partial(_one_client, _make(text, 0.0), _params())
    for leaf in jax.tree.leaves(jax.jit(silent)(jax.random.key(0), _empty())):
        np.testing.assert_array_equal(leaf, 0)
    for leaf in jax.tree.leaves(_together(text)):
        assert np.isfinite(leaf[CLIENTS:]).all()


@WITH_NOISE
def test_noise_differs_in_every_coordinate_of_every_layer_and_with_every_key(text):
    leaves = jax.tree.leaves(_together(text))
    noise_of = np.concatenate([x[CLIENTS:].reshape(DRAWS, -1) for x in leaves], 1)
    bound = 5.5 / np.sqrt(DRAWS)
    between = np.corrcoef(noise_of, rowvar=False) - np.eye(noise_of.shape[1])
    assert np.abs(between).max() < bound
    after = np.corrcoef(noise_of[1:].T, noise_of[:-1].T)
    assert np.abs(after[: noise_of.shape[1], noise_of.shape[1] :]).max() < bound


def _training(defense, num_rounds, lanes=2, rate=0.0):
    """Server's steps `[R, P]` and deltas `[R, C, P]`; all examples are zeros."""
    params = jax.tree.map(np.zeros_like, _params())
    plan = schedule.build(
        [4] * CLIENTS, num_rounds=num_rounds, batch_size=4, steps=STEPS, lanes=lanes,
        weights="uniform",
    )  # fmt: skip
    server = optax.sgd(1.0)
    advance = functools.partial(
        rounds.advance, local=_update(defense, rate), server_optimiser=server,
        receive=defense.receive,
    )  # fmt: skip
    rows = _rows(4 * CLIENTS)
    rows = jax.tree.map(np.zeros_like, rows)
    run = jax.jit(advance)(
        jax.random.key(3), rounds.start(params, plan, server), rows, plan, num_rounds
    )
    sent = [np.asarray(leaf) for leaf in jax.tree.leaves(run.transcript.params)]
    deltas = [np.asarray(leaf) for leaf in jax.tree.leaves(run.transcript.delta)]
    last = [np.asarray(leaf)[None] for leaf in jax.tree.leaves(run.server.params)]
    models = [np.concatenate(pair) for pair in zip(sent, last, strict=True)]
    steps = [(m[:-1] - m[1:]).reshape(num_rounds, -1) for m in models]
    return (
        np.concatenate(steps, axis=-1),
        np.concatenate([d.reshape(*d.shape[:2], -1) for d in deltas], axis=-1),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "dp_sgd(clip=0.5, sigma={})",
        "fed_cdp(clip=0.5, sigma={})",
        SDP % "client",
        "gaussian(deviation={})",
        "laplace(scale={})",
    ],
)
def test_in_a_training_noise_is_independent_across_clients_and_rounds(text):
    # Small enough for the loss to stay flat to rounding.
    num_rounds = 30
    _, delta = _training(_make(text, 1e-3), num_rounds, rate=0.1)
    assert len(np.unique(delta[..., 0])) == num_rounds * CLIENTS
    streams = [
        np.roll(delta[:, client], shift, axis=0).ravel()
        for client, shift in itertools.product(range(CLIENTS), (0, 1))
    ]
    for one, other in itertools.combinations(streams, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < 4.5 / np.sqrt(one.size)


def test_what_a_server_makes_of_messages_moves_the_model_and_not_the_record():
    steps, delta = _training(_make(SDP % "server", 1.0), 8)
    np.testing.assert_array_equal(delta, 0)
    expected = 0.5 / np.sqrt(CLIENTS)  # ONE division by the number of clients
    assert steps.std() == pytest.approx(expected, rel=4 / np.sqrt(2 * steps.size))


def test_what_a_client_makes_of_her_message_is_recorded_and_averaged():
    steps, delta = _training(_make(SDP % "client", 1.0), 8)
    assert delta.std() == pytest.approx(0.5, rel=4 / np.sqrt(2 * delta.size))
    np.testing.assert_allclose(steps, delta.mean(axis=1), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["client", "server"])
def test_noise_on_messages_does_not_depend_on_the_lanes(where):
    two, three = (_training(_make(SDP % where, 1.0), 3, lanes) for lanes in (2, 3))
    for a, b in zip(two, three, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_composed_defenses_keep_every_seam_and_every_promise():
    parts = _make(CDP, 1.0), pruning.pruning(0.5), _make(SDP % "server", 1.0)
    whole = defenses.compose(*parts)
    assert whole.gradient is parts[0].gradient
    assert whole.encode is parts[1].encode
    assert whole.receive is parts[2].receive
    assert [spec.unit for spec in whole.noise] == ["record", "client"]
    assert whole.name == "fed_cdp recommended + pruning + fed_sdp at the server"


def test_no_defense_composes_to_no_defense():
    empty = defenses.compose()
    assert (empty.gradient, empty.encode, empty.receive) == (None, None, None)
    assert (empty.noise, empty.name) == ((), "")


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((_make("dp_sgd(clip=1, sigma={})"), _make(CDP)),
         "gradient: expected one defense there, got dp_sgd and fed_cdp recommended"),
        ((pruning.pruning(0.5), noise.gaussian(1.0)),
         "encode: expected one defense there, got pruning and gaussian noise"),
        ((_make(SDP % "server"),) * 2, "receive: expected one"),
    ],
    ids=["gradient", "encode", "receive"],
)  # fmt: skip
def test_two_defenses_at_one_place_are_refused(pair, message):
    with pytest.raises(ValueError, match=message):
        defenses.compose(*pair)

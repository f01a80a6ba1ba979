"""Clients whose optimiser keeps its state from round to round."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax.attacks import needs, trajectory
from fljax.attacks.adversary import LocalTraining
from fljax.attacks.trajectory import clients, kept, rules, simulation
from fljax.attacks.trajectory.imagined import Imagined
from fljax.types import Exchange, Features, Known, Transcript

_RATE, _STEPS, _ROUNDS = 0.05, 3, 6
_OPTIMISERS = {
    "momentum": (LocalTraining(momentum=0.8, weight_decay=0.1, kept=True),
                 optax.chain(optax.add_decayed_weights(0.1), optax.sgd(_RATE, 0.8))),
    "adam": (LocalTraining(optimiser="adam", kept=True), optax.adam(_RATE)),
    "adamw": (LocalTraining(optimiser="adamw", weight_decay=0.1, kept=True),
              optax.adamw(_RATE, weight_decay=0.1)),
}  # fmt: skip
_NAMES = [
    pytest.param("momentum", marks=pytest.mark.slow),
    "adam",
    pytest.param("adamw", marks=pytest.mark.slow),
]


def _mean_loss(params, values):
    """Of twelve rows, whose attribute moves their output."""
    x, y = jax.random.normal(jax.random.key(0), (2, 12, 3))
    hidden = jnp.tanh(x @ params[:6].reshape(3, 2)) @ params[6:8]
    low, high = jnp.square(hidden - y[:, 0]), jnp.square(hidden + params[8] - y[:, 0])
    return jnp.mean((1 - values) * low + values * high)


@functools.partial(jax.jit, static_argnums=0)
def _path(optimiser, values):
    """A client of full batches in a federation that moves it between rounds."""

    def step(at, _):
        params, state = at
        slope = jax.grad(_mean_loss)(params, values)
        move, state = optimiser.update(slope, state, params)
        return (optax.apply_updates(params, move), state), None

    def of_round(begun, key):
        (params, state), _ = jax.lax.scan(step, begun, length=_STEPS)
        moved = params + 0.03 * jax.random.normal(key, (9,))
        return (moved, state), (begun[0], params)

    params = jax.random.normal(jax.random.key(1), (9,))
    keys = jax.random.split(jax.random.key(4), _ROUNDS)
    _, ends = jax.lax.scan(of_round, (params, optimiser.init(params)), keys)
    return *ends, jnp.full(_ROUNDS, _RATE), jnp.ones(_ROUNDS), jnp.zeros(_ROUNDS)


def _simulator(training, path, believed):
    """Of these rounds, with what is left of earlier ones, and without."""
    rule, field = rules.of(rules.practice(training)), simulation.of_loss(_mean_loss)
    memory = kept.memory(lambda clip: field, rule, path, believed)
    begun = kept.beginning(field, rule, memory)
    paths = functools.partial(simulation.paths, field, rule, path.sent, _STEPS)
    return paths(begun), paths()


def _ends(simulator, values):
    scale = jnp.float32(_RATE * _STEPS)
    rounds = jnp.arange(_ROUNDS)
    return jax.lax.map(lambda n: simulator.end(n, values, scale)[0], rounds)


@pytest.mark.parametrize("name", _NAMES)
def test_a_round_is_simulated_with_what_is_left_of_earlier_ones(name):
    training, optimiser = _OPTIMISERS[name]
    values = jax.random.uniform(jax.random.key(2), (12,))
    path = kept.Path(*_path(optimiser, values), _STEPS)

    @jax.jit
    def ends(believed):
        simulator, anew = _simulator(training, path, believed)
        return [
            _ends(*of)
            for of in ((simulator, values), (simulator, believed), (anew, values))
        ]

    right, _, anew = ends(values)
    np.testing.assert_allclose(right, path.returned, rtol=1e-4, atol=1e-5)
    moved = jnp.linalg.norm(path.returned[1:] - path.sent[1:])
    assert jnp.linalg.norm((anew - path.returned)[1:]) > 0.1 * moved
    # Other rows than were believed change what is left.
    found, believed, _ = ends(jnp.full(12, 0.5))
    off, before = (jnp.linalg.norm(each - path.returned) for each in (found, believed))
    assert off < (0.2 if name == "momentum" else 0.6) * before


def test_what_a_round_leaves_unexplained_puts_its_state_right():
    training, optimiser = _OPTIMISERS["momentum"]
    values = jax.random.uniform(jax.random.key(2), (12,))
    path = kept.Path(*_path(optimiser, values), _STEPS)

    @jax.jit
    def of_gain(gain):
        of = path._replace(gains=jnp.full(_ROUNDS, gain))
        simulator, _ = _simulator(training, of, jnp.full(12, 0.5))
        ends = _ends(simulator, values), _ends(simulator, jnp.full(12, 0.5))
        return [jnp.linalg.norm(each - path.returned) for each in ends]

    (none, believed), (right, corrected) = of_gain(0.0), of_gain(0.35)
    assert right < 0.8 * none and corrected < 0.8 * believed


@pytest.mark.parametrize("name", _NAMES)
def test_the_adjoint_is_the_derivative(name):
    training, optimiser = _OPTIMISERS[name]
    values, believed = jax.random.uniform(jax.random.key(2), (2, 12))
    path = kept.Path(*_path(optimiser, values), _STEPS)
    path = path._replace(gains=jnp.full(_ROUNDS, 0.2))
    scale = jnp.float32(_RATE * _STEPS)
    cotangent = jax.random.normal(jax.random.key(3), (9,))

    @jax.jit
    def both():
        simulator, _ = _simulator(training, path, believed)
        expected = jax.grad(lambda v, s: simulator.end(4, v, s)[0] @ cotangent, (0, 1))
        _, stored = simulator.end(4, values, scale)
        found = simulator.back(stored, cotangent, values, scale)
        return found, expected(values, scale)

    for ours, theirs in zip(*both(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


def _linear(params, x, y):
    return jnp.square(x.numeric @ params - y)


def _exchange(training, optimiser, truth, public, y, rounds=24, batch=6):
    """Messages of one client of mini-batches whose global model is its own."""
    rows = jnp.concatenate([public, truth[:, None]], axis=1)

    def mean(params, which):
        return jnp.mean(jnp.square(rows[which] @ params - y[which]))

    def of_round(carry, key):
        sent = carry[0]
        order = jax.random.permutation(key, len(rows)).reshape(-1, batch)

        def step(at, which):
            slope = jax.grad(mean)(at[0], which)
            move, state = optimiser.update(slope, at[1], at[0])
            return (optax.apply_updates(at[0], move), state), None

        (params, state), _ = jax.lax.scan(step, carry, order)
        kept = state if training.kept else optimiser.init(params)
        return (sent + 0.5 * (params - sent), kept), (sent, sent - params)

    start = jnp.zeros(rows.shape[1])
    keys = jax.random.split(jax.random.key(5), rounds)
    return Exchange(*jax.lax.scan(of_round, (start, optimiser.init(start)), keys)[1])


_KEPT, _STEP = LocalTraining(momentum=0.9, kept=True), 0.005


def _client(batch):
    """Its messages, what is known of its rows, and the attribute."""
    rng = np.random.default_rng(0)
    truth = jnp.asarray(rng.integers(0, 2, 24), jnp.float32)
    public = jnp.asarray(rng.normal(size=(24, 24)), jnp.float32)
    y = public @ jnp.asarray(rng.normal(size=24), jnp.float32) + 0.7 * truth
    sgd = optax.sgd(_STEP, _KEPT.momentum)
    exchange = _exchange(_KEPT, sgd, truth, public, y, batch=batch)
    nothing = jnp.zeros((24, 0), jnp.int32)
    return exchange, Known(Features(public, nothing), y, jnp.ones(24, bool)), truth


def _attack(exchange, known, candidates, batch, which=None):
    steps, practice = len(known.y) // batch, rules.practice(_KEPT)
    client = Imagined(practice, batch)
    if steps == 1:
        client = Imagined(practice, precision=float(jnp.finfo(jnp.float32).eps))
    return trajectory.trajectory_matching(
        jax.random.key(3), _linear, exchange, known, jnp.asarray(candidates),
        scale=_STEP * steps, client=client,
        settings=trajectory.Settings(path_steps=steps, iterations=120), which=which,
    )  # fmt: skip


@pytest.mark.long("compiles a whole search")
def test_rows_are_read_from_clients_that_keep_their_momentum():
    exchange, known, truth = _client(batch=6)
    found = _attack(exchange, known, ((0.0,), (1.0,)), batch=6)
    assert np.mean(np.asarray(found.index) == truth) >= 0.95 and found.misfit < 3


@pytest.mark.slow
def test_rows_of_whole_batches_are_solved_for():
    exchange, known, truth = _client(batch=24)
    found = _attack(exchange, known, ((0.0,), (1.0,)), batch=24)
    assert (np.asarray(found.index) == truth).all() and found.misfit < 0.1


@pytest.mark.slow
def test_where_some_messages_are_met_all_earlier_ones_count():
    exchange, known, truth = _client(batch=24)  # without noise
    whole = jnp.concatenate([known.public.numeric, truth[:, None]], axis=1)
    known = known._replace(public=known.public._replace(numeric=whole))
    which, nothing = np.arange(1, 24, 2), np.zeros((1, 0))
    some = jax.tree.map(lambda leaf: leaf[which], exchange)
    assert _attack(exchange, known, nothing, batch=24, which=which).misfit < 0.01
    assert _attack(some, known, nothing, batch=24).misfit > 1


def _by_clip(clip):
    """A field that is as large as a clip of its round."""
    return simulation.of_loss(lambda params, values: clip * _mean_loss(params, values))


@pytest.mark.slow
def test_earlier_rounds_have_the_clips_that_they_had():
    training, _ = _OPTIMISERS["momentum"]
    values, clips = jnp.full(12, 0.3), jnp.linspace(2, 0.5, _ROUNDS)
    rule = rules.of(rules.practice(training))

    def of_round(begun, seen):
        key, clip = seen
        sent = begun[0]

        def step(at, _):
            return rule.step(
                *at, _by_clip(clip).slope(at[0], values), sent, _RATE
            ), None

        (params, state), _ = jax.lax.scan(step, begun, length=_STEPS)
        moved = params + 0.03 * jax.random.normal(key, (9,))
        return (moved, state), (sent, params)

    begun = jax.random.normal(jax.random.key(1), (9,)), jnp.zeros(9)
    keys = jax.random.split(jax.random.key(4), _ROUNDS)
    _, ends = jax.lax.scan(of_round, begun, (keys, clips))
    rates = jnp.full(_ROUNDS, _RATE)
    path = kept.Path(*ends, rates, clips, 0 * clips, _STEPS)
    memory = kept.memory(_by_clip, rule, path, values)

    def make(clip):
        field = _by_clip(clip)
        begun = kept.beginning(field, rule, memory)
        return simulation.paths(field, rule, path.sent, _STEPS, begun)

    found = _ends(simulation.by_round(make, clips), values)
    np.testing.assert_allclose(found, path.returned, rtol=1e-4, atol=1e-5)
    assert memory.weight[4] > 4 and memory.weight[0] == 0


def test_a_round_that_runs_away_leaves_what_was_there():
    training, optimiser = _OPTIMISERS["momentum"]
    path = kept.Path(*_path(optimiser, jnp.full(12, 0.3)), _STEPS)
    sent = path.sent.at[2].set(jnp.nan)
    field, rule = _by_clip(1.0), rules.of(rules.practice(training))
    memory = kept.memory(
        lambda clip: field, rule, path._replace(sent=sent), jnp.full(12, 0.3)
    )
    np.testing.assert_array_equal(memory.state[3], memory.state[2])
    assert np.isfinite(memory.state).all() and np.isfinite(memory.point).all()


def _view(training, seen="messages"):
    return clients.AdversaryView(
        None, None, np.array([0]), Known(None, np.zeros((1, 4)), np.ones((1, 4), bool)),
        np.eye(2), False, None, None, "regression", 1, False, training, 0, sees=seen,
    )  # fmt: skip


def test_who_keeps_no_state_is_as_ever():
    told = LocalTraining(batch_size=2, learning_rate=0.1, epochs=1, kept=True)
    assert not told.remembers and not rules.practice(told).kept
    assert needs.missing(clients.FIRST_ORDER.needs, _view(told)) == ""
    momentum = told._replace(momentum=0.9)
    assert momentum.remembers and rules.practice(momentum).kept
    assert needs.missing(clients.NEEDS, _view(momentum)) == ""
    assert "own messages are seen" in needs.missing(
        clients.NEEDS, _view(momentum, "sum")
    )
    alone = needs.Needs(single_gradient=True)
    assert "kept from round to round" in needs.missing(alone, _view(momentum))


def test_moments_are_known_only_from_the_first_round_on():
    def missing(rounds, optimiser="adam"):
        seen = Transcript(np.array(rounds), np.zeros((len(rounds), 1), int), {}, {})
        told = LocalTraining(2, 0.1, 1, optimiser=optimiser, momentum=0.9, kept=True)
        return needs.missing(clients.NEEDS, _view(told)._replace(transcript=seen))

    assert missing([0, 1, 2]) == missing([1, 2]) == missing([5, 7], "sgd") == ""
    for rounds in ([2, 3], [0, 2]):
        assert "simulates a kept adam only from" in missing(rounds)

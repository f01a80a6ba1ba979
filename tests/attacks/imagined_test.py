"""The simulated client against the real one: the same rule, defense and rows."""

import dataclasses
import functools
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from fljax import local, losses, models
from fljax.attacks.attribute import conceal
from fljax.attacks.trajectory import (
    fallbacks,
    fields,
    imagined,
    matching,
    message_facts,
    messages,
    relaxation,
    simulation,
)
from fljax.attacks.trajectory.imagined import Imagined
from fljax.attacks.trajectory.rules import Practice
from fljax.defenses import specs
from fljax.defenses.definition import Setting
from fljax.defenses.effects import Effects
from fljax.defenses.registry import DEFENSES
from fljax.types import Batch, Exchange, Features, Sender
from tests.defenses import examples

_N, _STEPS, _RATE, _ROUND = 6, 3, 0.1, 2
_MODEL = models.mlp(3, hidden=(2,))
_LOSS = losses.example_loss(_MODEL.apply, losses.squared)
_CANDIDATES = jnp.array([[-1.0], [1.0]])
# Programs run once: what takes time is making them fast.
_jit = functools.partial(
    jax.jit, compiler_options={"xla_backend_optimization_level": 0}
)

_RULES = {
    "sgd": (Practice(), optax.sgd(_RATE)),
    "momentum and decay": (
        Practice(momentum=0.9, weight_decay=0.1),
        optax.chain(optax.add_decayed_weights(0.1), optax.sgd(_RATE, momentum=0.9)),
    ),
    "adam": (Practice("adam"), optax.adam(_RATE)),
    "adamw": (
        Practice("adamw", weight_decay=0.1),
        optax.adamw(_RATE, weight_decay=0.1),
    ),
    "fed_prox": (Practice(proximal=0.5), optax.sgd(_RATE)),
}
_DEFENSES = (
    "dp_sgd(clip=0.5, sigma=0)",
    "fed_cdp(clip=0.5, decay_to=0.1, sigma=0, mode=recommended)",
    "median",
    "fed_sdp(clip=0.05, sigma=0)",
    "norm_clipping(norm=0.05)",
    "value_clipping(limit=0.01)",
    "pruning(ratio=0.5)",
)


def _rows():
    rng = np.random.default_rng(0)
    numeric = rng.normal(size=(_N, 3)).astype(np.float32)
    truth = rng.integers(0, 2, _N)
    numeric[:, -1] = np.asarray(_CANDIDATES)[truth, 0]
    x = Features(jnp.asarray(numeric), jnp.zeros((_N, 0), jnp.int32))
    return x, jnp.asarray(rng.normal(size=_N), jnp.float32), truth


def _returned(sent, optimiser, proximal, defense, decay):
    """What the real client sends, `sent - delta`, of full batches."""
    x, y, _ = _rows()
    update = local.sgd(
        _LOSS, optimiser, proximal=proximal, gradient=defense.gradient,
        encode=defense.encode, decay=decay,
    )  # fmt: skip
    batch = Batch(x, y, jnp.ones(_N, bool), jnp.int32(0), jnp.int32(_ROUND))
    carry = update.init(sent)
    for step in range(_STEPS):
        carry = update.step(jax.random.key(step), carry, sent, batch)
    sender = Sender(jnp.int32(0), jnp.int32(_ROUND))
    return update.final(jax.random.key(9), carry, sent, sender).delta


def _both(client, spec, optimiser, proximal=None, decay=1.0):
    """Real and simulated model, and the derivative of the latter in two ways."""
    setting = Setting(_LOSS, 4, 5, "poisson", 1.0, float(_N))
    defense = specs.bind(spec, setting)
    x, y, truth = _rows()
    known = conceal(x, y, jnp.ones(_N, bool), width=1)
    attribute = relaxation.categorical(_LOSS, known, _CANDIDATES)
    client = imagined.defended(client, spec)
    assert not specs.without_effects(spec)
    clips = jnp.asarray(message_facts.clips(spec, np.array([_ROUND]), 5, 4)).T
    bounds = dict(zip(("clip", "message_clip", "limit"), clips, strict=True))
    told = message_facts.none(1)._replace(**bounds)
    told = told._replace(rate=told.rate * decay**_ROUND)
    values = jnp.eye(2)[truth]

    def run(sent):
        delta = _returned(sent, optimiser, proximal, defense, decay)
        exchange = jax.tree.map(lambda leaf: leaf[None], Exchange(sent, delta))
        seen = imagined.seen(exchange)
        simulator, steady = imagined.simulator(
            client, _LOSS, known, attribute, seen, told,
            matching.Settings(path_steps=_STEPS),
        )  # fmt: skip
        scale = jnp.float32(_RATE * _STEPS)

        def end(values, scale):
            return simulator.end(0, values, scale)

        predicted, stored = end(values, scale)
        soft = 0.8 * values + 0.1
        cotangent = jnp.cos(jnp.arange(predicted.size, dtype=jnp.float32))
        ours = simulator.back(end(soft, scale)[1], cotangent, soft, scale)
        theirs = jax.grad(lambda *a: end(*a)[0] @ cotangent, (0, 1))(soft, scale)
        real, held = seen.returned[0], steady(stored)
        known_of = messages.partial(client.share, seen.sent, seen.returned)
        if known_of is not None:
            small = jnp.abs(predicted - seen.sent[0]) <= 1.001 * known_of.bound[0]
            held &= (known_of.there[0] | small).all()
            predicted = jnp.where(known_of.there[0], predicted, real)
        return real, predicted, held, ours, theirs

    return _jit(run)(_MODEL.init(jax.random.key(1)))


def _check(real, simulated, steady, ours, theirs):
    assert steady
    np.testing.assert_allclose(simulated, real, rtol=1e-4, atol=1e-5)
    for one, other in zip(ours, theirs, strict=True):
        assert np.abs(other).max() > 0
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


_SLOW = ("sgd", "adamw", "fed_prox", *_DEFENSES[1:])  # each compiles on its own


def _cases(names):
    slow = pytest.mark.slow
    return [pytest.param(n, marks=slow if n in _SLOW else ()) for n in names]


@pytest.mark.slow
@pytest.mark.parametrize("rule", _cases(_RULES))
def test_a_simulated_client_follows_its_rule_at_the_rate_of_the_round(rule):
    practice, optimiser = _RULES[rule]
    client, mu = Imagined(practice, scheduled=True), practice.proximal or None
    _check(*_both(client, specs.NONE, optimiser, mu, decay=0.7))


@pytest.mark.slow
@pytest.mark.parametrize("text", _cases(_DEFENSES))
def test_a_simulated_client_has_its_defense(text):
    _check(*_both(Imagined(), specs.parse(text), optax.sgd(_RATE)))


def test_every_defense_is_simulated_or_said_not_to_be(monkeypatch):
    for text in examples.TEXTS:
        assert not specs.without_effects(specs.parse(text.format(0.3)))
    silent = dataclasses.replace(DEFENSES["median"], effects=None)
    halving = dataclasses.replace(
        silent, effects=lambda *, deviation: Effects(share=0.5)
    )
    own = types.SimpleNamespace(SILENT=silent, HALVING=halving)
    monkeypatch.setitem(sys.modules, "own_defenses", own)
    spec = specs.parse("own_defenses:SILENT + own_defenses:HALVING")
    assert specs.without_effects(spec) == ["own_defenses:SILENT"]
    assert imagined.defended(Imagined(), spec) == Imagined(share=0.5, returns=False)


@pytest.mark.parametrize(
    "text, returns",
    [
        ("dp_sgd(clip=1, sigma=1)", True),
        ("median", True),
        ("fed_sdp(clip=1, sigma=1, where=server)", True),
        ("fed_sdp(clip=1, sigma=1)", False),
        ("norm_clipping(norm=1)", False),
        ("value_clipping(limit=1)", False),
        ("pruning(ratio=0.75)", False),
    ],
)
def test_a_message_of_another_model_than_was_trained_is_known_as_such(text, returns):
    found = imagined.defended(Imagined(), specs.parse(text))
    assert found.returns == returns
    assert found.noisy == text.startswith(("dp_sgd", "median"))


@pytest.mark.parametrize("other", ["norm_clipping(norm=1)", "dp_sgd(clip=1, sigma=1)"])
def test_what_is_sent_of_a_message_is_so_beside_parts_that_send_all(other):
    for text in (f"pruning(ratio=0.75) + {other}", f"{other} + pruning(ratio=0.75)"):
        found = imagined.defended(imagined.PLAIN, specs.parse(text))
        assert found.share == 0.25


def test_a_part_may_clip_examples_and_messages(monkeypatch):
    both = dataclasses.replace(
        DEFENSES["median"],
        effects=lambda *, deviation: Effects("total", messages="total", clip=5.0),
    )
    monkeypatch.setitem(sys.modules, "both_clip", types.SimpleNamespace(BOTH=both))
    spec = specs.parse("both_clip:BOTH")
    assert message_facts.clips(spec, np.array([0]), 5, 4).tolist() == [[5, 5, 1]]


def test_a_path_that_runs_away_is_replaced():
    sent, returned = jnp.ones((1, 3)), jnp.full((1, 3), 0.9)
    field = simulation.of_loss(lambda p, z: jnp.sum(z * p**4))
    far = simulation.paths(field, simulation.SGD, sent, 8)
    near = simulation.chords(field, sent, returned)
    both, steady = fallbacks.steadied(far, near, sent, returned)
    for scale, held in ((0.01, True), (50.0, False)):
        found, stored = both.end(0, jnp.ones(3), jnp.float32(scale))
        assert bool(steady(stored)) is held
        expected = (far if held else near).end(0, jnp.ones(3), jnp.float32(scale))[0]
        np.testing.assert_allclose(found, expected)
        by_values, _ = both.back(stored, jnp.ones(3), jnp.ones(3), jnp.float32(scale))
        assert np.isfinite(by_values).all()


def test_a_path_that_is_not_wanted_is_replaced_and_counts_as_asked():
    sent, returned = jnp.ones((2, 3)), jnp.full((2, 3), 0.9)
    field = simulation.of_loss(lambda p, z: jnp.sum(z * p**4))
    path = simulation.paths(field, simulation.SGD, sent, 8)
    near = simulation.chords(field, sent, returned)
    wanted = jnp.array([True, False])
    both, steady = fallbacks.steadied(path, near, sent, returned, wanted)
    at = jnp.ones(3), jnp.float32(0.01)
    for round_, expected in enumerate((path, near)):
        found, stored = both.end(round_, *at)
        assert steady(stored)
        np.testing.assert_array_equal(found, expected.end(round_, *at)[0])
        theirs = expected.back(expected.end(round_, *at)[1], jnp.ones(3), *at)
        for a, b in zip(both.back(stored, jnp.ones(3), *at), theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_path_that_runs_away_is_first_tried_in_shorter_steps():
    sent, returned = jnp.ones((1, 3)), jnp.full((1, 3), 0.5)
    field = simulation.of_loss(lambda p, z: jnp.sum(z * p**4))
    long, short = (simulation.paths(field, simulation.SGD, sent, n) for n in (2, 40))
    near = simulation.chords(field, sent, returned)
    other, held = fallbacks.seldom(*fallbacks.steadied(short, near, sent, returned))
    both, steady = fallbacks.steadied(long, other, sent, returned)
    at = 0, jnp.ones(3), jnp.float32(4.0)
    found, stored = both.end(*at)
    assert bool(held(stored.other)) and not bool(steady(stored))
    np.testing.assert_allclose(found, short.end(*at)[0])
    ours = both.back(stored, jnp.ones(3), *at[1:])
    theirs = short.back(short.end(*at)[1], jnp.ones(3), *at[1:])
    np.testing.assert_allclose(ours[0], theirs[0])


@pytest.mark.slow
def test_the_variance_is_that_of_the_rows_gradients():
    x, y, truth = _rows()
    known = conceal(x, y, jnp.ones(_N, bool), width=1)
    attribute = relaxation.categorical(_LOSS, known, _CANDIDATES)
    flat, unravel = ravel_pytree(_MODEL.init(jax.random.key(1)))
    each = jax.vmap(jax.grad(lambda p, x, y: _LOSS(unravel(p), x, y)), (None, 0, 0))
    told = known, attribute, flat, jnp.eye(2)[truth], unravel
    mean, square = fields.moments(_LOSS, *told)
    variance = each(flat, x, y).var(axis=0)
    np.testing.assert_allclose(square - mean**2, variance, rtol=1e-4, atol=1e-6)
    half = fields.of_batch(_LOSS, known, attribute, _N // 2, unravel)
    found = half(flat, jnp.eye(2)[truth])
    share = (_N - _N // 2) / (_N - 1) / (_N // 2)
    np.testing.assert_allclose(found, share * variance, rtol=1e-4, atol=1e-6)
    assert fields.of_batch(_LOSS, known, attribute, 0, unravel) is None

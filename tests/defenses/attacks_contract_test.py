"""Every defense before every attack: both fit together, in shape and in numbers.

A federation of two clients is trained for three rounds under each defense, all seeds in
one compiled program, and every attack then runs on what the first client sent, again
compiled once for all defenses. What the attacks find is not the point here.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from fljax import local, losses, models, rounds, schedule
from fljax.attacks import attribute, inversion, trajectory
from fljax.attacks.attribute import gradient
from fljax.attacks.inversion import points, seeds, solvers, spaces
from fljax.attacks.reconstruction import least_squares
from fljax.types import Defense, Exchange, Features, Known, Rows
from tests.defenses import examples

WIDTH, ROWS, CLIENTS, ROUNDS, BATCH, RATE = 3, 4, 2, 3, 2, 0.1
SEEDS = 2
MODEL = models.mlp(WIDTH, 0, hidden=(2,))
LOSS = losses.example_loss(MODEL.apply, losses.squared)
PARAMS = sum(
    leaf.size for leaf in jax.tree.leaves(jax.eval_shape(MODEL.init, jax.random.key(0)))
)
LAYERS = 4
CANDIDATES = np.array([[-1.0], [1.0]], np.float32)
# Every seed's program is the same; a lane that saw another's numbers would show.
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


DEFENSES = {
    text: functools.partial(
        examples.built, text, LOSS, CLIENTS, layers=LAYERS, num_rounds=ROUNDS
    )
    for text in examples.TEXTS
}


# Programs run once: what takes time is making them fast.
_jit = functools.partial(
    jax.jit, compiler_options={"xla_backend_optimization_level": 0}
)


class _Seen(NamedTuple):
    """What one seed's adversary has of the first client: messages, and her rows."""

    sent: Exchange
    known: Known


def _rows(seed):
    """Rows of both clients; the sensitive column is the last."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(CLIENTS * ROWS, WIDTH)).astype(np.float32)
    x[:, -1] = np.where(x[:, -1] > 0, 1, -1)
    y = (x @ np.array([1.0, -1.0, 0.5])).astype(np.float32)
    return Rows(Features(x, np.zeros((len(x), 0), np.int32)), y)


def _known(seed):
    x, y = jax.tree.map(lambda leaf: leaf[:ROWS], _rows(seed))
    return attribute.conceal(x, y, np.ones(ROWS, bool), width=1)


@functools.cache
def _messages(name):
    """`Exchange` of the first client, leaves `[seeds, R, ...]`; no name, no defense."""
    defense = DEFENSES[name]() if name else Defense()
    update = local.sgd(
        LOSS, optax.sgd(RATE), gradient=defense.gradient, encode=defense.encode
    )
    plan = schedule.build(
        [ROWS] * CLIENTS, num_rounds=ROUNDS, batch_size=BATCH, lanes=CLIENTS,
        shuffle=False, poisson=name in ("dp_sgd", "fed_cdp recommended"),
    )  # fmt: skip
    server = optax.sgd(1.0)

    def train(seed, rows):
        key = jax.random.key(seed)
        begin = MODEL.init(jax.random.fold_in(key, 0))
        return rounds.advance(
            jax.random.fold_in(key, 1), rounds.start(begin, plan, server), rows, plan,
            ROUNDS, local=update, server_optimiser=server, receive=defense.receive,
        ).transcript  # fmt: skip

    trained = _jit(jax.vmap(train))
    numbers = np.arange(SEEDS)
    rows = jax.tree.map(lambda *leaves: np.stack(leaves), *map(_rows, numbers))
    seen, swapped = (
        trained(at, jax.tree.map(lambda leaf, at=at: leaf[at], rows))
        for at in (numbers, numbers[::-1])
    )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b[::-1], **CLOSE),
        (seen.params, seen.delta), (swapped.params, swapped.delta),
    )  # fmt: skip
    mine = Exchange(seen.params, jax.tree.map(lambda leaf: leaf[:, :, 0], seen.delta))
    return jax.tree.map(np.asarray, mine)


def _model_based(key, seen: _Seen):
    del key
    last = jax.tree.map(lambda sent, delta: sent[-1] - delta[-1], *seen.sent)
    return attribute.model_based(LOSS, last, seen.known, CANDIDATES)


def _gradient_based(key, seen: _Seen):
    return gradient.gradient_based(
        key, LOSS, seen.sent, seen.known, CANDIDATES, num_rounds=ROUNDS,
        optimiser=optax.sgd(1.0), num_iterations=2,
    )  # fmt: skip


def _trajectory(key, seen: _Seen):
    settings = trajectory.Settings(
        path_steps=2, iterations=2, batch_rounds=1, stages=1, checkpoints=1, probes=1
    )
    return trajectory.trajectory_matching(
        key, LOSS, seen.sent, seen.known, CANDIDATES, scale=RATE * ROWS / BATCH,
        settings=settings,
    )  # fmt: skip


def _reconstruct(key, seen: _Seen):
    del key
    flat = jax.vmap(lambda tree: ravel_pytree(tree)[0])
    return least_squares.reconstruct_linear(*map(flat, seen.sent), rcond=1e-6)


def _inversion(key, seen: _Seen):
    """Rows from the first update, as if it were one step on all of them."""
    first = jax.tree.map(lambda leaf: leaf[0], seen.sent)
    space = spaces.examples((ROWS, WIDTH), seeds.gaussian, y=seen.known.y)
    found = inversion.invert(
        key, first.params, first.delta, points.update_of(LOSS, RATE, 1),
        spaces.as_features(space), solvers.adam(0.1, 2),
        budget=inversion.Budget(num_iterations=2),
    )  # fmt: skip
    return found._replace(x=found.x.numeric, path=found.path.numeric)


# name -> attack, its shapes
ATTACKS: dict[str, tuple[Callable, dict[str, tuple[int, ...]]]] = {
    "model": (_model_based, {"index": (ROWS,), "losses": (ROWS, 2)}),
    "grad": (_gradient_based, {"index": (ROWS,), "logits": (ROWS, 1)}),
    "trajectory": (_trajectory, {"index": (ROWS,), "probability": (ROWS, 2)}),
    "reconstruct": (_reconstruct, {"estimate": (PARAMS,), "rank": ()}),
    "inversion": (_inversion, {"x": (ROWS, WIDTH), "losses": (2,), "loss": ()}),
}


@functools.cache
def _compiled(name):
    """The attack on one seed, and on all at once."""

    def run(seed, seen):
        return ATTACKS[name][0](jax.random.key(seed), seen)

    return _jit(run), _jit(jax.vmap(run))


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("defense", DEFENSES)
def test_a_defense_and_an_attack_fit_together(defense, attack):
    numbers = np.arange(SEEDS)
    known = jax.tree.map(lambda *leaves: np.stack(leaves), *map(_known, numbers))
    seen = _Seen(_messages(defense), known)
    one, every = _compiled(attack)
    together = every(numbers, seen)
    for field, shape in ATTACKS[attack][1].items():
        assert getattr(together, field).shape == (SEEDS, *shape)
    for leaf in jax.tree.leaves(together):
        assert np.isfinite(leaf).all()
    for seed in numbers:
        mine = jax.tree.map(lambda leaf, at=seed: leaf[at], seen)
        alone = one(seed, mine)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, **CLOSE),
            jax.tree.map(lambda leaf, at=seed: leaf[at], together), alone,
        )  # fmt: skip


def test_no_attack_is_given_the_sensitive_column():
    assert _known(0).public.numeric.shape == (ROWS, WIDTH - 1)


@pytest.mark.parametrize("defense", DEFENSES)
def test_what_is_sent_depends_on_the_seed_and_is_defended(defense):
    flat, plain = (
        np.concatenate(
            [leaf.reshape(SEEDS, -1) for leaf in jax.tree.leaves(_messages(name))], 1
        )
        for name in (defense, "")
    )
    assert flat.shape == plain.shape
    assert np.abs(flat[0] - flat[1]).max() > 1e-3
    assert np.abs(flat - plain).max() > 1e-3

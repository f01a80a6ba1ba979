"""Clients that the engine trained, and trajectory matching on their messages."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from fljax import local, losses, models, rounds, schedule, transcript
from fljax.attacks import trajectory
from fljax.attacks.attribute import conceal, model_based
from fljax.types import Features, Rows

ROWS, RATE, _BATCH = 60, 0.05, 10
QUICK = trajectory.Settings(path_steps=6, iterations=200, batch_rounds=4)


class Case(NamedTuple):
    loss_fn: losses.LossFn
    exchange: object
    known: object
    candidates: jax.Array
    truth: np.ndarray
    last: object
    scale: float


_SERVER = optax.sgd(1.0)
_advance = jax.jit(rounds.advance, static_argnames=("local", "server_optimiser"))


@functools.cache
def _model(width):
    """Model, loss and client: one object each, so that a training is compiled once."""
    model = models.mlp(width, hidden=(16,))
    loss_fn = losses.example_loss(model.apply, losses.squared)
    return model, loss_fn, local.sgd(loss_fn, optax.sgd(RATE))


@functools.cache
def case(kind="binary", num_rounds=30, seed=0):
    """Two clients, an MLP, and a target to which the attribute adds little."""
    rng = np.random.default_rng(seed)
    num = 2 * ROWS
    public = rng.normal(size=(num, 4))
    if kind == "continuous":
        truth = rng.uniform(-1, 1, num)
        block, candidates = truth[:, None], np.array([[-1.0], [1.0]])
        effect = 1.5 * truth
    else:
        candidates = (
            np.eye(3)[:, 1:] if kind == "categorical" else np.array([[-1.0], [1.0]])
        )
        truth = rng.integers(0, len(candidates), num)
        block = candidates[truth]
        effect = block @ np.array([0.8, -0.8] if kind == "categorical" else [0.3])
    y = public @ rng.normal(size=4) + effect + rng.normal(size=num) * 0.5
    numeric = np.concatenate([public, block], axis=1).astype(np.float32)
    x = Features(jnp.asarray(numeric), jnp.zeros((num, 0), jnp.int32))
    rows = Rows(x, jnp.asarray(y, jnp.float32))
    model, loss_fn, client = _model(numeric.shape[1])
    plan = schedule.build([ROWS, ROWS], num_rounds=num_rounds, batch_size=_BATCH)
    run = rounds.start(model.init(jax.random.key(1)), plan, _SERVER)
    run = _advance(
        jax.random.key(2), run, rows, plan, num_rounds, local=client,
        server_optimiser=_SERVER,
    )  # fmt: skip
    seen = jax.tree.map(jnp.asarray, transcript.exchange(run.transcript, 0))
    mine = jax.tree.map(lambda leaf: leaf[:ROWS], rows)
    known = conceal(mine.x, mine.y, jnp.ones(ROWS, bool), width=block.shape[1])
    last = jax.tree.map(lambda s, d: s[-1] - d[-1], seen.params, seen.delta)
    scale = RATE * ROWS / _BATCH
    return Case(loss_fn, seen, known, jnp.asarray(candidates, jnp.float32),
                 truth[:ROWS], last, scale)  # fmt: skip


@functools.cache
def _compiled(loss_fn, settings, continuous):
    @jax.jit
    def run(exchange, known, candidates, scale, facts):
        return trajectory.trajectory_matching(
            jax.random.key(3), loss_fn, exchange, known, candidates,
            scale=scale, continuous=continuous, settings=settings, facts=facts,
        )  # fmt: skip

    return run


def attack(
    case, *, settings=QUICK, scale=None, continuous=False, facts=None, **changed
):
    case = case._replace(**changed)
    run = _compiled(case.loss_fn, settings, continuous)
    scale = case.scale if scale is None else scale
    return run(case.exchange, case.known, case.candidates, scale, facts)


def accuracy(index, case):
    return float((np.asarray(index) == case.truth).mean())


def passive(case):
    return accuracy(
        model_based(case.loss_fn, case.last, case.known, case.candidates).index, case
    )

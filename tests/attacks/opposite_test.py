"""Sums of two clients in whom an attribute goes with the target in opposite ways."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local, losses, models, rounds, schedule
from fljax.attacks import registry, spec
from fljax.attacks.adversary import LocalTraining
from fljax.attacks.attribute import conceal
from fljax.attacks.trajectory import Settings
from fljax.transcript import sums
from fljax.transcript.sums import Server
from fljax.types import Features, Rows
from tests.attacks import regression

_ROWS, _BATCH, _RATE, _ROUNDS = 300, 32, 0.05, 20
_CANDIDATES = np.array([[-1.0], [1.0]], np.float32)
_SETTINGS = registry.ATTACKS["trajectory"].settings._replace(
    epoch_steps=6, search=Settings(iterations=180, batch_rounds=4)
)


def _trained():
    """The view of who sees the sum of both, and the truth `[2, n]`."""
    rng = np.random.default_rng(0)
    public = rng.normal(size=(2 * _ROWS, 3))
    truth = rng.integers(0, 2, 2 * _ROWS)
    ways = np.repeat([1.5, -0.7], _ROWS)
    y = public @ rng.normal(size=3) + ways * (2 * truth - 1)
    y = y + 0.3 * rng.normal(size=len(y))
    numeric = np.concatenate([public, _CANDIDATES[truth]], axis=1).astype(np.float32)
    x = Features(jnp.asarray(numeric), jnp.zeros((len(y), 0), jnp.int32))
    rows = Rows(x, jnp.asarray(y, jnp.float32))
    model = models.mlp(4, hidden=(16,))
    loss_fn = losses.example_loss(model.apply, losses.squared)
    server = optax.sgd(1.0)
    plan = schedule.build([_ROWS, _ROWS], num_rounds=_ROUNDS, batch_size=_BATCH)
    run = rounds.start(model.init(jax.random.key(1)), plan, server)
    run = jax.jit(rounds.advance, static_argnames=("local", "server_optimiser"))(
        jax.random.key(2), run, rows, plan, _ROUNDS,
        local=local.sgd(loss_fn, optax.sgd(_RATE)), server_optimiser=server,
    )  # fmt: skip
    ids = np.arange(2)
    seen = jax.tree.map(np.asarray, run.transcript)
    seen = sums.add_up(seen, Server(ids, np.full(2, float(_ROWS))), 2)
    apart = jax.tree.map(lambda leaf: leaf.reshape(2, _ROWS, *leaf.shape[1:]), rows)
    known = conceal(apart.x, apart.y, jnp.ones((2, _ROWS), bool), width=1)
    view = regression.view(
        seen, ids, jax.tree.map(np.asarray, known), sees="sum", loss_fn=loss_fn,
        apply=model.apply, linear=False, candidates=_CANDIDATES,
        training=LocalTraining(batch_size=_BATCH, learning_rate=_RATE, epochs=1),
    )  # fmt: skip
    return view, truth.reshape(2, _ROWS)


@pytest.mark.slow
def test_rows_of_both_are_read():
    """What the model tells is wrong for the second: from there alone, 0.65 and 0.27."""
    view, truth = _trained()
    found = spec.apply(registry.ATTACKS["trajectory"], view, _SETTINGS)
    assert (found["trajectory"].value == truth).mean(axis=1).min() > 0.85

"""Trains every case and seed in one compiled program and keeps what was sent."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from experiments.lmra.clients import Clients
from experiments.lmra.settings import Case, Config, cases
from fljax import local, participation, rounds, schedule, stacking
from fljax.attacks.reconstruction import decoding
from fljax.attacks.reconstruction.decoding import Messages

_START, _TRAIN = range(2)


class Trained(NamedTuple):
    """All federations.

    Attributes:
      messages: leaves `[cases, seeds, A, R, ...]` of the attacked clients.
      last: `[cases, seeds, A, P]` models they returned last.
      global_: `[cases, seeds, P]` the server's last model.
      loss: `[cases, seeds, R]` local training losses.
    """

    messages: Messages
    last: jax.Array
    global_: jax.Array
    loss: jax.Array


def train(run: Config, clients: Clients) -> Trained:
    """Trains; the schedules of all cases and seeds are stacked."""
    every = cases(run)
    tables = [
        _schedule(run, clients, case, seed) for case in every for seed in run.seeds
    ]
    joined, axes = stacking.stack(tables)
    shape = len(every), len(run.seeds)
    joined = jax.tree.map(
        lambda leaf, axis: (
            leaf if axis is None else leaf.reshape(shape + leaf.shape[1:])
        ),
        joined,
        axes,
        is_leaf=lambda leaf: leaf is None,
    )
    update = local.sgd(
        clients.task.loss_fn, optax.sgd(run.learning_rate), proximal=run.proximal
    )
    server = optax.sgd(1.0)
    attacked = jnp.arange(run.attacked)

    def one(seed, rows, table, scale):
        key = jax.random.key(seed)
        zeros, unravel = ravel_pytree(clients.task.model.init(jax.random.key(0)))
        first = scale * jax.random.normal(jax.random.fold_in(key, _START), zeros.shape)
        done = rounds.advance(
            jax.random.fold_in(key, _TRAIN),
            rounds.start(unravel(first), table, server),
            rows,
            table,
            run.num_rounds,
            local=update,
            server_optimiser=server,
        )
        of_client = jax.vmap(decoding.of_client, (None, 0))
        seen = of_client(done.transcript, attacked)
        last = jax.vmap(decoding.last_returned)(seen)
        return Trained(seen, last, ravel_pytree(done.server.params)[0], done.loss)

    over_seeds = jax.vmap(one, (0, 0, axes, None))
    over_cases = jax.jit(jax.vmap(over_seeds, (None, None, axes, 0)))
    scales = jnp.array([case.start_scale for case in every])
    return over_cases(np.asarray(run.seeds, np.uint32), clients.rows, joined, scales)


def kept_rounds(run: Config) -> range:
    """Rounds whose messages the adversary keeps; the last one always."""
    first = (run.num_rounds - 1) % run.record_every
    return range(first, run.num_rounds, run.record_every)


def _schedule(run: Config, clients: Clients, case: Case, seed: int):
    count = len(clients.sizes)
    chosen = participation.everyone(count)
    if run.percent < 100:
        rng = np.random.default_rng([seed, 2])
        share = run.percent / 100
        chosen = participation.uniform(rng, count, run.num_rounds, share)
    return schedule.build(
        clients.sizes,
        num_rounds=run.num_rounds,
        batch_size=case.batch_size,
        participants=chosen,
        steps=case.local_steps,
        weights=run.weights,
        record_rounds=kept_rounds(run),
        record_clients=range(run.attacked),
    )

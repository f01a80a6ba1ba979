"""Trains every case with every seed and keeps what was sent."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from experiments.lmra.clients import Clients
from experiments.lmra.settings import Case, Config, cases
from fljax import federation, participation, schedule, stacking
from fljax.attacks.reconstruction import decoding
from fljax.attacks.reconstruction.decoding import Messages
from fljax.federation import FedAvg, Federation, States, Tables, Training
from fljax.types import Array, Model, Params


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


class Numbers(NamedTuple):
    """Of one training: learning rate, and scale of the model that it begins with."""

    rate: Array
    scale: Array


def train(
    run: Config,
    clients: Clients,
    *,
    states: States | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Trained:
    """Trains every case with every seed.

    Args:
      run: the cases.
      clients: whose rows.
      states: where a run that was stopped left its state, and this one does.
      progress: called with the number of rounds done.
    """
    every, seeds = cases(run), len(run.seeds)
    plans = [
        _schedule(run, clients, case, seed) for case in every for seed in run.seeds
    ]
    task, count = clients.task, len(plans)
    method = FedAvg(
        model=task.model,
        loss_fn=task.loss_fn,
        optimiser=_sgd,
        proximal=run.proximal,
        begin=_Start(task.model),
    )
    trainings = Training(
        np.tile(np.arange(seeds), len(every)),
        np.arange(count),
        np.tile(np.asarray(run.seeds, np.uint32), len(every)),
        numbers=Numbers(
            np.full(count, run.learning_rate, np.float32),
            np.repeat(np.float32([case.start_scale for case in every]), seeds),
        ),
    )
    tables = Tables(clients.rows, stacking.stack(plans)[0])
    whole = Federation(method, tables)
    trained = federation.train(
        whole,
        trainings,
        stops=federation.evenly(run.num_rounds),
        progress=lambda done, _: progress(done),
        states=states,
    )
    kept = federation.measure(whole, trainings, trained.run, _Kept(run.attacked))
    return jax.tree.map(
        lambda leaf: leaf.reshape(len(every), seeds, *leaf.shape[1:]), kept
    )


def _sgd(numbers: Numbers) -> optax.GradientTransformation:
    return optax.sgd(numbers.rate)


class _Start(NamedTuple):
    """Draws the first model: normal parameters of the training's scale."""

    model: Model

    def __call__(self, key, numbers: Numbers) -> Params:
        zeros, unravel = ravel_pytree(self.model.init(jax.random.key(0)))
        return unravel(numbers.scale * jax.random.normal(key, zeros.shape))


class _Kept(NamedTuple):
    """What is kept of a training."""

    attacked: int

    def __call__(self, run, training, tables) -> Trained:
        del training, tables
        of_client = jax.vmap(decoding.of_client, (None, 0))
        seen = of_client(run.transcript, jnp.arange(self.attacked))
        last = jax.vmap(decoding.last_returned)(seen)
        return Trained(seen, last, ravel_pytree(run.server.params)[0], run.loss)


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

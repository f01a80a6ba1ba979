"""One client alone with a server: the rounds of active attacks and of the oracle.

The items are the (seed, client) pairs. Each has the tables of rounds in which it is the
only participant and a loop bound of its own, so that small clients cost little; each
device holds one client at a time.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments.tabular.clients import Clients
from experiments.tabular.problem import Problem
from experiments.tabular.schedules import local_work
from experiments.tabular.settings import TrainConfig
from fljax import accelerators, losses, parallel
from fljax import schedule as schedule_lib
from fljax.losses import LossFn
from fljax.types import Batch, Key, Params, PyTree, Rows

# Parameters of all models that a processor's core trains at once: more than this leave
# its cache (73 000 parameters, 50 trials: 10 at a time are 3.5 times faster than all).
_SIDE_BY_SIDE = 1_000_000


class Client(NamedTuple):
    """Who trains when; leaves `[seeds * C, ...]`, clients of the first seed first.

    Attributes:
      index: position of its seed.
      seed: the seed itself.
      client: its id.
      schedule: its rounds.
    """

    index: np.ndarray
    seed: np.ndarray
    client: np.ndarray
    schedule: schedule_lib.Schedule


def everyone(
    problem: Problem,
    clients: Clients,
    train: TrainConfig,
    seeds: Sequence[int],
    *,
    num_rounds: int,
    record_rounds: Sequence[int],
    epochs: int | None = None,
) -> Client:
    """Every client of every seed, each alone in its rounds.

    Args:
      problem: says how batches are drawn.
      clients: from `clients.deal`.
      train: how clients train.
      seeds: one run each.
      num_rounds: rounds, those before the first attacked one included.
      record_rounds: rounds that are kept, at least one.
      epochs: local epochs instead of those of the training.
    """
    built = [
        schedule_lib.build(
            sizes,
            num_rounds=num_rounds,
            **local_work(train, epochs)._asdict(),
            participants=[np.array([client])],
            lanes=1,
            shuffle=problem.schedule.shuffle,
            poisson=problem.schedule.poisson,
            record_rounds=record_rounds,
        )
        for sizes in clients.sizes
        for client in range(len(sizes))
    ]
    num_seeds, num_clients = clients.sizes.shape
    return Client(
        index=np.repeat(np.arange(num_seeds), num_clients),
        seed=np.repeat(np.asarray(seeds, np.uint32), num_clients),
        client=np.tile(np.arange(num_clients), num_seeds),
        schedule=_stack(built),
    )


def key(client: Client) -> Key:
    """Key of the training in which it took part (purpose 1 of its seed).

    Rounds after the training draw from it what they would in a longer training.
    """
    return jax.random.fold_in(jax.random.key(client.seed), 1)


def loss(loss_fn: LossFn, params: Params, rows: Rows, client: Client) -> jax.Array:
    """Mean loss `[]` of a model on the client's own rows.

    Args:
      loss_fn: of one example.
      params: the model.
      rows: all clients' rows of its seed.
      client: without leading axis.
    """
    sizes = client.schedule.sizes
    within = jnp.arange(client.schedule.max_rows)
    first = jnp.cumsum(sizes)[client.client] - sizes[client.client]
    mine = jax.tree.map(
        lambda leaf: leaf[jnp.minimum(first + within, len(leaf) - 1)], rows
    )
    return losses.batch_loss(
        loss_fn, params, Batch(mine.x, mine.y, within < sizes[client.client])
    )


def trials(problem: Problem, fun: Callable, settings: PyTree) -> PyTree:
    """Maps `fun` over trials, side by side as far as that pays.

    Args:
      problem: whose models the trials train.
      fun: `setting -> result`.
      settings: leaves `[trials, ...]`.
    """
    count = len(jax.tree.leaves(settings)[0])
    shapes = jax.eval_shape(problem.model.init, jax.random.key(0))
    size = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    most = count if accelerators.used() else _SIDE_BY_SIDE // size
    together = max(
        n for n in range(1, count + 1) if count % n == 0 and n <= max(most, 1)
    )
    if together == count:
        return jax.vmap(fun)(settings)
    return lax.map(fun, settings, batch_size=together)


def each(fun: Callable) -> Callable[[Client, PyTree, Clients], PyTree]:
    """Compiles `fun` once and maps it over items that are dealt evenly to the devices.

    Args:
      fun: `(client, item, rows) -> result` for one client; `rows` are those of its seed.

    Returns:
      `(everyone, items, clients) -> results`, leaves `[seeds, C, ...]`; those of `items`
      likewise.
    """
    over = parallel.mesh()

    def one(item, rows):
        client, rest = item
        return fun(client, rest, jax.tree.map(lambda leaf: leaf[client.index], rows))

    @functools.partial(jax.jit, static_argnums=2)
    def run(items, rows, cost):
        return parallel.map_items(one, items, rows, over, cost=np.array(cost))

    def call(everyone: Client, items: PyTree, clients: Clients) -> PyTree:
        lead = clients.sizes.shape
        items = jax.tree.map(lambda leaf: _merge(np.asarray(leaf)), items)
        cost = tuple(clients.sizes.ravel().tolist())
        found = jax.device_get(run((everyone, items), clients.rows, cost))
        return jax.tree.map(lambda leaf: leaf.reshape(*lead, *leaf.shape[1:]), found)

    return call


def _merge(leaf: np.ndarray) -> np.ndarray:
    return leaf.reshape(-1, *leaf.shape[2:])


def _stack(schedules: list[schedule_lib.Schedule]) -> schedule_lib.Schedule:
    """One array per table; the steps behind a client's own are never run."""
    static = [f.name for f in dataclasses.fields(schedules[0]) if f.metadata]
    common = {name: max(getattr(s, name) for s in schedules) for name in static}
    most = max(s.slots.count.shape[1] for s in schedules)

    def padded(leaf):
        return np.pad(leaf, ((0, 0), (0, most - leaf.shape[1]), (0, 0)))

    whole = [
        dataclasses.replace(s, slots=jax.tree.map(padded, s.slots), **common)
        for s in schedules
    ]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *whole)

"""Shadow clients: labels drawn from a distribution, trained from an intercepted model.

Lines 2 to 6 of Algorithm 1 of Rajani et al. 2023. Shadow clients are independent of each
other: the one with number i draws all from `fold_in(key, i)`, so that a chunk of any
size holds the same ones, and a client can be made anew alone. That is why they are no
`fljax.federation`, where draws belong to a client's place in its training: in chunks of
another size clients would be others. Nor is there anything to average.

OPEN in the paper, chosen here: the labels of a client's rows are drawn independently
from its proportions, and each row independently from the pool's rows of its label, with
replacement; y^k is the share of each label among the rows that were drawn (line 6), not
the proportions that they were drawn from.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh

from fljax import packing, parallel, precision
from fljax.local import LocalUpdate
from fljax.types import Array, Batch, Key, Params, PyTree, Sender

_LABELS, _ROWS, _ORDER, _STEPS, _MESSAGE = range(5)  # streams of one client


class Pool(NamedTuple):
    """Rows to train on, sorted by label.

    Attributes:
      x: leaves `[N, ...]`, as the local update wants them.
      y: `[N]` int32 labels.
      first: `[K]` int32 position of the first row of each label.
      count: `[K]` int32 rows of each label, at least 1.
    """

    x: PyTree
    y: Array
    first: Array
    count: Array


class Recipe(NamedTuple):
    """How a client trains, as the adversary knows it.

    Attributes:
      local: `(numbers) -> LocalUpdate`; the numbers are traced, so that one compiled
        program serves many, e.g. noise scales.
      rows: of each client.
      batch_size: B.
      epochs: E.
      round: of the training that it is, for what changes over rounds.
      drop_last: whether rows behind the last full batch of an epoch are left out; else
        they are a smaller one.
    """

    local: Callable[[PyTree], LocalUpdate]
    rows: int
    batch_size: int
    epochs: int = 1
    round: int = 0
    drop_last: bool = False

    @property
    def steps(self) -> int:
        """Local steps of a round."""
        return self.epochs * self.batches

    @property
    def batches(self) -> int:
        """Of an epoch."""
        rows = np.array(self.rows)
        return int(packing.batches_per_epoch(rows, self.batch_size, self.drop_last))


class ShadowClients(NamedTuple):
    """What clients sent and what they had; leaves `[n, ...]`.

    Attributes:
      delta: `[n, P]` messages, sent minus returned, raveled.
      labels: `[n, K]` share of each label among a client's rows.
    """

    delta: Array
    labels: Array


def pool(x: PyTree, y: Array, num_labels: int) -> Pool:
    """Sorts rows by label; on the host.

    Args:
      x: leaves `[N, ...]`.
      y: `[N]` labels in 0 to K - 1.
      num_labels: K.

    Raises:
      ValueError: some label has no row, or is out of range.
    """
    y = np.asarray(y)
    if y.min(initial=0) < 0 or y.max(initial=0) >= num_labels:
        raise ValueError(f"y: expected labels in 0 to {num_labels - 1}, got others")
    count = np.bincount(y, minlength=num_labels)
    if not count.all():
        raise ValueError(
            f"y: expected rows of each label, got none of {count.argmin()}"
        )
    order = np.argsort(y, kind="stable")
    return Pool(
        jax.tree.map(lambda leaf: np.asarray(leaf)[order], x),
        y[order].astype(np.int32),
        (np.cumsum(count) - count).astype(np.int32),
        count.astype(np.int32),
    )


def dirichlet(
    key: Key, alphas: Sequence[float], count: int, num_labels: int
) -> tuple[jax.Array, np.ndarray]:
    """Proportions of clients, who take the concentrations in turn.

    Args:
      key: consumed.
      alphas: concentrations of symmetric Dirichlet distributions, > 0.
      count: n, clients.
      num_labels: K.

    Returns:
      `[n, K]` proportions and `[n]` float32 each client's alpha.
    """
    each = np.resize(np.asarray(alphas, np.float32), count)
    parameters = jnp.asarray(np.tile(each[:, None], (1, num_labels)))
    return jax.random.dirichlet(key, parameters), each


def train(
    key: Key, proportions: Array, sent: Params, rows: Pool, recipe: Recipe, numbers=None
) -> ShadowClients:
    """ONE client: draws its rows and trains; leaves `[P]` and `[K]`.

    Args:
      key: consumed.
      proportions: `[K]` that its labels are drawn from.
      sent: the model that it starts from.
      rows: the pool.
      recipe: how it trains.
      numbers: for the recipe.
    """
    local, rows = recipe.local(numbers), jax.tree.map(jnp.asarray, rows)
    index, real = _batches(key, proportions, rows, recipe)
    sender = Sender(jnp.zeros((), jnp.int32), jnp.int32(recipe.round))
    step_keys = jax.random.fold_in(key, _STEPS)

    def step(carry, s):
        at = index[s]
        x = jax.tree.map(lambda leaf: leaf[at], rows.x)
        batch = Batch(x, rows.y[at], real[s], *sender)
        return local.step(jax.random.fold_in(step_keys, s), carry, sent, batch), None

    carry, _ = lax.scan(step, local.init(sent), jnp.arange(recipe.steps))
    message = local.final(jax.random.fold_in(key, _MESSAGE), carry, sent, sender)
    epoch = recipe.steps // recipe.epochs
    hits = jax.nn.one_hot(rows.y[index[:epoch]], len(proportions))
    drawn = jnp.sum(jnp.where(real[:epoch, :, None], hits, 0), axis=(0, 1))
    return ShadowClients(ravel_pytree(message.delta)[0], drawn / recipe.rows)


def compiled(recipe: Recipe, over: Mesh, lanes: int = 4) -> Callable:
    """A program for chunks of clients, spread over the devices.

    On each device `lanes` clients are one vmap; groups of lanes follow one another.

    Args:
      recipe: how clients train.
      over: from `parallel.mesh`.
      lanes: clients side by side on a device. On a CPU more gain nothing.

    Returns:
      `(key, client numbers [n], proportions [n, K], sent, pool, numbers) -> ShadowClients`
      with leaves `[n, ...]`, where n is a multiple of the lanes.
    """

    def group(items, shared):
        key, sent, rows, numbers = shared

        def one(number, proportions):
            own = jax.random.fold_in(key, number)
            return train(own, proportions, sent, rows, recipe, numbers)

        return jax.vmap(one)(*items)

    @jax.jit
    @precision.full
    def run(clients, proportions, key, sent, rows, numbers):
        items = jax.tree.map(
            lambda leaf: leaf.reshape(-1, lanes, *leaf.shape[1:]),
            (clients, proportions),
        )
        trained = parallel.map_items(group, items, (key, sent, rows, numbers), over)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), trained)

    def checked(key, clients, proportions, sent, rows, numbers=None):
        if len(clients) % lanes:
            raise ValueError(f"clients: expected a multiple of {lanes} lanes")
        shared = parallel.place((key, sent, rows, numbers), over)
        return run(clients, proportions, *shared)

    return checked


def chunks(
    program: Callable,
    key: Key,
    clients: np.ndarray,
    proportions: Array,
    sent: Params,
    rows: Pool,
    numbers: PyTree = None,
    *,
    size: int,
) -> Iterator[ShadowClients]:
    """Trains clients a chunk at a time: at most `size` messages are in memory.

    Args:
      program: from `compiled`.
      key: of all clients.
      clients: `[n]` numbers, what their draws come from.
      proportions: `[n, K]`.
      sent: the model that they start from.
      rows: the pool.
      numbers: for the recipe.
      size: clients of a chunk, a multiple of the program's lanes.

    Yields:
      `ShadowClients` of at most `size` clients, on the first device.
    """
    clients, proportions = np.asarray(clients, np.int32), np.asarray(proportions)
    for begin in range(0, len(clients), size):
        count = min(size, len(clients) - begin)
        at = begin + np.minimum(np.arange(size), count - 1)  # one shape, one program
        trained = program(key, clients[at], proportions[at], sent, rows, numbers)
        trained = parallel.gather(trained)
        yield jax.tree.map(lambda leaf, n=count: leaf[:n], trained)


def _batches(key, proportions, rows: Pool, recipe: Recipe):
    """Positions `[S, B]` in the pool, and which of them are real."""
    labels = jax.random.categorical(
        jax.random.fold_in(key, _LABELS), jnp.log(proportions), shape=(recipe.rows,)
    )
    within = jax.random.randint(
        jax.random.fold_in(key, _ROWS),
        (recipe.rows,),
        0,
        jnp.asarray(rows.count)[labels],
    )
    drawn = jnp.asarray(rows.first)[labels] + within
    order = jax.random.fold_in(key, _ORDER)

    def epoch(e):
        return jax.random.permutation(jax.random.fold_in(order, e), drawn)

    width = recipe.batches * recipe.batch_size
    used = min(width, recipe.rows)
    epochs = jax.vmap(epoch)(jnp.arange(recipe.epochs))[:, :used]
    padded = jnp.pad(epochs, ((0, 0), (0, width - used)))
    real = jnp.arange(width) < used
    shape = (recipe.steps, recipe.batch_size)
    return padded.reshape(shape), jnp.tile(real, recipe.epochs).reshape(shape)

"""A federation in which many canaries are planted at once, each by a coin of its own.

Canaries take the places of rows of all clients in turn, or of the clients themselves.
Gradient canaries and clients point in directions at right angles to each other.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from fljax import local as local_lib
from fljax import losses
from fljax.federation import FedAvg, Federation, Parts, Tables
from fljax.privacy.audits import canaries, planting
from fljax.privacy.audits.canaries import Canary, Marked
from fljax.privacy.audits.planting import MethodOf
from fljax.types import Array, Key, Params, PyTree, Rows

_COINS = 1  # stream of a seed


@dataclasses.dataclass(frozen=True, eq=False)  # holds arrays: no two are alike
class Crowd:
    """The `Method` of a federation with many canaries.

    Attributes:
      method: made with `CrowdLoss`.
      canary: kind and neighbours of all.
      at: `[M]` positions of rows, or clients.
      present: `[M]` bool, how the coins fell.
      both: rows without and with all canaries, leaves `[2, N, ...]`.
      directions: unit vectors in the shape of params, leaves `[M, ...]`; one, unused, of
        canaries that are rows.
      start: seed of the model that the training begins with.
    """

    method: FedAvg
    canary: Canary
    at: np.ndarray
    present: np.ndarray
    both: Rows
    directions: Params
    start: int

    def __call__(self, key: Key, numbers: PyTree, pool: PyTree) -> Parts:
        """The parts of the training; traceable."""
        del key
        parts = self.method(jax.random.key(self.start), numbers, pool)
        signs = np.where(self.present, 1.0, self.absent).astype(np.float32)
        return parts._replace(local=self.crowded(parts.local, signs))

    def owners(self, tables: Tables) -> np.ndarray:
        """`[M]` clients who have the canaries, or are them."""
        if self.canary.kind == "client":
            return self.at
        sizes = np.asarray(tables.schedule.sizes)[0, :-1]
        return np.repeat(np.arange(len(sizes)), sizes)[self.at]

    @property
    def absent(self) -> float:
        """What is in place of a client's update where its coin says no."""
        return 0.0 if self.canary.neighbours == "remove" else -1.0

    def crowded(self, local: local_lib.LocalUpdate, signs: Array):
        """The clients' algorithm; of clients that are canaries with `[M]` signs."""

        def went(carry, sent, sender):
            far = jax.tree.map(lambda u: jnp.asarray(u)[sender.client], self.directions)
            sign = jnp.asarray(signs)[sender.client]
            return planting.replaced(carry, sent, sign, far)

        clients = self.canary.kind == "client"
        return planting.of_those_there(local, went if clients else None)


@dataclasses.dataclass(frozen=True, eq=False)
class CrowdLoss:
    """The loss of `Marked` rows, of which `canary` has a direction's number, from 1 on.

    Attributes:
      loss_fn: of rows that are no canaries.
      directions: leaves `[M, ...]`.
    """

    loss_fn: losses.LossFn
    directions: Params

    def __call__(self, params: Params, x: Marked, y: Array) -> jax.Array:
        """Loss [] of one row."""
        number = jnp.maximum(jnp.abs(x.canary).astype(jnp.int32) - 1, 0)
        own = jax.tree.map(lambda u: jnp.asarray(u)[number], self.directions)
        plain = canaries.PlantedLoss(self.loss_fn, own)
        return plain(params, x._replace(canary=jnp.sign(x.canary)), y)


def plant_many(
    method_of: MethodOf,
    loss_fn: losses.LossFn,
    tables: Tables,
    canary: Canary,
    count: int,
    *,
    seed: int = 0,
) -> Federation:
    """The federation with canaries in it, where coins said so.

    Args:
      method_of: `(loss_fn) -> FedAvg`, with the defense that is audited.
      loss_fn: of one example.
      tables: of one federation, e.g. `Tables.of`, that records every round.
      canary: what is planted; which client's and which row is not looked at.
      count: of canaries, M; of clients all.
      seed: of the coins, of the directions and of the model that the training begins with.

    Raises:
      ValueError: for a canary that does not fit, or more than there are places or
        parameters.
    """
    rows = planting.checked(method_of(loss_fn), tables, canary)
    at = _places(np.asarray(tables.schedule.sizes)[0, :-1], canary, count)
    shapes = jax.eval_shape(method_of(loss_fn).model.init, jax.random.key(0))
    directed = canary.kind in ("gradient", "client")  # others need none, nor the room
    directions = _directions(shapes, len(at) if directed else 1, seed)
    method = method_of(CrowdLoss(loss_fn, directions))
    present = np.random.default_rng((seed, _COINS)).random(len(at)) < 0.5
    both = _both(rows, at, canary)
    crowd = Crowd(method, canary, at, present, both, directions, seed)
    world = np.zeros(len(both.y[0]), int)
    if canary.kind != "client":
        world[at] = present
    chosen = jax.tree.map(lambda leaf: leaf[world, np.arange(len(world))][None], both)
    return Federation(crowd, tables._replace(rows=chosen))


def _places(sizes: np.ndarray, canary: Canary, count: int) -> np.ndarray:
    """`[M]` rows of all clients in turn, from each one's last on; or all clients."""
    if canary.kind == "client":
        return np.arange(len(sizes))
    if count > len(sizes) * sizes.min():
        raise ValueError(
            f"count: expected at most {len(sizes) * sizes.min()} canaries, rows of "
            f"{len(sizes)} clients in turn, got {count}"
        )
    number = np.arange(count)
    client = number % len(sizes)
    return np.cumsum(sizes)[client] - 1 - number // len(sizes)


def _directions(shapes: Params, count: int, seed: int) -> Params:
    """Unit vectors at right angles, leaves `[M, ...]`."""
    total = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    if count > total:
        raise ValueError(
            f"count: expected at most {total}, the parameters, got {count}"
        )
    drawn = np.random.default_rng(seed).normal(size=(total, count))
    flat = np.linalg.qr(drawn)[0].T.astype(np.float32)
    leaves, treedef = jax.tree.flatten(shapes)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = np.split(flat, ends, axis=1)
    return treedef.unflatten(
        [
            part.reshape(count, *like.shape)
            for part, like in zip(parts, leaves, strict=True)
        ]
    )


def _both(rows: Rows, at: np.ndarray, canary: Canary) -> Rows:
    """Without any canary and with all of them, leaves `[2, N, ...]`."""
    if canary.kind == "client":
        return canaries.neighbours(rows, 0, canary)
    both = None
    for number, place in enumerate(at):
        one = canaries.neighbours(rows, int(place), canary)
        one.x.canary[:, place] *= number + 1
        if both is None:
            both = one
            continue
        for whole, own in zip(jax.tree.leaves(both), jax.tree.leaves(one), strict=True):
            whole[:, place] = own[:, place]
    assert both is not None
    return both

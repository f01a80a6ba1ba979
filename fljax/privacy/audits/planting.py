"""A federation with a canary in it, or without: the same compiled program.

It is the house's own federation (`fljax.federation`): its method is made with a loss that
knows canaries, its rows are there twice, and its clients' algorithm leaves out the row
that is not there. The mechanism that is audited clips and noises the canary as it does
any row. Where batches are not drawn row by row and a mean is over the rows that came, a row
that is left out leaves the divisor, too, which an account of a row without gradient does
not have: such a federation is to be audited with a row that is replaced.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax import local as local_lib
from fljax import losses
from fljax.federation import FedAvg, Federation, Parts, Tables, Training
from fljax.privacy.audits import canaries, chances
from fljax.privacy.audits.canaries import Canary
from fljax.types import Array, Key, Params, PyTree, Rows

MethodOf = Callable[[losses.LossFn], FedAvg]
# (loss of one example, which the defense clips too) -> the method


class Given(NamedTuple):
    """Numbers of ONE training.

    Attributes:
      present: [] float, 1 with the canary, else 0.
      own: those of the method.
    """

    present: Array
    own: PyTree = ()


@dataclasses.dataclass(frozen=True, eq=False)  # holds arrays: no two are alike
class Planted:
    """The `Method` of a federation that may have a canary.

    Attributes:
      method: made with `canaries.PlantedLoss`.
      canary: what is planted.
      at: position of its row among the rows of all clients.
      direction: of a canary that has one, a unit vector in the shape of params.
      start: seed of the model that every training begins with; an adversary knows it.
    """

    method: FedAvg
    canary: Canary
    at: int
    direction: Params
    start: int

    def __call__(self, key: Key, given: Given, pool: PyTree) -> Parts:
        """The parts of one training; traceable."""
        del key
        parts = self.method(jax.random.key(self.start), given.own, pool)
        return parts._replace(local=self.planted(parts.local, given.present))

    def planted(
        self, local: local_lib.LocalUpdate, present: Array
    ) -> local_lib.LocalUpdate:
        """The clients' algorithm, with the canary in it where it is present."""

        def went(carry, sent, sender):
            is_canary = sender.client == self.canary.client
            gone = replaced(carry, sent, self._sign(present), self.direction)
            return jax.tree.map(
                lambda far, own: jnp.where(is_canary, far, own), gone, carry
            )

        return of_those_there(local, went if self.canary.kind == "client" else None)

    def _sign(self, present):
        without = 0.0 if self.canary.neighbours == "remove" else -1.0
        return jnp.where(present > 0, 1.0, without)


def of_those_there(
    local: local_lib.LocalUpdate, went: Callable | None
) -> local_lib.LocalUpdate:
    """The clients' algorithm without the rows that are not there.

    Args:
      local: on `canaries.Marked` rows.
      went: `(carry, sent, sender) -> carry`, what a client's state is before its message
        is made, where canaries are clients.
    """

    def step(key, carry, sent, batch):
        mask = batch.mask & (batch.x.there > 0)
        return local.step(key, carry, sent, batch._replace(mask=mask))

    def final(key, carry, sent, sender):
        assert went is not None
        return local.final(key, went(carry, sent, sender), sent, sender)

    if went is None:
        return local._replace(step=step)
    return local._replace(step=step, final=final)


def replaced(carry, sent, sign, direction):
    """The state of a client that has gone far away in place of training.

    Args:
      carry: the client's state, with `params`.
      sent: model that it started from.
      sign: [] of the direction, 0 for an update of nothing.
      direction: unit vector like params.
    """
    far = canaries.large(direction)
    return carry._replace(
        params=jax.tree.map(lambda begun, u: begun - sign * u, sent, far)
    )


def plant(
    method_of: MethodOf,
    loss_fn: losses.LossFn,
    tables: Tables,
    canary: Canary,
    *,
    seed: int = 0,
) -> Federation:
    """The federation with a place for a canary.

    Args:
      method_of: `(loss_fn) -> FedAvg`, with the defense that is audited.
      loss_fn: of one example.
      tables: of one federation, e.g. `Tables.of`, that records every round.
      canary: what is planted.
      seed: of the canary's direction and of the model that trainings begin with.

    Raises:
      ValueError: for a canary that does not fit or never takes part, or tables of several
        federations or without a record of some round.
    """
    plain = method_of(loss_fn)
    rows = checked(plain, tables, canary)
    at = canaries.place(np.asarray(tables.schedule.sizes)[0, :-1], canary)
    if not chances.taking_part(tables)[canary.client]:
        raise ValueError(f"canary: client {canary.client} takes part in no round")
    shapes = jax.eval_shape(plain.model.init, jax.random.key(0))
    direction = canaries.direction(shapes, seed)
    method = method_of(canaries.PlantedLoss(loss_fn, direction))
    both = canaries.neighbours(rows, at, canary)
    planted = Planted(method, canary, at, direction, seed)
    return Federation(planted, tables._replace(rows=both))


def checked(plain: FedAvg, tables: Tables, canary: Canary) -> Rows:
    """Rows `[N, ...]` of a federation that can have canaries.

    Args:
      plain: the method.
      tables: of the federation.
      canary: what is to be planted.

    Raises:
      ValueError: as `plant` does.
    """
    canaries.check(canary)
    schedule = tables.schedule
    if len(tables.rows.y) != 1 or len(schedule.record) != 1 or tables.pool is not None:
        raise ValueError("tables: expected the rows and the schedule of one federation")
    recorded = np.asarray(schedule.recorded_rounds[0])
    if not np.array_equal(recorded, np.arange(schedule.num_rounds)):
        raise ValueError("tables: expected a schedule that records every round")
    if plain.prepare is not None:
        raise ValueError("method: one that prepares inputs cannot be audited")
    return jax.tree.map(lambda leaf: np.asarray(leaf)[0], tables.rows)


def trainings(first: int, count: int, seed: int, numbers: PyTree = ()) -> Training:
    """Trainings `first` to `first + count`: with the canary where the number is odd.

    Args:
      first: number of the first.
      count: of trainings.
      seed: of all of them; each draws for itself.
      numbers: of the method, the same for all.
    """
    number = np.arange(first, first + count)
    present = (number % 2).astype(np.int32)
    own = jax.tree.map(lambda leaf: np.stack([np.asarray(leaf)] * count), numbers)
    return Training(
        present,
        np.zeros(count, np.int32),
        np.full(count, seed, np.uint32),
        number.astype(np.int32),
        Given(present.astype(np.float32), own),
    )

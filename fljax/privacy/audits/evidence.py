"""What each observer sees of a canary in one training: one number a round.

`messages`: the client's own messages; `sum`: the mean of a round's messages, and who took
part; `models`: the models that are sent, where who took part is not known; `final`: the
first model, which anyone may know, and the last.

What is seen is taken along the direction in which the canary moves it: the difference
between what one local step makes of a batch with the canary alone, with and without it.
Both steps have the same key, so that the noise is the same and only the canary's clipped
and scaled share is left.
"""

import dataclasses
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from fljax import rounds
from fljax.federation import Federation, Tables, Training
from fljax.privacy.audits.planting import Given, Planted
from fljax.schedule import Schedule
from fljax.types import Array, Batch, Params, Sender

Observer = Literal["messages", "sum", "models", "final"]
OBSERVERS: tuple[Observer, ...] = get_args(Observer)
_TINY = 1e-30


class Seen(NamedTuple):
    """What one observer sees, a number for each of the `R` rounds (1 for `final`).

    Attributes:
      along: `[R]` what is seen, along the canary's direction.
      without: `[R]` share in it of one step that the canary is in, where it is absent.
      present: `[R]` the same where it is present.
    """

    along: Array
    without: Array
    present: Array


@dataclasses.dataclass(frozen=True, eq=False)  # holds arrays: no two are alike
class Witness:
    """`federation.Evaluate` of a planted federation: observers -> `Seen`.

    Attributes:
      planted: the method.
      share: `[R]` weight of its client's message in each round's mean.
    """

    planted: Planted
    share: np.ndarray

    def __call__(
        self, run: rounds.Run, training: Training, tables: Tables
    ) -> dict[str, Seen]:
        """What is seen of ONE training; traceable."""
        sent, last = run.transcript.params, run.server.params
        is_client = run.transcript.client == self.planted.canary.client
        slot, here = jnp.argmax(is_client, axis=1), jnp.any(is_client, axis=1)
        delta = jax.tree.map(
            lambda leaf: leaf[jnp.arange(len(slot)), slot], run.transcript.delta
        )
        begun = jax.tree.map(lambda leaf: leaf[0], sent)
        moved = jax.tree.map(
            lambda leaf, end: leaf - jnp.concatenate([leaf[1:], end[None]]), sent, last
        )
        in_all = jax.tree.map(lambda a, b: (a - b)[None], begun, last)

        def effects(models):
            return jax.vmap(lambda model: self._effects(model, training, tables))(
                models
            )

        if self.planted.canary.fixed:
            one = effects(jax.tree.map(lambda leaf: leaf[:1], sent))
            steps = jax.tree.map(
                lambda leaf: jnp.broadcast_to(leaf[0], (len(slot), *leaf.shape[1:])),
                one,
            )
        else:
            steps = effects(sent)
            one = effects(jax.tree.map(lambda leaf: leaf[None], last))
        share = jnp.asarray(self.share)
        seen = _seen(moved, steps, share)
        return {
            "messages": _seen(delta, steps, here),
            "sum": seen,
            "models": seen,
            "final": _seen(in_all, one, jnp.mean(share, keepdims=True)),
        }

    def _effects(self, model: Params, training: Training, tables: Tables):
        """Unit direction, and share along it without and with the canary."""
        without, present = (self._effect(model, training, tables, w) for w in (0, 1))
        apart = jax.tree.map(jnp.subtract, present, without)
        norm = jnp.sqrt(_inner(apart, apart))
        unit = jax.tree.map(lambda leaf: leaf / jnp.maximum(norm, _TINY), apart)
        return unit, _inner(unit, without), _inner(unit, present)

    def _effect(self, model: Params, training: Training, tables: Tables, world: int):
        """What the canary adds to its client's message if one step has it."""
        at, who = self.planted.at, self.planted.canary.client
        x, y = jax.tree.map(
            lambda leaf: jnp.asarray(leaf)[world, at][None], tables.rows
        )
        given = Given(jnp.float32(world), training.numbers.own)
        local = self.planted(jax.random.key(0), given, None).local

        def message(local, there):
            key_step, key_final = jax.random.split(jax.random.key(0))
            batch = Batch(x, y, jnp.full(1, there), jnp.int32(who), jnp.int32(0))
            carry = local.step(key_step, local.init(model), model, batch)
            sender = Sender(jnp.int32(who), jnp.int32(0))
            return local.final(key_final, carry, model, sender).delta

        if self.planted.canary.kind == "client":  # beside a client who sends nothing
            alone = self.planted.canary._replace(neighbours="remove")
            nothing = dataclasses.replace(self.planted, canary=alone)
            given = given._replace(present=jnp.float32(0))
            without = message(nothing(jax.random.key(0), given, None).local, False)
        else:
            without = message(local, False)
        with_ = message(local, self.planted.canary.kind != "client")
        return jax.tree.map(jnp.subtract, with_, without)


def _seen(what, steps, factor) -> Seen:
    """`what`, leaves `[R, ...]`, along the directions of `[R]` rounds."""
    unit, without, present = steps
    along = jax.vmap(_inner)(unit, what)
    zero = jnp.zeros_like(along)
    return Seen(
        jnp.where(factor > 0, along, zero),
        jnp.where(factor > 0, factor * without, zero),
        jnp.where(factor > 0, factor * present, zero),
    )


def _inner(one: Params, other: Params) -> jax.Array:
    parts = jax.tree.map(lambda a, b: jnp.vdot(a, b, precision="highest"), one, other)
    return jax.tree.reduce(jnp.add, parts)


def witness(federation: Federation) -> Witness:
    """That of a federation from `planting.plant`."""
    planted = federation.method
    assert isinstance(planted, Planted)
    schedule = jax.tree.map(lambda leaf: np.asarray(leaf), federation.tables.schedule)
    return Witness(planted, shares(schedule, planted.canary.client))


def shares(schedule: Schedule, client: int) -> np.ndarray:
    """`[R]` weight of a client's message in the mean of each round, 0 where it is away.

    Args:
      schedule: leaves `[1, ...]`, as in `Tables`.
      client: id.
    """
    ends = np.asarray(schedule.end_steps) - 1
    slots = np.asarray(schedule.slots.participant_index)[0][:, ends]
    weight = np.asarray(schedule.client_ends.weight)[0]
    people = np.asarray(schedule.participants)[0]
    who = np.take_along_axis(people, slots.reshape(len(people), -1), axis=1)
    own = np.where(who.reshape(weight.shape) == client, weight, 0)
    share = own.sum(axis=(1, 2)) / np.maximum(weight.sum(axis=(1, 2)), _TINY)
    return share[np.arange(schedule.num_rounds) % len(share)].astype(np.float32)

"""What each observer sees of a canary in one training: one number a round.

`messages`: the client's own messages; `sum`: the mean of a round's messages, and who took
part; `models`: the models that are sent, here with who took part, too, which makes the
observer stronger than one who does not know; `final`: the first model, which anyone may
know, and the last.

The canary's effect is the difference between what one local step makes of a batch with the
canary alone, with and without it. Both steps have the same key, so that the noise is the
same and only the canary's clipped and scaled share is left. What is seen is taken along
the effect of a canary that no other row resembles, and of a real row where it is told best
beside all others (`background`), less what those others are expected to add.
"""

import dataclasses
import functools
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from fljax import rounds
from fljax.federation import Federation, Tables, Training
from fljax.local import LocalUpdate
from fljax.privacy.audits import background, chances
from fljax.privacy.audits.chances import Others
from fljax.privacy.audits.planting import Given, Planted
from fljax.schedule import Schedule
from fljax.types import Array, Batch, Params, Rows, Sender

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


class Along(NamedTuple):
    """A direction, and what is known there.

    Attributes:
      unit: unit vector like params.
      without: [] share along it of one step that the canary is in, where it is absent.
      present: [] the same where it is present.
      expected: [] what other rows add.
    """

    unit: Params
    without: Array
    present: Array
    expected: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Witness:
    """`federation.Evaluate` of a planted federation: observers -> `Seen`.

    Attributes:
      planted: the method.
      share: `[R, C]` weight of each client's message in each round's mean.
      others: rows beside the canary.
    """

    planted: Planted
    share: np.ndarray
    others: Others

    def __eq__(self, other: object) -> bool:
        """Of the same federation: its program is compiled once."""
        return (
            isinstance(other, Witness)
            and self.planted is other.planted
            and np.array_equal(self.share, other.share)
            and all(map(np.array_equal, self.others, other.others))
        )

    def __hash__(self) -> int:
        return hash(self.planted)

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
        own, mean, final = self._directions(sent, last, training, tables)
        share = jnp.asarray(self.share[:, self.planted.canary.client])
        seen = _seen(moved, mean, share)
        return {
            "messages": _seen(delta, own, here),
            "sum": seen,
            "models": seen,
            "final": _seen(in_all, final, jnp.mean(share, keepdims=True)),
        }

    def _directions(self, sent, last, training, tables):
        """`Along` of messages, of their means, leaves `[R, ...]`, and of the last model."""
        effects = functools.partial(
            _effects, self.planted, training=training, rows=tables.rows
        )
        if self.planted.canary.fixed:
            begun = jax.tree.map(lambda leaf: leaf[0], sent)
            one = jax.tree.map(lambda leaf: leaf[None], _plain(*effects(begun)))
            each = jax.tree.map(
                lambda leaf: jnp.broadcast_to(
                    leaf[0], (len(self.share), *leaf.shape[1:])
                ),
                one,
            )
            return each, each, one
        told = functools.partial(
            _told, self.planted, self.others, training=training, rows=tables.rows
        )
        alone = np.eye(self.share.shape[1], dtype=np.float32)
        alone = jnp.asarray(alone[self.planted.canary.client])

        def round_(given):
            model, share = given
            return told(effects(model), model, (alone, share))

        own, mean = jax.lax.map(round_, (sent, jnp.asarray(self.share)))
        _, final = round_((last, jnp.mean(jnp.asarray(self.share), axis=0)))
        # Of models between the first and the last nothing is known.
        final = final._replace(expected=jnp.zeros_like(final.expected))
        return own, mean, jax.tree.map(lambda leaf: leaf[None], final)


def _told(planted, others: Others, canary, model: Params, shares, *, training, rows):
    """`Along` of each of some `[C]` weights of the clients' messages, at one model."""
    without, present = (ravel_pytree(each)[0] for each in canary)
    first = np.unique(others.client, return_index=True)[1]
    given, key = Given(jnp.float32(0), training.numbers.own), jax.random.key(0)
    local = planted(key, given, None).local

    def sent(row, who, there):
        return ravel_pytree(message(local, model, row, there, who))[0]

    all_rows = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], rows)
    some = jax.tree.map(lambda leaf: leaf[first], all_rows)
    who = jnp.asarray(others.client, jnp.int32)
    noise = jax.vmap(lambda row, c: sent(row, c, False))(some, who[first])
    effects = jax.vmap(lambda row, c: sent(row, c, True) - noise[c])(all_rows, who)
    beside = background.Beside.of(effects, jnp.mean(jnp.square(noise), axis=1))
    _, like = ravel_pytree(model)

    def along(share):
        weight = share[who]
        unit = background.telling(
            beside,
            present - without,
            jnp.square(weight) * others.variance,
            jnp.sum(jnp.square(share) * others.steps * beside.noise),
        )
        expected = (weight * others.mean) @ (effects @ unit)
        return Along(like(unit), unit @ without, unit @ present, expected)

    return tuple(map(along, shares))


def _plain(without: Params, present: Params) -> Along:
    """Along what the canary makes of a message."""
    apart = jax.tree.map(jnp.subtract, present, without)
    # Squares of what is very large or small are none.
    most = jnp.max(jnp.stack([jnp.max(jnp.abs(x)) for x in jax.tree.leaves(apart)]))
    apart = jax.tree.map(lambda leaf: leaf / jnp.maximum(most, _TINY), apart)
    norm = jnp.sqrt(optax.tree.vdot(apart, apart))
    unit = jax.tree.map(lambda leaf: leaf / jnp.maximum(norm, _TINY), apart)

    def part(what):
        return jnp.asarray(optax.tree.vdot(unit, what))

    return Along(unit, part(without), part(present), jnp.zeros(()))


def _effects(planted: Planted, model: Params, *, training, rows):
    """What the canary adds to its client's message if one step has it, in both worlds."""
    at, who, key = planted.at, planted.canary.client, jax.random.key(0)

    def effect(world):
        row = jax.tree.map(lambda leaf: jnp.asarray(leaf)[world, at], rows)
        given = Given(jnp.float32(world), training.numbers.own)
        local = planted(key, given, None).local
        if planted.canary.kind == "client":  # beside a client who sends nothing
            alone = planted.canary._replace(neighbours="remove")
            nothing = dataclasses.replace(planted, canary=alone)
            given = given._replace(present=jnp.float32(0))
            still = nothing(key, given, None).local
        else:
            still = local
        without = message(still, model, row, False, who)
        with_ = message(local, model, row, planted.canary.kind != "client", who)
        return jax.tree.map(jnp.subtract, with_, without)

    return effect(0), effect(1)


def message(local: LocalUpdate, model: Params, row: Rows, there: bool, who) -> Params:
    """What a client sends after one step on one row, or on none.

    Args:
      local: its algorithm.
      model: that it starts from.
      row: leaves `[...]`.
      there: whether the step has it.
      who: id of the client.
    """
    key_step, key_final = jax.random.split(jax.random.key(0))
    x, y = jax.tree.map(lambda leaf: leaf[None], row)
    mask, sender = jnp.full(1, there), Sender(jnp.int32(who), jnp.int32(0))
    batch = Batch(x, y, mask, *sender)
    carry = local.step(key_step, local.init(model), model, batch)
    return local.final(key_final, carry, model, sender).delta


def _seen(what, along: Along, factor) -> Seen:
    """`what`, leaves `[R, ...]`, along the directions of `[R]` rounds."""
    found = jax.vmap(optax.tree.vdot)(along.unit, what) - along.expected
    zero = jnp.zeros_like(found)
    return Seen(
        jnp.where(factor > 0, found, zero),
        jnp.where(factor > 0, factor * along.without, zero),
        jnp.where(factor > 0, factor * along.present, zero),
    )


def witness(federation: Federation) -> Witness:
    """That of a federation from `planting.plant`."""
    planted, tables = federation.method, federation.tables
    assert isinstance(planted, Planted)
    schedule = jax.tree.map(lambda leaf: np.asarray(leaf), tables.schedule)
    others = chances.others(tables, planted.at)
    return Witness(planted, shares(schedule), others)


def shares(schedule: Schedule) -> np.ndarray:
    """`[R, C]` weight of each client's message in the mean of a round, 0 where it is away.

    Args:
      schedule: leaves `[1, ...]`, as in `Tables`.
    """
    ends = np.asarray(schedule.end_steps) - 1
    slots = np.asarray(schedule.slots.participant_index)[0][:, ends]
    weight = np.asarray(schedule.client_ends.weight)[0]
    people = np.asarray(schedule.participants)[0]
    who = np.take_along_axis(people, slots.reshape(len(people), -1), axis=1)
    whole = weight.reshape(len(people), -1)
    share = np.zeros((len(people), schedule.sizes.shape[1]))  # the last is nobody's
    np.add.at(share, (np.arange(len(people))[:, None], who), whole)
    share /= np.maximum(whole.sum(axis=1, keepdims=True), _TINY)
    return share[np.arange(schedule.num_rounds) % len(share), :-1].astype(np.float32)

"""What a client's optimiser remembers of its earlier rounds, where it keeps its state.

All rounds are simulated one after another, from the models that were sent, with the rows
as they are first believed to be. What other rows would change of the state is a change of
sums of earlier gradients, in which one more step back counts `m` times as much: nearly
their weight times the change at the mean of the models where they were taken. Of Adam's
second moment what the mean gradient has no part in stays as it was simulated.

A client's first message begins with nothing, as where the transcript begins with the
training. Of clients that miss rounds the state is that of the last one they were in, and
of a round whose simulation runs away that of the one before.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from fljax.attacks.trajectory.simulation import Beginning, Field, Rule
from fljax.types import PyTree

# What the order of batches puts into a state stays there for rounds, in Adam's second
# moment for hundreds of steps: consecutive messages have it alike, and their differences
# show half of that noise, or less.
ALIKE = 2.0


class Memory(NamedTuple):
    """Of an optimiser before each of a client's messages `R`, and of its sums `J`.

    Attributes:
      state: leaves `[R, ...]`, that was left by earlier rounds with the rows as believed.
      sums: `[R, J, P]` of the gradients behind it.
      weight: `[R, J]` of the gradients in a sum; 0 before the first.
      point: `[R, J, P]` mean of the models behind them, zeros before the first.
      slope: `[R, J, P]` gradient there, with the rows as believed.
    """

    state: PyTree
    sums: jax.Array
    weight: jax.Array
    point: jax.Array
    slope: jax.Array

    def of(self, which) -> "Memory":
        """That of some messages, by their numbers."""
        return jax.tree.map(lambda leaf: leaf[which], self)


class Path(NamedTuple):
    """A client's messages, and how it stepped.

    Attributes:
      sent: `[R, P]`.
      returned: `[R, P]`.
      sizes: `[R]` learning rates.
      clips: `[R]` of its examples' gradients.
      steps: K, of a round.
    """

    sent: jax.Array
    returned: jax.Array
    sizes: jax.Array
    clips: jax.Array
    steps: int


class _Left(NamedTuple):
    """Of an optimiser: its state, and sums `[J, P]` and their weights `[J, 1]`."""

    state: PyTree
    gradients: jax.Array
    models: jax.Array
    weight: jax.Array


def memory(
    field_of: Callable[[jax.Array], Field], rule: Rule, path: Path, values: PyTree
) -> Memory:
    """What is kept, by all messages of a client in their order.

    Args:
      field_of: expected gradients, by the clip [] of a round.
      rule: of its steps, which keeps its state.
      path: of its messages.
      values: of its rows, as they are first believed to be.
    """
    keeping, first = rule.keeping, path.sent[0]
    fades = jnp.asarray(keeping.fades)[:, None]

    def of_round(left: _Left, seen):
        sent, returned, size, clip = seen
        field = field_of(clip)
        ends = rule.init(sent, values), rule.init(returned, values)
        between = jax.tree.map(lambda one, other: (one + other) / 2, *ends)

        def step(at, _):
            params, (state, gradients, models, weight) = at
            slope = field.slope(params, values)
            gradients = fades * gradients + keeping.gradient(params, slope, sent)[None]
            models = fades * models + params[None]
            params, state = rule.step(params, state, slope, sent, size)
            return (params, _Left(state, gradients, models, fades * weight + 1)), None

        begun = left._replace(state=keeping.carry(between, left.state))
        (params, after), _ = lax.scan(step, (sent, begun), length=path.steps)
        sound = jnp.isfinite(params).all()
        kept = jax.tree.map(lambda new, old: jnp.where(sound, new, old), after, left)
        point = left.models / jnp.maximum(left.weight, 1)
        slopes = lax.map(lambda at: field.slope(at, values), point)
        return kept, Memory(
            left.state, left.gradients, left.weight[:, 0], point, slopes
        )

    nothing = jnp.zeros((len(fades), len(first)))
    begun = _Left(rule.init(first, values), nothing, nothing, jnp.zeros_like(fades))
    return lax.scan(
        of_round, begun, (path.sent, path.returned, path.sizes, path.clips)
    )[1]


def beginning(field: Field, rule: Rule, memory: Memory) -> Beginning:
    """What is left of earlier rounds at the start of each."""
    keeping = rule.keeping

    def state(round_, sent, values):
        left = memory.of(round_)
        carried = keeping.carry(rule.init(sent, values), left.state)
        slope = jax.vmap(field.slope, (0, None))(left.point, values)
        more = left.weight[:, None] * (slope - left.slope)
        return keeping.recall(carried, left.sums, more), (carried, more, left)

    def back(stored, by_state, values):
        carried, more, left = stored
        _, vjp = jax.vjp(lambda more: keeping.recall(carried, left.sums, more), more)
        by_slope = left.weight[:, None] * vjp(by_state)[0]
        pull = jax.vmap(lambda at, by: field.pull(at, values, by)[1])
        by_values = pull(left.point, by_slope)
        return jax.tree.map(lambda leaf: leaf.sum(axis=0), by_values)

    return Beginning(state, back)

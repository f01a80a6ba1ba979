"""What a client's optimiser remembers of its earlier rounds, where it keeps its state.

All rounds are simulated one after another, from the models that were sent, with the rows
as they are first believed to be. What other rows would change of the state is a change of
sums of earlier gradients, in which one more step back counts `m` times as much: nearly
their weight times the change at the mean of the models where they were taken. Models are
taken to move evenly within a round, from what was sent to what was returned. Of Adam's
second moment what the mean gradient has no part in stays as it was simulated.

What the order of batches put into a state stays there for rounds, in Adam's second moment
for hundreds of steps. Such noise is alike in consecutive messages, whose differences show
less of it than there is: the misfit of the right rows is 2 or 3, of Adam up to 5.

A client's first message begins with nothing, as where the transcript begins with the
training. Of clients that miss rounds the state is that of the last one they were in.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fljax.attacks.trajectory.simulation import Beginning, Field, Rule
from fljax.types import PyTree


class Memory(NamedTuple):
    """Of an optimiser before each of a client's messages `R`, and of its sums `J`.

    Attributes:
      state: leaves `[R, ...]`, that was left by earlier rounds with the rows as believed.
      sums: `[R, J, P]` of the gradients behind it.
      weight: `[R, J]` of the gradients in a sum; 0 before the first.
      point: `[R, J, P]` mean of the models behind them.
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
      steps: K, of a round.
    """

    sent: jax.Array
    returned: jax.Array
    sizes: jax.Array
    steps: int


def memory(field: Field, rule: Rule, path: Path, values: PyTree) -> Memory:
    """What is kept, by all messages of a client in their order.

    Args:
      field: expected gradients.
      rule: of its steps, which keeps its state.
      path: of its messages.
      values: of its rows, as they are first believed to be.
    """
    keeping, first = rule.keeping, path.sent[0]
    fades = jnp.asarray(keeping.fades)[:, None]

    def of_round(left, seen):
        sent, returned, size = seen
        ends = rule.init(sent, values), rule.init(returned, values)
        between = jax.tree.map(lambda one, other: (one + other) / 2, *ends)
        begun = sent, keeping.carry(between, left[0]), left[1]

        def step(at, _):
            params, state, sums = at
            slope = field.slope(params, values)
            sums = fades * sums + keeping.gradient(params, slope, sent)[None]
            return (*rule.step(params, state, slope, sent, size), sums), None

        (_, *after), _ = lax.scan(step, begun, length=path.steps)
        return tuple(after), left

    nothing = rule.init(first, values), jnp.zeros((len(fades), len(first)))
    _, (state, sums) = lax.scan(
        of_round, nothing, (path.sent, path.returned, path.sizes)
    )
    weight, point = jax.vmap(_centres, (None, 0), 1)(path, np.asarray(keeping.fades))
    slope = lax.map(lambda at: field.slope(at, values), point.reshape(-1, len(first)))
    return Memory(state, sums, weight, point, slope.reshape(point.shape))


def _centres(path: Path, fades) -> tuple[jax.Array, jax.Array]:
    """`weight [R]` and `point [R, P]` of one sum."""
    counts = fades ** jnp.arange(path.steps)[::-1]
    total, share = counts.sum(), counts @ jnp.arange(path.steps) / path.steps

    def after(before, seen):
        weight, point = before
        sent, returned = seen
        old = fades**path.steps * weight
        here = total * sent + share * (returned - sent)
        return (old + total, (old * point + here) / (old + total)), before

    first = jnp.zeros(()), path.sent[0]
    return lax.scan(after, first, (path.sent, path.returned))[1]


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

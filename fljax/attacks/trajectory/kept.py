"""What a client's optimiser remembers of its earlier rounds, where it keeps its state.

All rounds are simulated one after another, from the models that were sent, with the rows
as they are believed to be. What a simulated round leaves unexplained is in part in the
state that it leaves: what the order of batches put there, or rows that are believed
wrongly. A Kalman filter says in which (`gains`), and that part is put right, so that what
rounds leave unexplained is not what earlier ones have left already.

What other rows would change of the state is a change of sums of earlier gradients, in
which one more step back counts `m` times as much, less what was put right: nearly their
weight times the change at the mean of the models where they were taken. Of one step in a
round nothing is left of it, for its message shows the momentum. Of Adam's second moment what
the mean gradient has no part in stays as it was simulated, and nothing is put right.

A client's first message begins with nothing, as where the transcript begins with the
training. Of clients that miss rounds the state is that of the last one they were in, and
of a round whose simulation runs away that of the one before.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fljax import packing
from fljax.attacks.trajectory.simulation import Beginning, Field, Rule
from fljax.types import PyTree

# What the order of batches puts into Adam's second moment stays there for hundreds of steps:
# consecutive messages have it alike, and their differences show half of it, or less.
ALIKE = 2.0
_MEAN = 0.2  # of all weights that their sum is at least, where a mean is one of what they weigh
_OTHERWISE = 1e-3  # of a row's variance, that is not of the order of batches


class Memory(NamedTuple):
    """Of an optimiser before each of a client's messages `R`, and of its sums `J`.

    Attributes:
      state: leaves `[R, ...]`, that was left by earlier rounds with the rows as believed.
      sums: `[R, J, P]` of the gradients behind it.
      weight: `[R, J]` of the gradients in a sum; 0 before the first.
      point: `[R, J, P]` mean of the models behind them, or one near them.
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
      gains: `[R]`, see there; zeros where messages are not the models that were trained.
      steps: K, of a round.
    """

    sent: jax.Array
    returned: jax.Array
    sizes: jax.Array
    clips: jax.Array
    gains: jax.Array
    steps: int


def gains(fade: float, noise: jax.Array, rounds: int) -> jax.Array:
    """How much of what a round leaves unexplained is in the state that it leaves, `[R]`.

    Those of a Kalman filter ("A New Approach to Linear Filtering and Prediction Problems",
    1960) of `trace_k = fade trace_(k-1) + noise_k`, of which a message is the sum over its
    steps; of one step it is the trace, and the gain is 1.

    Args:
      fade: in [0, 1).
      noise: `[K, K]` its covariance in the steps of a round, in any unit.
      rounds: R.
    """
    steps = len(noise)
    last, inside, begun = _weights(fade, steps)
    seen, left = inside @ noise @ inside, last @ noise @ last
    both = last @ noise @ inside

    def of_round(doubt, _):
        power, shared = begun**2 * doubt + seen, fade**steps * begun * doubt + both
        gain = jnp.maximum(shared / power, 0)  # with less than 0 it would not forget
        after = fade ** (2 * steps) * doubt + left - gain * (2 * shared - gain * power)
        return jnp.maximum(after, 0), gain

    return lax.scan(of_round, jnp.zeros(()), length=rounds)[1]


def of_steps(
    rows: jax.Array, batch_size: int, steps: int, drop_last: bool
) -> jax.Array:
    """Covariance `[K, K]` of the noise of batches in steps, in any unit.

    The rows of an epoch add up to all, and the noise of its batches to nothing; a filter
    that takes that for granted never forgets an error, of which there are others.

    Args:
      rows: [] of the client.
      batch_size: 0 for all of them.
      steps: K.
      drop_last: whether rows behind the last full batch are left out.
    """
    most = jnp.minimum(batch_size, rows) if batch_size else rows
    batches = packing.batches_per_epoch(rows, most, drop_last)
    step = jnp.arange(steps)
    is_last = (step + 1) % batches == 0
    own = jnp.minimum(jnp.where(is_last, rows - (batches - 1) * most, most), most)
    epoch = step[:, None] // batches == step[None] // batches
    return jnp.diag(1 / own) - (1 - _OTHERWISE) * epoch / rows


def _weights(fade: float, steps: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Of each step `[K]`: in the trace that a round leaves, and in the sum of its traces;
    and of the trace that it begins with, in that sum."""
    back = steps - np.arange(steps)
    return fade ** (back - 1.0), (1 - fade**back) / (1 - fade), float(sum(fade**back))


class _Left(NamedTuple):
    """Of an optimiser: its state, and sums `[J, P]`, their weights `[J, 1]`, and the same
    without their signs."""

    state: PyTree
    gradients: jax.Array
    models: jax.Array
    weight: jax.Array
    size: jax.Array

    def fading(self, state: PyTree, fade: jax.Array) -> "_Left":
        """With another state and what is left of the sums, `fade [J, 1]`."""
        return _Left(
            state,
            fade * self.gradients,
            fade * self.models,
            fade * self.weight,
            jnp.abs(fade) * self.size,
        )

    def plus(self, state: PyTree, count: jax.Array, gradient, params) -> "_Left":
        """After a step that counts `[J, 1]` in the sums."""
        return _Left(
            state,
            self.gradients + count * gradient[None],
            self.models + count * params[None],
            self.weight + count,
            self.size + jnp.abs(count),
        )

    def point(self, sent: jax.Array) -> jax.Array:
        """`[J, P]` mean of the models, or what was sent, where signs leave no mean."""
        mean = jnp.abs(self.weight) > _MEAN * self.size
        return jnp.where(mean, self.models / jnp.where(mean, self.weight, 1), sent)


def memory(
    field_of: Callable[[jax.Array], Field], rule: Rule, path: Path, values: PyTree
) -> Memory:
    """What is kept, by all messages of a client in their order.

    Args:
      field_of: expected gradients, by the clip [] of a round.
      rule: of its steps, which keeps its state.
      path: of its messages.
      values: of its rows, as they are believed to be.
    """
    keeping, first = rule.keeping, path.sent[0]
    fades, back = np.array(keeping.fades)[:, None], np.arange(path.steps)[::-1]
    _, inside, begun = _weights(keeping.fades[0], path.steps)

    def of_round(left: _Left, seen):
        sent, returned, size, clip, gain = seen
        field = field_of(clip)
        ends = rule.init(sent, values), rule.init(returned, values)
        between = jax.tree.map(lambda one, other: (one + other) / 2, *ends)
        # Of the first sum a part is seen, which does not depend on what is believed.
        fade = jnp.asarray(fades**path.steps).at[0].add(-gain * begun)
        counts = jnp.asarray(fades**back).at[0].add(-gain * inside)

        def step(at, count):
            params, before = at
            slope, count = field.slope(params, values), count[:, None]
            gradient = keeping.gradient(params, slope, sent)
            after, state = rule.step(params, before.state, slope, sent, size)
            return (after, before.plus(state, count, gradient, params)), None

        start = left.fading(keeping.carry(between, left.state), fade)
        (params, after), _ = lax.scan(step, (sent, start), counts.T)
        state = keeping.correct(after.state, gain * (params - returned) / size)
        after = after._replace(state=state)
        sound = jnp.isfinite(params).all()
        kept = jax.tree.map(lambda new, old: jnp.where(sound, new, old), after, left)
        point = left.point(sent)
        slopes = lax.map(lambda at: field.slope(at, values), point)
        return kept, Memory(
            left.state, left.gradients, left.weight[:, 0], point, slopes
        )

    nothing = jnp.zeros((len(fades), len(first)))
    none = jnp.zeros((len(fades), 1))
    start = _Left(rule.init(first, values), nothing, nothing, none, none)
    return lax.scan(
        of_round, start, (path.sent, path.returned, path.sizes, path.clips, path.gains)
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

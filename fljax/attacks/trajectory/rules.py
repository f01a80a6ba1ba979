"""What clients do with the gradient of a step: the rules of `LocalTraining`.

State goes along the path, from zero in each round or from what is `kept`. Only steps of plain SGD, with or
without weight decay and a proximal term, may be merged into fewer and larger ones; for
the others a simulated step is a step of the client's.

Adam divides by the root of the mean squared gradient, which is that of batches: larger
than the squared expected gradient by the variance of a batch's mean, which counts as often
as `quotients` says. That variance is taken where the round begins, and is a constant.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fljax.attacks.adversary import LocalTraining
from fljax.attacks.trajectory import quotients
from fljax.attacks.trajectory.simulation import Rule
from fljax.types import PyTree

NAMES = ("sgd", "adam", "adamw")


class Practice(NamedTuple):
    """A rule by its numbers; static.

    Attributes:
      optimiser: one of `NAMES`.
      momentum: of sgd.
      weight_decay: added to the gradient, or, of adamw, to the step.
      proximal: mu of FedProx.
      kept: whether state goes on from round to round.
    """

    optimiser: str = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0
    proximal: float = 0.0
    kept: bool = False

    @property
    def merges(self) -> bool:
        """Whether steps may be merged."""
        return self.optimiser == "sgd" and not self.momentum


def practice(training: LocalTraining) -> Practice:
    """How clients step who train like this."""
    proximal = training.proximal if training.algorithm == "fed_prox" else None
    return Practice(
        training.optimiser,
        training.momentum,
        training.weight_decay,
        proximal or 0.0,
        training.remembers,
    )


class Moments(NamedTuple):
    """Adam's, all `[P]` but the number of steps [] as a float."""

    first: jax.Array
    second: jax.Array
    steps: jax.Array
    variance: jax.Array


def of(
    practice: Practice,
    variance: Callable[[jax.Array, PyTree], jax.Array] | None = None,
    table: jax.Array | None = None,
) -> Rule:
    """The rule.

    Args:
      practice: which.
      variance: `(sent [P], values) -> [P]` of a batch's mean gradient, for Adam; None
        for full batches, which have none.
      table: `[M, 3]` of `merging.table`, None for equal steps; or of `quotients.table`,
        None for the quotient of expectations.

    Raises:
      ValueError: a table of steps with momentum.
    """
    if table is not None and practice.momentum:
        raise ValueError(f"table: expected plain SGD or Adam, got {practice}")
    decay, mu = practice.weight_decay, practice.proximal
    decoupled = decay if practice.optimiser == "adamw" else 0.0
    coupled = decay - decoupled
    begin, update = _sgd(practice.momentum)
    if practice.optimiser != "sgd":
        begin, update = _adam(variance, table)

    def whole(params, slope, sent):
        if coupled:
            slope = slope + coupled * params
        # The engine adds the proximal term to the gradient, before the optimiser.
        return slope + mu * (params - sent) if mu else slope

    def step(params, state, slope, sent, size):
        move, state = update(whole(params, slope, sent), state)
        if decoupled:
            move = move + decoupled * params
        return params - size * move, state

    if table is None or not practice.merges:
        return Rule(begin, step, _keeping(practice, whole))
    return _merged(whole, table)


class _Pair(NamedTuple):
    """Where a pair of steps began, the slope there, and what the next step is.

    Carried and not read from the table where it is used, which no compiler vectorises.
    """

    params: jax.Array
    slope: jax.Array
    second: jax.Array  # [] 1 where the next is the second of a pair, else 0
    weights: tuple[jax.Array, jax.Array]  # [] of the slope there, and of the slope here
    number: jax.Array


def _merged(whole: Callable, table: jax.Array) -> Rule:
    """Plain steps of the sizes of a table `[M, 3]`, given the gradient as a step has it."""
    table = jnp.asarray(table)

    def begin(sent, values):
        nothing = jnp.zeros(())
        weights = table[0, 0], table[0, 1]
        return _Pair(sent, jnp.zeros_like(sent), nothing, weights, nothing)

    def step(params, state, slope, sent, size):
        slope, second = whole(params, slope, sent), state.second > 0
        begun = jnp.where(second, state.params, params)
        before = jnp.where(second, state.slope, slope)
        first, last = (size * len(table) * weight for weight in state.weights)
        at = state.number.astype(int)
        stays, after = table[at, 2], jnp.minimum(at + 1, len(table) - 1)
        weights = table[after, 0], table[after, 1]
        state = _Pair(begun, before, stays, weights, state.number + 1)
        return begun - first * before - last * slope, state

    return Rule(begin, step)


def _sgd(momentum: float):
    if not momentum:
        return lambda sent, values: (), lambda slope, state: (slope, state)

    def update(slope, trace):
        trace = slope + momentum * trace
        return trace, trace

    return lambda sent, values: jnp.zeros_like(sent), update


def _adam(variance, table):
    b1, b2 = quotients.B1, quotients.B2
    table = None if table is None else jnp.asarray(table)

    def begin(sent, values):
        zeros = jnp.zeros_like(sent)
        spread = zeros if variance is None else variance(sent, values)
        return Moments(zeros, zeros, jnp.zeros(()), jax.lax.stop_gradient(spread))

    def update(slope, state):
        steps = state.steps + 1
        first = b1 * state.first + (1 - b1) * slope
        square = jnp.square(slope) + state.variance
        second = b2 * state.second + (1 - b2) * square
        mean, power = first / (1 - b1**steps), second / (1 - b2**steps)
        if table is not None:
            weights = table[state.steps.astype(int)]
            times = quotients.counted(weights, mean, state.variance)
            power = jnp.maximum(power + (times - 1) * state.variance, 0)
        root = jnp.where(power > 0, jnp.sqrt(jnp.where(power > 0, power, 1)), 0)
        state = state._replace(first=first, second=second, steps=steps)
        return mean / (root + quotients.EPS), state

    return begin, update


class Keeping(NamedTuple):
    """How a state goes on from round to round.

    Attributes:
      fades: J numbers: how much a gradient counts one more step back, in each sum of them
        that the state depends on.
      gradient: `(params [P], slope [P], sent [P]) -> [P]`, as the optimiser has it.
      carry: `(state, left) -> state`, that of `Rule.init` with what earlier rounds left.
      recall: `(state, sums [J, P], more [J, P]) -> state`, where the sums were larger.
      correct: `(state, more [P]) -> state`, where steps by its end were larger.
    """

    fades: tuple[float, ...]
    gradient: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    carry: Callable[[PyTree, PyTree], PyTree]
    recall: Callable[[PyTree, jax.Array, jax.Array], PyTree]
    correct: Callable[[PyTree, jax.Array], PyTree]


def _keeping(practice: Practice, gradient: Callable) -> Keeping | None:
    if practice.optimiser == "sgd":
        if not practice.momentum:
            return None
        return Keeping(
            (practice.momentum,),
            gradient,
            lambda _, trace: trace,
            lambda trace, sums, more: trace + more[0],
            lambda trace, more: trace + more,
        )
    b1, b2 = quotients.B1, quotients.B2

    def recall(state: Moments, sums, more):
        """The mean of the squared gradients is that of gradients, squared, and the rest."""
        first = state.first + (1 - b1) * more[0]
        weight = 1 - b2**state.steps
        rise = jnp.square(sums[1] + more[1]) - jnp.square(sums[1])
        second = state.second + (1 - b2) ** 2 * rise / jnp.maximum(weight, 1 - b2)
        return state._replace(first=first, second=jnp.maximum(second, 0))

    def correct(state: Moments, more):
        """A step is the first moment over the root of the second, as they are counted."""
        root = jnp.sqrt(state.second / (1 - b2**state.steps)) + quotients.EPS
        return state._replace(first=state.first + (1 - b1**state.steps) * root * more)

    return Keeping(
        (b1, b2),
        gradient,
        lambda state, left: left._replace(variance=state.variance),
        recall,
        correct,
    )

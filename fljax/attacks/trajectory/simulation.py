"""Expected rounds of a client whose rows are only softly known, and their derivatives.

The search (`matching`) knows of a round no more than a `Simulator`:

    predicted, stored = simulator.end(round, values, scale)
    by_values, by_scale = simulator.back(stored, cotangent, values, scale)

`predicted` is what is compared with the observation of that round, in any coordinates:
a returned model for one client's messages, a sum of updates where only sums are seen.
`values` is whatever `Problem.relax` makes of the logits. A simulator may be made of
others: what is done to a message, or a sum over clients, calls their `end` and hands
their `back` the cotangent of what each of them predicted.

`paths` simulates one client. It is made of two parts that can be replaced:

* a `Field`, the expected gradient at a point. `of_loss` takes that of a mean loss.
* a `Rule`, what the client does with it. `SGD` steps along it.

K mini-batch steps of rate eta are followed by M full-batch steps of size `eta K / M`,
or, with the rule of `merging`, of sizes that come nearer to K.
The derivative of the end point is an adjoint pass over the stored path; per step it
needs one derivative of the loss along a direction and its gradient, several times less
than differentiating through the gradients.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from fljax.types import Array, PyTree

MeanLoss = Callable[[jax.Array, Any], jax.Array]
# (flat params [P], soft attribute values) -> []


class Simulator(NamedTuple):
    """Rounds as functions of what is looked for; both traceable, the round too.

    Attributes:
      end: `(round [], values, scale []) -> (predicted [O], stored)`.
      back: `(stored, cotangent [O], values, scale) -> (by_values, by_scale)`, derivatives
        of `cotangent . predicted` in the shapes of `values` and `scale`.
    """

    end: Callable[[Any, PyTree, jax.Array], tuple[jax.Array, PyTree]]
    back: Callable[[PyTree, jax.Array, PyTree, jax.Array], tuple[PyTree, jax.Array]]


class Field(NamedTuple):
    """The expected gradient of a step.

    Attributes:
      slope: `(params [P], values) -> [P]`.
      pull: `(params [P], values, cotangent [P]) -> (by_params [P], by_values)`,
        derivatives of `cotangent . slope(params, values)`.
    """

    slope: Callable[[jax.Array, PyTree], jax.Array]
    pull: Callable[[jax.Array, PyTree, jax.Array], tuple[jax.Array, PyTree]]


class Rule(NamedTuple):
    """What a client does with the gradient of a step.

    Attributes:
      init: `(sent [P], values) -> state`, at the start of a round.
      step: `(params [P], state, slope [P], sent [P], size []) -> (params, state)`, of
        learning rate `size`.
      keeping: how state goes on from round to round; None where it does not.
    """

    init: Callable[[jax.Array, PyTree], PyTree]
    step: Callable[..., tuple[jax.Array, PyTree]]
    keeping: Any = None


class Beginning(NamedTuple):
    """The state at the start of a round.

    Attributes:
      state: `(round [], sent [P], values) -> (state, stored)`.
      back: `(stored, by_state, values) -> by_values`.
    """

    state: Callable[[Any, jax.Array, PyTree], tuple[PyTree, PyTree]]
    back: Callable[[PyTree, PyTree, PyTree], PyTree]


def anew(rule: Rule) -> Beginning:
    """Nothing is left of earlier rounds."""
    return Beginning(
        lambda round_, sent, values: (rule.init(sent, values), ()),
        lambda stored, by_state, values: jax.tree.map(jnp.zeros_like, values),
    )


class Step(NamedTuple):
    """What is kept of steps `[M, ...]`: before each of them, and its gradient."""

    params: jax.Array
    state: PyTree
    slope: jax.Array


def _plain(params, state, slope, sent, size):
    del sent
    return params - size * slope, state


SGD = Rule(lambda sent, values: (), _plain)


def of_loss(mean_loss: MeanLoss) -> Field:
    """The gradient of a mean loss."""

    def pull(params, values, cotangent):
        def along(params, values):
            return jax.jvp(lambda p: mean_loss(p, values), (params,), (cotangent,))[1]

        return jax.grad(along, (0, 1))(params, values)

    return Field(jax.grad(mean_loss), pull)


def paths(
    field: Field,
    rule: Rule,
    sent: jax.Array,
    steps: int,
    beginning: Beginning | None = None,
) -> Simulator:
    """Simulates a client's local training; what is predicted is the model it returns.

    Args:
      field: expected gradients.
      rule: of its steps.
      sent: `[R, P]` models that it was sent.
      steps: M; `scale / steps` is the learning rate.
      beginning: of each round; None for nothing that is left of earlier ones.
    """

    beginning = beginning or anew(rule)

    def end(round_, values, scale):
        size, first = scale / steps, sent[round_]
        state, begun = beginning.state(round_, first, values)

        def step(carry, _):
            params, state = carry
            slope = field.slope(params, values)
            after = rule.step(params, state, slope, first, size)
            return after, Step(params, state, slope)

        (params, _), path = lax.scan(step, (first, state), length=steps)
        return params, (path, first, begun)

    def back(stored, cotangent, values, scale):
        path, first, begun = stored

        # Carried and not read where it is used: a compiler would look every number of
        # a step up again in each of the many sums over rows that need it.
        def step(carry, before: Step):
            after, by_values, by_size, at = carry
            _, vjp = jax.vjp(
                lambda p, s, g, size: rule.step(p, s, g, first, size),
                *at, scale / steps,
            )  # fmt: skip
            by_params, by_state, by_slope, by_this = vjp(after)
            bend, pull = field.pull(at.params, values, by_slope)
            by_values = jax.tree.map(jnp.add, by_values, pull)
            after = by_params + bend, by_state
            return (after, by_values, by_size + by_this, before), None

        last = jax.tree.map(lambda leaf: leaf[-1], path)
        before = jax.tree.map(lambda leaf: jnp.roll(leaf, 1, axis=0), path)
        after = cotangent, jax.tree.map(jnp.zeros_like, last.state)
        start = (after, jax.tree.map(jnp.zeros_like, values), jnp.zeros(()), last)
        (after, by_values, by_size, _), _ = lax.scan(step, start, before, reverse=True)
        earlier = beginning.back(begun, after[1], values)
        return jax.tree.map(jnp.add, by_values, earlier), by_size / steps

    return Simulator(end, back)


def chords(field: Field, sent: jax.Array, returned: jax.Array) -> Simulator:
    """First order: one step along the mean of the gradients at the two known ends.

    Args:
      field: expected gradients.
      sent: `[R, P]`.
      returned: `[R, P]`.
    """

    def end(round_, values, scale):
        points = jnp.stack([sent[round_], returned[round_]])
        slopes = jax.vmap(field.slope, (0, None))(points, values)
        mean = slopes.mean(axis=0)
        return points[0] - scale * mean, (points, mean)

    def back(stored, cotangent, values, scale):
        points, mean = stored
        pull = jax.vmap(lambda point: field.pull(point, values, -scale * cotangent)[1])
        by_values = jax.tree.map(lambda leaf: leaf.mean(axis=0), pull(points))
        return by_values, -jnp.dot(cotangent, mean)

    return Simulator(end, back)


def by_round(make: Callable[[Array], Simulator], table: Array) -> Simulator:
    """A simulator of which a number changes from round to round: `make(table[t])`."""

    def end(round_, values, scale):
        predicted, stored = make(table[round_]).end(round_, values, scale)
        return predicted, (table[round_], stored)

    def back(stored, cotangent, values, scale):
        number, inner = stored
        return make(number).back(inner, cotangent, values, scale)

    return Simulator(end, back)


def at_rates(simulator: Simulator, rates: Array) -> Simulator:
    """The same with a scale that is `rates[t]` times the one given."""

    def end(round_, values, scale):
        rate = rates[round_]
        predicted, stored = simulator.end(round_, values, scale * rate)
        return predicted, (rate, stored)

    def back(stored, cotangent, values, scale):
        rate, inner = stored
        by_values, by_scale = simulator.back(inner, cotangent, values, scale * rate)
        return by_values, by_scale * rate

    return Simulator(end, back)

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


_FAR = 30.0  # times the observed change; wrong values change a path by less


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
    """

    init: Callable[[jax.Array, PyTree], PyTree]
    step: Callable[..., tuple[jax.Array, PyTree]]


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


def paths(field: Field, rule: Rule, sent: jax.Array, steps: int) -> Simulator:
    """Simulates a client's local training; what is predicted is the model it returns.

    Args:
      field: expected gradients.
      rule: of its steps.
      sent: `[R, P]` models that it was sent.
      steps: M; `scale / steps` is the learning rate.
    """

    def end(round_, values, scale):
        size, first = scale / steps, sent[round_]

        def step(carry, _):
            params, state = carry
            slope = field.slope(params, values)
            after = rule.step(params, state, slope, first, size)
            return after, Step(params, state, slope)

        (params, _), path = lax.scan(
            step, (first, rule.init(first, values)), length=steps
        )
        return params, (path, first)

    def back(stored, cotangent, values, scale):
        path, first = stored

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
        (_, by_values, by_size, _), _ = lax.scan(step, start, before, reverse=True)
        return by_values, by_size / steps

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


class Steadied(NamedTuple):
    """What is kept of a round that one of two simulated.

    Attributes:
      steady: [] bool, whether the first one did.
      as_asked: [] bool, whether it did or was not wanted.
      first: what that stored; zeros where it was not wanted.
      other: what the other one stored; zeros where it was not needed.
    """

    steady: jax.Array
    as_asked: jax.Array
    first: PyTree
    other: PyTree


def steadied(
    simulator: Simulator,
    other: Simulator,
    sent: jax.Array,
    returned: jax.Array,
    wanted: Array | None = None,
) -> tuple[Simulator, Callable[[PyTree], jax.Array]]:
    """Another simulator in rounds in which one runs away, or is not wanted.

    It runs away where it leaves the numbers, or goes far beyond what was observed.

    Args:
      simulator: of returned models.
      other: of the same, that cannot run away.
      sent: `[R, P]`.
      returned: `[R, P]`.
      wanted: `[R]` bool, whether the first is run at all; None for always.

    Returns:
      Both as one, which stores `Steadied`, and `(stored) -> [] bool`, `as_asked`.
    """
    reach = _FAR * jnp.linalg.norm(returned - sent, axis=1)

    def end(round_, values, scale):
        asked = round_, values, scale
        run = True if wanted is None else wanted[round_]
        shapes = jax.eval_shape(simulator.end, *asked)
        found, stored = lax.cond(
            run,
            lambda: simulator.end(*asked),
            lambda: jax.tree.map(jnp.zeros_like, shapes),
        )
        moved = jnp.linalg.norm(found - sent[round_])
        steady = run & (moved <= reach[round_])  # never, if it is not a number
        others = jax.eval_shape(other.end, *asked)[1]
        found, instead = lax.cond(
            steady,
            lambda: (found, jax.tree.map(jnp.zeros_like, others)),
            lambda: other.end(*asked),
        )
        as_asked = steady | jnp.logical_not(run)
        return found, Steadied(steady, as_asked, stored, instead)

    def back(stored, cotangent, values, scale):
        return lax.cond(
            stored.steady,
            lambda: simulator.back(stored.first, cotangent, values, scale),
            lambda: other.back(stored.other, cotangent, values, scale),
        )

    return Simulator(end, back), lambda stored: stored.as_asked


def seldom(
    simulator: Simulator, steady: Callable[[PyTree], jax.Array]
) -> tuple[Simulator, Callable[[PyTree], jax.Array]]:
    """The same, for rare use: nothing is stored, and it is run again for derivatives."""

    def end(round_, values, scale):
        found, stored = simulator.end(round_, values, scale)
        return found, (steady(stored), round_)

    def back(stored, cotangent, values, scale):
        _, path = simulator.end(stored[1], values, scale)
        return simulator.back(path, cotangent, values, scale)

    return Simulator(end, back), lambda stored: stored[0]

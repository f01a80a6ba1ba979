"""Optimisers of a reconstruction, one attack iteration at a time.

CPL runs PyTorch's L-BFGS as it comes: 20 inner iterations per attack iteration, steps
of length 1 without a line search. Here an attack iteration is the same 20 inner
iterations, with memory 100 as there, but each ends a zoom line search (strong Wolfe
conditions): on CPL's own network the step of length 1 is nearly always the one taken,
so that both cost the same and go the same way; on others a search keeps the loss from
rising.

`whitened_lbfgs` goes beyond the paper. Reconstruction is a least-squares problem whose
curvatures differ by factors of 1e5 to 1e6, and L-BFGS sees few of them. An attacker
knows the model, so it can compute the Gauss-Newton matrix of its own iterate and let
L-BFGS run in coordinates where that is the identity.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.flatten_util import ravel_pytree

from fljax.attacks.inversion.spaces import Variables
from fljax.types import PyTree


class Problem(NamedTuple):
    """What is minimised.

    Attributes:
      objective: `(variables) -> []`.
      residuals: `(variables) -> PyTree` whose squares the objective sums, up to a
        constant: the simulated message, and what a Gaussian prior adds.
      project: `(variables) -> variables`, or None.
    """

    objective: Callable[[Variables], jax.Array]
    residuals: Callable[[Variables], PyTree]
    project: Callable[[Variables], Variables] | None = None


class Step(NamedTuple):
    """Outcome of one attack iteration.

    Attributes:
      variables: from which the next one starts.
      state: of the solver.
      seen: the variables that `loss` belongs to.
      loss: [] the objective there.
    """

    variables: Variables
    state: PyTree
    seen: Variables
    loss: jax.Array


_SEARCH = 20  # evaluations in a line search of L-BFGS, at most
_WIDTH = 16  # products computed side by side


class Solver(NamedTuple):
    """An optimiser.

    Attributes:
      init: `(variables) -> state`.
      step: `(problem, variables, state) -> Step`, one attack iteration.
    """

    init: Callable[[Variables], PyTree]
    step: Callable[[Problem, Variables, PyTree], Step]


def lbfgs(inner_iterations: int = 20, memory: int = 100) -> Solver:
    """L-BFGS whose memory lasts over attack iterations.

    Args:
      inner_iterations: of L-BFGS in one attack iteration, at most; it ends with the
        first that does not lower the objective.
      memory: pairs of differences that are remembered.
    """
    optimiser = _optimiser(memory)

    def step(problem, variables, state):
        variables, state, loss = _descend(
            optimiser, problem.objective, variables, state, inner_iterations
        )
        return _within(problem, variables, state, loss)

    return Solver(optimiser.init, step)


def whitened_lbfgs(damping: float = 1e-2, inner_iterations: int = 20) -> Solver:
    """L-BFGS in coordinates whitened anew at the start of every attack iteration.

    An attack iteration costs, beside its inner ones, a product with `J^T J` for every
    variable and a Cholesky factor: `n^2` numbers for `n` variables. J is the Jacobian
    of the residuals. L-BFGS remembers all inner iterations of one.

    Args:
      damping: added to the diagonal of `J^T J`, over its mean.
      inner_iterations: as in `lbfgs`.

    Raises:
      ValueError: `damping` is not above 0.
    """
    if damping <= 0:
        raise ValueError(f"damping must be > 0, got {damping=}")
    optimiser = _optimiser(inner_iterations)

    def step(problem, variables, state):
        origin, unravel = ravel_pytree(variables)

        def residuals(flat):
            return ravel_pytree(problem.residuals(unravel(flat)))[0]

        root = _inverse_root(_gauss_newton(residuals, origin), damping)

        def move(white):
            return unravel(origin + white @ root)

        start = jnp.zeros_like(origin)
        white, _, loss = _descend(
            optimiser,
            lambda white: problem.objective(move(white)),
            start,
            optimiser.init(start),
            inner_iterations,
        )
        return _within(problem, move(white), state, loss)

    return Solver(lambda variables: (), step)


def adam(
    learning_rate: float,
    num_iterations: int | None,
    *,
    signed: bool = False,
) -> Solver:
    """Adam whose learning rate falls to zero as a cosine; one update an iteration.

    Args:
      learning_rate: the first one.
      num_iterations: after how many it is zero; None: it stays.
      signed: whether Adam is given the gradient's signs (Geiping et al. 2020).
    """
    schedule = (
        learning_rate
        if num_iterations is None
        else optax.cosine_decay_schedule(learning_rate, num_iterations)
    )
    optimiser = optax.adam(schedule)

    def step(problem, variables, state):
        loss, slope = jax.value_and_grad(problem.objective)(variables)
        if signed:
            slope = jax.tree.map(jnp.sign, slope)
        updates, state = optimiser.update(slope, state, variables)
        moved = optax.apply_updates(variables, updates)
        if problem.project is not None:
            moved = problem.project(moved)
        return Step(moved, state, variables, loss)

    return Solver(optimiser.init, step)


def _optimiser(memory):
    return optax.lbfgs(
        memory_size=memory,
        linesearch=optax.scale_by_zoom_linesearch(
            max_linesearch_steps=_SEARCH, initial_guess_strategy="one"
        ),
    )


def _descend(optimiser, objective, variables, state, inner_iterations):
    """Up to `inner_iterations` of L-BFGS: variables, state and loss []."""

    def more(carry):
        number, lower = carry[:2]
        return (number < inner_iterations) & lower

    def iterate(carry):
        number, _, variables, state, loss, slope = carry
        updates, state = optimiser.update(
            slope, state, variables, value=loss, grad=slope, value_fn=objective
        )
        variables = optax.apply_updates(variables, updates)
        after, slope = (optax.tree.get(state, name) for name in ("value", "grad"))
        return number + 1, after < loss, variables, state, after, slope

    loss, slope = jax.value_and_grad(objective)(variables)
    carry = (jnp.int32(0), jnp.bool(True), variables, state, loss, slope)
    _, _, variables, state, loss, _ = lax.while_loop(more, iterate, carry)
    return variables, state, loss


def _within(problem, variables, state, loss):
    if problem.project is None:
        return Step(variables, state, variables, loss)
    variables = problem.project(variables)
    return Step(variables, state, variables, problem.objective(variables))


def _gauss_newton(residuals, at):
    """`J^T J` `[n, n]` of `residuals` `[n] -> [P]`."""
    _, push = jax.linearize(residuals, at)
    pull = jax.linear_transpose(push, at)
    one_hot = jnp.eye(len(at), dtype=at.dtype)
    return lax.map(lambda v: pull(push(v))[0], one_hot, batch_size=_WIDTH)


def _inverse_root(gram, damping):
    """R with `R^T R` the inverse of the damped matrix; the identity where it has none.

    Inverted once, for it is multiplied twice in every evaluation of a line search.
    """
    identity = jnp.eye(len(gram), dtype=gram.dtype)
    ridge = damping * jnp.trace(gram) / len(gram)
    # Symmetric but for rounding, which would count twice in small directions.
    factor = jnp.linalg.cholesky((gram + gram.T) / 2 + ridge * identity)
    root = jax.scipy.linalg.solve_triangular(factor, identity, lower=True)
    return jnp.where(jnp.all(jnp.isfinite(root)), root, identity)

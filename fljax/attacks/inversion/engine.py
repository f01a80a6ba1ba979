"""Reconstructs a client's examples from what it sent: one compiled loop.

The attacker minimises over examples the distance of the simulated message from the
observed one. All choices, also between restarts, rest on that loss; the truth is not an
argument. How soon an attack succeeds is for whoever knows the truth to say, from the
recorded `path` of what the attacker would have shown after each iteration, of all starts
side by side. Of a message that is no number a seed is shown, with an infinite loss.

A step to where the loss is no number is undone: the solver starts anew from the best
iterate, or from a fresh seed if that is where it came from. Such a step is not counted
as one without progress.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from fljax import precision
from fljax.attacks.inversion.gaussian import Gaussian
from fljax.attacks.inversion.objectives import Distance, Prior, squared_distance
from fljax.attacks.inversion.points import Simulate
from fljax.attacks.inversion.solvers import Problem, Solver
from fljax.attacks.inversion.spaces import Guess, Space, Variables
from fljax.types import Key, Params, PyTree


class Inversion(NamedTuple):
    """Outcome of one attack.

    Attributes:
      x: leaves `[B, ...]`, the examples of the smallest loss.
      y: `[B]` their labels, or `[B, K]` the probabilities of labels.
      loss: [] the attacker's.
      losses: `[I]` the smallest loss up to each iteration.
      path: as `x`, leaves `[ceil(I / record_every), B, ...]`: the examples of the
        smallest loss up to iteration `record_every`, `2 record_every`, and so on.
      restarts: [] int32, how often the search went back or began anew.
      iterations: [] int32, attack iterations that were run, over all starts.
    """

    x: PyTree
    y: jax.Array
    loss: jax.Array
    losses: jax.Array
    path: PyTree
    restarts: jax.Array
    iterations: jax.Array


class Budget(NamedTuple):
    """How long an attack searches; all static.

    Attributes:
      num_iterations: I, attack iterations.
      starts: independent searches, of which the attacker keeps the best; iterations of
        `losses` and `path` are those of each.
      record_every: iterations from one entry of the path to the next.
      tolerance: share of the distance of a zero message, below which a search ends.
      patience: iterations in which the loss has not become lower by a thousandth in all,
        after which a search begins anew from a fresh seed; None for never.
      give_up: iterations in which the smallest loss has not become lower by a thousandth
        in all, after which a search ends; None for never. More than `patience`.
    """

    num_iterations: int = 300
    starts: int = 1
    record_every: int = 1
    tolerance: float = 0.0
    patience: int | None = None
    give_up: int | None = None


PAPER = Budget()
"""300 attack iterations, the limit of Wei et al. 2021."""


_PROGRESS = 0.999  # of a loss, below which there is progress


class _Best(NamedTuple):
    guess: Guess
    loss: jax.Array


class _Search(NamedTuple):
    """State of one search; `run_*` is what began with the last seed."""

    number: jax.Array
    variables: Variables
    state: PyTree
    best: _Best
    mark: jax.Array  # the smallest loss when it last made progress
    idle: jax.Array  # iterations since then
    run_variables: Variables
    run_loss: jax.Array
    run_mark: jax.Array
    since: jax.Array
    gained: jax.Array  # whether the run got lower since it last began or went back
    restarts: jax.Array
    losses: jax.Array
    path: PyTree


@precision.full
def invert(
    key: Key,
    params: Params,
    observed: Params,
    simulate: Simulate,
    space: Space,
    solver: Solver,
    *,
    distance: Distance = squared_distance,
    prior: Prior | None = None,
    budget: Budget = PAPER,
) -> Inversion:
    """Searches for the examples that explain `observed`.

    Args:
      key: consumed.
      params: the model at which the message was computed.
      observed: the message, in the shape of params.
      simulate: what the attacker believes the client did, from `points`.
      space: which examples are possible, from `spaces`.
      solver: from `solvers`.
      distance: from `objectives`.
      prior: added to the distance.
      budget: how long to search.

    Returns:
      An `Inversion`. Pure; vmap it over keys and messages, see also `clients`.

    Raises:
      ValueError: a number in the budget is out of range.
    """
    _check(budget)
    params, observed = jax.tree.map(jnp.asarray, (params, observed))

    def residuals(variables):
        guess = space.decode(variables)
        of_prior = prior.residuals(guess.x) if isinstance(prior, Gaussian) else ()
        return simulate(params, *guess), of_prior

    def objective(variables):
        guess = space.decode(variables)
        loss = distance(simulate(params, *guess), observed)
        return loss if prior is None else loss + prior(guess.x)

    silence = jax.tree.map(jnp.zeros_like, observed)
    enough = budget.tolerance * distance(silence, observed)
    problem = Problem(objective, residuals, space.project)

    def search(start):
        return _search(
            jax.random.fold_in(key, start), problem, space, solver, enough, budget
        )

    return _merge(lax.map(search, jnp.arange(budget.starts)), budget)


def _check(budget: Budget) -> None:
    counts = [budget.num_iterations, budget.starts, budget.record_every]
    patience, give_up = budget.patience, budget.give_up
    counts += [n for n in (patience, give_up) if n is not None]
    if min(counts) < 1:
        raise ValueError(f"budget: expected counts of 1 or more, got {budget}")
    if patience is not None and give_up is not None and patience >= give_up:
        raise ValueError(f"budget: expected give_up above patience, got {budget}")
    if not 0 <= budget.tolerance < 1:
        raise ValueError(f"budget: expected a tolerance in [0, 1), got {budget}")


def _search(key, problem, space, solver, enough, budget: Budget) -> _Search:
    total, every = budget.num_iterations, budget.record_every
    variables = space.init(jax.random.fold_in(key, 0))
    guess = space.decode(variables)
    infinite = jnp.asarray(jnp.inf, enough.dtype)
    records = -(-total // every)
    begin = _Search(
        number=jnp.int32(0),
        variables=variables,
        state=solver.init(variables),
        best=_Best(guess, infinite),
        mark=infinite,
        idle=jnp.int32(0),
        run_variables=variables,
        run_loss=infinite,
        run_mark=infinite,
        since=jnp.int32(0),
        gained=jnp.bool(False),
        restarts=jnp.int32(0),
        losses=jnp.full(total, jnp.inf, infinite.dtype),
        path=jax.tree.map(
            lambda leaf: jnp.zeros((records, *leaf.shape), leaf.dtype), guess.x
        ),
    )

    def more(now):
        going = (now.number < total) & ~(now.best.loss <= enough)
        return going if budget.give_up is None else going & (now.idle < budget.give_up)

    def iterate(now):
        done = solver.step(problem, now.variables, now.state)
        now = _continue(key, space, solver, budget.patience, now, done)
        lower = done.loss < now.best.loss  # never, if it is not a number
        progress = done.loss < _PROGRESS * now.mark
        found = _Best(space.decode(done.seen), done.loss)
        best = _choose(lower, found, now.best)
        return now._replace(
            number=now.number + 1,
            best=best,
            mark=jnp.where(progress, done.loss, now.mark),
            idle=jnp.where(progress, 0, now.idle + jnp.isfinite(done.loss)),
            losses=now.losses.at[now.number].set(best.loss),
            path=_write(now.path, now.number // every, best.guess.x),
        )

    end = lax.while_loop(more, iterate, begin)
    # What was not run shows what the search ended with.
    late = jnp.arange(total) >= end.number
    unwritten = jnp.arange(records) * every >= end.number
    return end._replace(
        losses=jnp.where(late, end.best.loss, end.losses),
        path=jax.tree.map(
            lambda leaf, last: jnp.where(_like(unwritten, leaf), last[None], leaf),
            end.path,
            end.best.guess.x,
        ),
    )


def _continue(key, space, solver, patience, now: _Search, done) -> _Search:
    """Goes on from where the iteration ended, from further back, or afresh."""
    leaves = jax.tree.leaves(done.variables)
    sound = jnp.isfinite(done.loss)
    for leaf in leaves:
        sound = sound & jnp.all(jnp.isfinite(leaf))
    lower = done.loss < now.run_loss
    progress = done.loss < _PROGRESS * now.run_mark
    run_variables = _choose(lower, done.seen, now.run_variables)
    run_loss = jnp.where(lower, done.loss, now.run_loss)
    run_mark = jnp.where(progress, done.loss, now.run_mark)
    since = jnp.where(progress, 0, now.since + 1)
    gained = now.gained | lower

    stuck = False if patience is None else since >= patience
    afresh = (~sound & ~gained) | stuck
    back = ~sound & ~afresh
    seed = space.init(jax.random.fold_in(key, now.number + 1))
    variables = _choose(back, run_variables, done.variables)
    variables = _choose(afresh, seed, variables)
    again = afresh | back
    return now._replace(
        variables=variables,
        state=_choose(again, solver.init(variables), done.state),
        run_variables=_choose(afresh, seed, run_variables),
        run_loss=jnp.where(afresh, jnp.inf, run_loss),
        run_mark=jnp.where(afresh, jnp.inf, run_mark),
        since=jnp.where(again, 0, since),
        gained=gained & ~again,
        restarts=now.restarts + again,
    )


def _merge(searches: _Search, budget: Budget) -> Inversion:
    """The attacker's choice among searches, leaves `[starts, ...]`."""
    total, every = budget.num_iterations, budget.record_every
    losses, winner = searches.losses, jnp.argmin(searches.best.loss)
    best = jax.tree.map(lambda leaf: leaf[winner], searches.best)
    ends = jnp.minimum((jnp.arange(-(-total // every)) + 1) * every, total) - 1
    leader = jnp.argmin(losses, axis=0)[ends]
    return Inversion(
        x=best.guess.x,
        y=best.guess.y,
        loss=best.loss,
        losses=jnp.min(losses, axis=0),
        path=jax.tree.map(
            lambda leaf: leaf[leader, jnp.arange(len(ends))], searches.path
        ),
        restarts=jnp.sum(searches.restarts),
        iterations=jnp.sum(searches.number),
    )


def _choose(condition, yes: PyTree, no: PyTree):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _write(path, slot, x):
    return jax.tree.map(lambda leaf, row: leaf.at[slot].set(row), path, x)


def _like(mask, leaf):
    return mask.reshape(-1, *[1] * (leaf.ndim - 1))

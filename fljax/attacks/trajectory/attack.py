"""Trajectory matching: passive attribute inference by simulating the client.

The adversary knows what a client was sent and what it returned, its public columns and
targets, the loss and how it trains. So it simulates the expected local training with a
soft sensitive attribute and looks for the values whose simulated end points meet the
returned models over many rounds, in the metric of the noise (`noise`).

1. Row i costs `sum_k z_ik l(theta, candidate_k)`; its gradient is affine in `z`.
2. The expected path of K mini-batch steps of rate eta is that of as many full-batch
   steps, and nearly that of M fewer (`merging`).
3. `sum_t r_t' C_t^-1 r_t`, with `r_t` the simulated minus the returned model, is
   minimised over logits by Adam on a few random rounds at a time; the gradient is one
   adjoint pass over the stored path, a forward and a reverse derivative per step.
4. Some rounds are held out. The iterate that explains them best is kept: no truth is
   needed to stop.
5. The curvature of the objective, found by random probes, makes it a posterior, and the
   held-out rounds say how far to trust the end of the search beyond it, and whether the
   odds at its beginning are a prior (`posterior`).

What is simulated of the client, its rule and its defense, and what is not, is listed in
`imagined`; what is not counts as misfit, and the result is a lower bound on what leaks.
A round whose simulation runs away is simulated in shorter steps, or, if they do not help,
followed to first order.

This attack is not from a paper. Its first-order version, `first_order=True` or, in the
same program, `MessageFacts.path` that is False, replaces the path by the gradients at its two
known ends ("linear inversion"): cheap, exact for a model that hardly moves within a
round, and misled by drift otherwise. Of clients that take one step in a round `clients`
has the path, which is of first order itself.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from fljax import losses, precision
from fljax.attacks.attribute import without_padding
from fljax.attacks.trajectory import (
    exact,
    imagined,
    kept,
    matching,
    message_facts,
    messages,
    misfits,
    relaxation,
    rounding,
)
from fljax.attacks.trajectory.imagined import PLAIN, Imagined
from fljax.attacks.trajectory.matching import Point, Problem, Settings
from fljax.attacks.trajectory.message_facts import MessageFacts
from fljax.attacks.trajectory.posterior import posterior
from fljax.types import Array, Exchange, Key, Known

_DEFAULT = Settings()
_PASSES = 3  # over what an optimiser keeps, where no noise hides what is left to find


class Inference(NamedTuple):
    """What the attack believes.

    Attributes:
      index: `[N]` int32 most probable candidate, -1 where that is not a number; zeros
        for a continuous attribute.
      probability: `[N, K]` posterior of the candidates; `[N, 0]` if continuous.
      value: `[N, W]` posterior mean in the encoding of the candidates.
      scale: [] the `eta K` that was used or found; where the rate changes, of the first
        round.
      misfit: [] mean squared whitened residual over all rounds, in units of what noise
        alone would leave, over `kept.ALIKE` where Adam is kept; values far above 1 say that
        the simulation is wrong.
      simulated: [] share of the rounds that were simulated as asked.
      pace: `[2]` how far messages moved along what was simulated, 1 if as far, and the
        standard error of that; NaN where values were searched for.
    """

    index: jax.Array
    probability: jax.Array
    value: jax.Array
    scale: jax.Array
    misfit: jax.Array
    simulated: jax.Array
    pace: jax.Array


@precision.full
def trajectory_matching(
    key: Key,
    loss_fn: losses.LossFn,
    exchange: Exchange,
    known: Known,
    candidates: jax.Array,
    *,
    scale: jax.Array | float,
    continuous: bool = False,
    settings: Settings = _DEFAULT,
    client: Imagined = PLAIN,
    facts: MessageFacts | None = None,
    table: jax.Array | None = None,
    which: Array | None = None,
) -> Inference:
    """Infers a binary, categorical or continuous attribute of ONE client's rows.

    Args:
      key: consumed.
      loss_fn: the client's loss of one example.
      exchange: its messages `[R, ...]`, oldest first. Two give the noise variances
        only, a single one none: there all coordinates are alike.
      known: its public columns and targets.
      candidates: `[K, W]` encoded values; if continuous `[2, 1]`, the range. With one
        there is nothing to search for: `misfit` is that of rows with this value.
      scale: [] `eta K`, its learning rate times its steps in a round
        (`federation.scales`); where the rate changes, of the first round.
      continuous: whether the attribute is a number.
      settings: how hard to look.
      client: its rule, and what its defense does.
      facts: of its messages; None where it neither clips nor adds noise, at one rate.
      table: `[M, 3]` of `merging.table`, sizes of the simulated steps, or of
        `quotients.table`; None for equal ones, and for Adam's of expectations.
      which: numbers of the messages that are met; None for all.

    Returns:
      An `Inference`; rows outside `known.mask` carry meaningless values.
    """
    exchange, known = jax.tree.map(jnp.asarray, (exchange, known))
    known, candidates = without_padding(known), jnp.asarray(candidates)
    if continuous:
        candidates = relaxation.points(candidates)
    attribute = relaxation.categorical(loss_fn, known, candidates, ordered=continuous)
    seen = imagined.seen(exchange)
    facts = facts or message_facts.none(len(seen.sent))
    facts = MessageFacts(*map(jnp.asarray, facts))
    logits = attribute.start(seen.unravel(seen.returned[-1]))
    asked = client, loss_fn, known, attribute
    met, told = seen, facts
    if which is not None:
        told = MessageFacts(*(leaf[which] for leaf in facts))
        met = seen._replace(sent=seen.sent[which], returned=seen.returned[which])

    def search(memory: kept.Memory | None = None) -> Inference:
        problem, rough = _problems(
            *asked, met, told, jnp.asarray(scale, jnp.float32), settings, table, memory
        )
        return solve(key, problem, logits[None], candidates, rough)

    if not client.practice.kept:
        found = search()
        return numbers(found) if continuous else found
    steps = settings.path_steps
    sizes = jnp.asarray(scale / steps * facts.rate)

    def again(values, _):
        memory = imagined.memory(*asked, seen, facts, sizes, steps, values)
        found = search(memory if which is None else memory.of(which))
        return found.probability, found

    settled = len(candidates) == 1  # there is nothing else to believe
    passes = 1 if client.draws or settled else _PASSES
    _, every = lax.scan(again, attribute.relax(logits), length=passes)
    found = jax.tree.map(lambda leaf: leaf[-1], every)
    if client.batch_size and client.practice.optimiser != "sgd":
        found = found._replace(misfit=found.misfit / kept.ALIKE)
    return numbers(found) if continuous else found


def _problems(
    client, loss_fn, known, attribute, seen, facts, scale, settings, table, memory
) -> tuple[Problem, Problem | None]:
    """What is searched, and before it to first order, if at all."""
    asked = client, loss_fn, known, attribute, seen, facts
    simulator, steady = imagined.simulator(*asked, settings, table, memory)
    # Traced once, however many stages call them.
    simulator = simulator._replace(
        end=jax.jit(simulator.end), back=jax.jit(simulator.back)
    )
    problem = Problem(
        seen.returned,
        seen.returned - seen.sent,
        simulator,
        attribute.relax,
        scale,
        settings,
        messages.partial(client.share, seen.sent, seen.returned),
        steady,
        facts.noise + rounding.least_noise(client, seen, facts, settings),
        rounding.bound(client, seen, settings),
        jnp.all(facts.path),
    )
    if not imagined.begins_roughly(client, settings):
        return problem, None
    eased = matching.eased(settings)
    chord, _ = imagined.simulator(*asked, eased)
    return problem, problem._replace(simulator=chord, steady=None, settings=eased)


def numbers(found: Inference) -> Inference:
    """The same of a number, whose candidates are nobody's business."""
    nothing = found.probability[..., :0]
    return found._replace(index=jnp.zeros_like(found.index), probability=nothing)


@precision.full
def solve(
    key: Key,
    problem: Problem,
    starts: jax.Array,
    candidates: jax.Array,
    rough: Problem | None = None,
) -> Inference:
    """Searches from each of these logits, and says how sure of each row it is.

    The search with the least misfit counts.

    Args:
      key: consumed.
      problem: whose `relax` gives `[..., K]` weights.
      starts: `[H, ...]` logits where searches begin, each of which may be a prior of the
        posterior.
      candidates: `[K, W]`, of which one is not searched for.
      rough: the same to first order, whose search comes before; None for none.

    Returns:
      An `Inference`, its leaves with the leading axes of the values.
    """

    def searched(logits):
        if problem.rounding is not None:
            own, given = jax.random.fold_in(key, 2), logits
            logits = lax.cond(
                problem.path,
                lambda: exact.start(own, problem, given),
                lambda: given,
            )
        start = Point(logits, jnp.zeros(()))
        if rough is not None:
            begun, easier, own = start, rough, jax.random.fold_in(key, 3)
            start = lax.cond(
                problem.path,
                lambda: matching.search(own, easier, begun)[0],
                lambda: begun,
            )
        return matching.search(jax.random.fold_in(key, 0), problem, start)

    settled = len(candidates) == 1
    point, left = (
        matching.still(problem, starts[0]) if settled else _least(searched, starts)
    )
    misfit = misfits.misfit(left.noise, left.residuals)
    simulated = jnp.mean(left.steady.astype(jnp.float32))
    if settled and problem.rounding is not None:
        shown = misfits.of_changes(left.residuals, problem.changed, problem.rounding)
    else:
        shown = misfits.reported(misfit, left.noise, left.residuals, problem.changed)
    values, scale = problem.relax(point.logits), matching.scale_of(problem, point)
    weights, pace = values, jnp.full(2, jnp.nan)
    if settled:
        pace = jnp.stack(misfits.pace(left.noise, left.residuals, problem.changed))
    else:
        own = jax.random.fold_in(key, 1)
        weights = posterior(own, problem, starts, point, left, misfit)
    sound = jnp.isfinite(weights).all(axis=-1)
    index = jnp.where(sound, jnp.argmax(weights, axis=-1), -1).astype(jnp.int32)
    value = weights @ candidates
    return Inference(index, weights, value, scale, shown, simulated, pace)


def _least(searched: Callable, starts: jax.Array):
    """What a search found from the start that ends with the least misfit."""
    if len(starts) == 1:
        return searched(starts[0])
    every = lax.map(searched, starts)
    misfit = jax.vmap(lambda left: misfits.misfit(left.noise, left.residuals))(every[1])
    best = jnp.argmin(jnp.nan_to_num(misfit, nan=jnp.inf))
    return jax.tree.map(lambda leaf: leaf[best], every)

"""Trajectory matching where only sums of clients' messages are seen.

Each client of a sum is simulated by itself, and the weighted mean of what they return
is compared with the sum. With changing participants every sum is one of other clients:
only those who are in it are simulated. `associations` says where the search begins.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from fljax import losses, precision
from fljax.attacks.attribute import without_padding
from fljax.attacks.trajectory import (
    associations,
    attack,
    imagined,
    matching,
    relaxation,
)
from fljax.attacks.trajectory.associations import Members
from fljax.attacks.trajectory.attack import Inference
from fljax.attacks.trajectory.imagined import Imagined
from fljax.attacks.trajectory.matching import Problem, Settings
from fljax.attacks.trajectory.message_facts import MessageFacts
from fljax.attacks.trajectory.simulation import Simulator
from fljax.types import Exchange, Key, Known


class Seen(NamedTuple):
    """Sums `R` of clients' messages.

    Attributes:
      exchange: leaves `[R, ...]`, the weighted mean of the members' messages.
      member: `[R, S]` which clients, `0 .. M - 1`.
      share: `[R, S]` their weights, 0 for nobody.
      facts: of them, as one client's attack takes it; `noise` is that of a sum.
    """

    exchange: Exchange
    member: jax.Array
    share: jax.Array
    facts: MessageFacts


@precision.full
def trajectory_matching(
    key: Key,
    loss_fn: losses.LossFn,
    seen: Seen,
    known: Known,
    candidates: jax.Array,
    *,
    scales: jax.Array,
    table: jax.Array | None = None,
    continuous: bool,
    settings: Settings,
    client: Imagined,
) -> Inference:
    """Infers an attribute of the rows of ALL clients `M` of some sums.

    Args:
      key, loss_fn, candidates, continuous, settings, client: as those of one client's
        attack.
      seen: the sums, oldest first.
      known: public columns and targets, leaves `[M, n, ...]`.
      scales: `[M]` learning rate times steps in a round, of each client.
      table: `[M, steps, 3]` of the clients' steps, as `rules.of` takes it.

    Returns:
      An `Inference` with leaves `[M, ...]`; misfit and simulated share are of their sums.
    """
    seen, known = jax.tree.map(jnp.asarray, (seen, known))
    candidates, flat = jnp.asarray(candidates), imagined.seen(seen.exchange)
    if continuous:
        candidates = relaxation.points(candidates)

    def of_client(known, settings=settings, table=None):
        known = without_padding(known)
        attribute = relaxation.categorical(
            loss_fn, known, candidates, ordered=continuous
        )
        return attribute, imagined.simulator(
            client,
            loss_fn,
            known,
            attribute,
            seen=flat,
            facts=seen.facts,
            settings=settings,
            table=table,
        )

    def summed(settings):
        return added(
            lambda known, table=None: of_client(known, settings, table)[1][0],
            seen,
            known,
            scales,
            table,
        )

    # How logits become values, and what is steady, depends on no row.
    first, (_, steady) = of_client(jax.tree.map(lambda leaf: leaf[0], known))
    simulator, apart = summed(settings)
    problem = Problem(
        flat.returned,
        flat.returned - flat.sent,
        simulator,
        jax.vmap(first.relax),
        jnp.ones(()),
        settings,
        known=seen.facts.noise,
        steady=steady and (lambda stored: jax.vmap(steady)(stored[1]).all()),
        path=jnp.all(seen.facts.path),
    )
    last = flat.unravel(flat.returned[-1])
    begun = jax.vmap(lambda known: of_client(known)[0].start(last))(known)
    logits = begun
    if len(candidates) > 1:
        size = seen.member.shape[1]
        ways = associations.ways(len(candidates), continuous)
        logits = associations.start(apart, problem, known, begun, size, ways)
    rough = None
    if imagined.begins_roughly(client, settings):
        eased = matching.eased(settings)
        rough = problem._replace(
            simulator=summed(eased)[0], steady=None, settings=eased
        )
    starts = begun[None] if logits is begun else jnp.stack([begun, logits])
    found = attack.solve(key, problem, starts, candidates, rough)
    found = attack.numbers(found) if continuous else found
    shape = scales.shape
    return found._replace(
        scale=found.scale * scales,
        misfit=jnp.broadcast_to(found.misfit, shape),
        simulated=jnp.broadcast_to(found.simulated, shape),
        pace=jnp.broadcast_to(found.pace, (*shape, 2)),
    )


def added(
    simulate: Callable[..., Simulator],
    seen: Seen,
    known: Known,
    scales: jax.Array,
    table: jax.Array | None = None,
) -> tuple[Simulator, Members]:
    """What the members of a round's sum return on average, and what each adds to that.

    Args:
      simulate: the rows of a client, and its `table`, if any -> `Simulator` of its rounds.
      seen: who is in which sum.
      known: leaves `[M, n, ...]`.
      scales: `[M]`.
      table: `[M, ...]`, or None.
    """

    seen = jax.tree.map(jnp.asarray, seen)

    def members(round_, values):
        who = seen.member[round_]
        own = (known,) if table is None else (known, table)
        mine = jax.tree.map(lambda leaf: leaf[who], (own, values, scales))
        return who, seen.share[round_], mine

    def ends(round_, values, scale):
        who, share, (rows, own, sizes) = members(round_, values)

        def one(member):
            rows, own, size = member
            return simulate(*rows).end(round_, own, scale * size)

        # One after the other: side by side, each would read a kernel of its own, and
        # compilers are many times slower at that.
        return who, share, *lax.map(one, (rows, own, sizes))

    def end(round_, values, scale):
        _, share, predicted, stored = ends(round_, values, scale)
        return share @ predicted, (round_, stored)

    def back(stored, cotangent, values, scale):
        round_, paths = stored
        who, share, (rows, own, sizes) = members(round_, values)

        def one(member):
            rows, path, own, size, weight = member
            back_ = simulate(*rows).back
            by_values, by_scale = back_(path, weight * cotangent, own, scale * size)
            return by_values, by_scale * size

        by_values, by_scale = lax.map(one, (rows, paths, own, sizes, share))
        return jnp.zeros_like(values).at[who].add(by_values), by_scale.sum()

    def apart(round_, values):
        who, share, predicted, _ = ends(round_, values, 1.0)
        return who, share[:, None] * predicted

    return Simulator(end, back), apart

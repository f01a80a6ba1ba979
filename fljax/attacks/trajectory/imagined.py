"""The client that is simulated: its rule, and what its defense does to its training.

| defense or algorithm            | what is simulated                                    |
|---------------------------------|------------------------------------------------------|
| `dp_sgd`                        | mean of gradients clipped to a total norm            |
| `fed_cdp`                       | ... layer by layer                                   |
| `median`                        | ... to the median of the simulated norms             |
| `fed_sdp` at the client         | the simulated update is clipped layer by layer       |
| `norm_clipping`                 | ... over all layers                                  |
| `value_clipping`                | ... number by number                                 |
| `pruning`, `dssgd`              | what was sent; of the rest, that it was no larger    |
| noise on steps or messages      | nothing: it counts as noise, of known size (`added`) |
| FedProx, momentum, weight decay, Adam | the client's own steps (`rules`)               |
| an optimiser that is kept       | what it remembers of earlier rounds (`kept`)         |
| dropout                         | the mean loss over what is dropped (`fljax.dropout`) |
| a learning rate by rounds       | the rate of each round                               |

A defense of one's own is simulated as its `Definition` says (`fljax.defenses.effects`).
Not simulated: one that says nothing (`specs.without_effects`), a learning rate that changes
within a round, and where noise moves a path (its mean is simulated with the noise left
out). Messages that hold no noise at all are solved for (`exact`).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from fljax import losses
from fljax.attacks.trajectory import (
    fallbacks,
    fields,
    kept,
    messages,
    rules,
    simulation,
)
from fljax.attacks.trajectory.matching import Settings
from fljax.attacks.trajectory.message_facts import MessageFacts
from fljax.attacks.trajectory.relaxation import Soft
from fljax.attacks.trajectory.rules import Practice
from fljax.attacks.trajectory.simulation import Field, Simulator
from fljax.defenses.specs import Spec
from fljax.types import Exchange, Known, Params, PyTree


class Imagined(NamedTuple):
    """What a client does; static.

    Attributes:
      practice: its rule.
      batch_size: rows of a batch, 0 for all.
      drop_last: whether rows behind the last full batch of an epoch are left out.
      examples: how it clips gradients of examples, empty if it does not.
      messages: how it clips its update, empty if it does not.
      cuts: whether it then cuts off each number of it.
      share: of its changes that it sends, the largest.
      precision: of a message whose only noise is rounding, the spacing of numbers at 1;
        0 where anything is drawn.
      half: likewise of the models it returns, where they are in half precision; else 0.
      scheduled: whether its learning rate changes over rounds.
      returns: whether its messages are of the model that it has trained.
      noisy: whether a defense adds noise to its steps, or dropout without batches.
    """

    practice: Practice = Practice()
    batch_size: int = 0
    drop_last: bool = False
    examples: str = ""
    messages: str = ""
    cuts: bool = False
    share: float = 1.0
    precision: float = 0.0
    half: float = 0.0
    scheduled: bool = False
    returns: bool = True
    noisy: bool = False

    @property
    def draws(self) -> bool:
        """Whether its steps are of batches, or noisy."""
        return self.batch_size > 0 or self.noisy


PLAIN = Imagined()


class Seen(NamedTuple):
    """A client's messages, flat: models `[R, P]`."""

    sent: jax.Array
    returned: jax.Array
    unravel: Callable[[jax.Array], Params]


def seen(exchange: Exchange) -> Seen:
    """Flat models of messages, leaves `[R, ...]`."""
    flatten = jax.vmap(lambda tree: ravel_pytree(tree)[0])
    unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], exchange.params))[1]
    sent = flatten(exchange.params)
    return Seen(sent, sent - flatten(exchange.delta), unravel)


def defended(client: Imagined, spec: Spec) -> Imagined:
    """The same client under a defense, of what its definition says that it does."""
    for part in spec.parts:
        does = part.effects
        if does is None or does.arrival:
            continue
        client = client._replace(
            examples=does.examples or client.examples,
            messages=does.messages or client.messages,
            cuts=client.cuts or does.limit is not None,
            share=client.share if does.share == 1 else does.share,
            returns=client.returns and not does.changes_messages,
            noisy=client.noisy or does.noise in ("sums", "steps"),
        )
    return client


def begins_roughly(client: Imagined, settings: Settings) -> bool:
    """Whether a search to first order is of use before: of plain SGD at a known rate."""
    known = not settings.first_order and not settings.estimate_scale
    fixed = client.precision > 0  # then its messages are solved for
    plain = client.practice.merges and not client.practice.proximal
    return bool(settings.rough_iterations) and known and plain and not fixed


def simulator(
    client: Imagined, loss_fn: losses.LossFn, known: Known, attribute: Soft,
    seen: Seen, facts: MessageFacts, settings: Settings, table: jax.Array | None = None,
    memory: kept.Memory | None = None,
) -> tuple[Simulator, Callable | None]:  # fmt: skip
    """Rounds of the client, and whether one was simulated as asked (`Problem`).

    Args:
      client: what it does.
      loss_fn: of one example.
      known: of its rows.
      attribute: soft values of them.
      seen: its messages.
      facts: of them.
      settings: of the search.
      table: `[M, 3]` of the steps, as `rules.of` takes it.
      memory: of its optimiser; None where it begins anew.

    Raises:
      ValueError: they are not as many as `settings` asks for.
    """
    sent, returned, unravel = seen
    ends = sent, returned, facts.path
    if table is not None and len(table) != settings.path_steps:
        raise ValueError(
            f"table: expected {settings.path_steps} steps, got {len(table)}"
        )

    def of_field(make: Callable[[Field], Simulator]) -> Simulator:
        """A simulator with the field of each round, then what is done to messages."""
        if client.examples in ("total", "per_layer"):
            found = simulation.by_round(
                lambda clip: make(
                    _field(client, loss_fn, known, attribute, clip, unravel)
                ),
                facts.clip,
            )
        else:
            found = make(
                _field(client, loss_fn, known, attribute, facts.clip[0], unravel)
            )
        if client.scheduled:
            found = simulation.at_rates(found, facts.rate)
        if client.messages:
            how = messages.clipped(client.messages, facts.message_clip, unravel)
            found = messages.encoded(found, sent, how)
        if client.cuts:
            found = messages.encoded(found, sent, messages.cut(facts.limit))
        return found

    chord = of_field(lambda field: simulation.chords(field, sent, returned))
    if settings.first_order:
        return chord, None
    variance = _variance(client, loss_fn, known, attribute, unravel)

    def path(steps: int, table: jax.Array | None = None) -> Simulator:
        rule = rules.of(client.practice, variance, table)

        def make(field: Field) -> Simulator:
            begun = memory and kept.beginning(field, rule, memory)
            return simulation.paths(field, rule, sent, steps, begun)

        return of_field(make)

    short, steps = settings.shorter_steps, settings.path_steps
    if short <= steps:
        return fallbacks.steadied(path(steps, table), chord, *ends)
    shorter = fallbacks.steadied(path(short), chord, *ends)
    other, held = fallbacks.seldom(*shorter)
    both, steady = fallbacks.steadied(path(steps, table), other, *ends)
    return both, lambda stored: steady(stored) | held(stored.other)


def memory(
    client: Imagined, loss_fn: losses.LossFn, known: Known, attribute: Soft,
    seen: Seen, facts: MessageFacts, sizes: jax.Array, steps: int, values: PyTree,
) -> kept.Memory:  # fmt: skip
    """Of an optimiser that is kept, by all of a client's messages.

    Args:
      client, loss_fn, known, attribute, seen, facts: as `simulator` takes them.
      sizes: `[R]` learning rates.
      steps: K, of a round.
      values: of its rows, as believed.
    """
    asked = client, loss_fn, known, attribute
    rule = rules.of(client.practice, _variance(*asked, seen.unravel))
    rows = jnp.sum(known.mask)
    noise = jnp.eye(steps)  # of a defense, which hides that of batches
    if not client.noisy:
        noise = kept.of_steps(rows, client.batch_size, steps, client.drop_last)
    gains = kept.gains(rule.keeping.fades[0], noise, len(sizes))
    # Without noise Adam's root depends on what is believed as its moment does.
    corrects = client.draws or client.practice.momentum
    gains = gains * bool(client.returns and corrects)
    clips = jnp.asarray(facts.clip)
    path = kept.Path(seen.sent, seen.returned, sizes, clips, gains, steps)

    def field_of(clip):
        return _field(*asked, clip, seen.unravel)

    return kept.memory(field_of, rule, path, values)


def _field(client, loss_fn, known, attribute, clip, unravel) -> Field:
    if client.examples:
        how = client.examples
        return fields.clipped(loss_fn, known, attribute, how, clip, unravel)
    return simulation.of_loss(
        lambda flat, values: attribute.mean_loss(unravel(flat), values)
    )


def _variance(client, loss_fn, known, attribute, unravel):
    """Of a step's mean gradient, for Adam; None where nothing is drawn."""
    if client.practice.optimiser == "sgd":
        return None
    return fields.of_batch(loss_fn, known, attribute, client.batch_size, unravel)

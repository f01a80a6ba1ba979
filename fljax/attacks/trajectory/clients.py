"""`trajectory` and `linear_inversion`: trajectory matching, and its first order.

Where only sums of clients' messages are seen, all clients of a sum are simulated.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax.attacks import streams
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.each_client import (
    Client,
    Task,
    in_order,
    over_clients,
    over_items,
    training_task,
)
from fljax.attacks.estimates import Estimates, Prediction
from fljax.attacks.groups import Group, over_groups
from fljax.attacks.needs import Needs, from_the_start
from fljax.attacks.spec import AttackSpec
from fljax.attacks.trajectory import (
    added,
    effort,
    imagined,
    matching,
    merging,
    message_facts,
    quotients,
    rounding,
    rules,
    sums,
)
from fljax.attacks.trajectory import attack as one_client
from fljax.attacks.trajectory.attack import Inference
from fljax.attacks.trajectory.effort import Settings
from fljax.attacks.trajectory.imagined import Imagined
from fljax.attacks.trajectory.message_facts import MessageFacts
from fljax.defenses import specs
from fljax.transcript import views
from fljax.types import Array

_SHORTER = 6  # times the steps where they are too long


class _Static(NamedTuple):
    messages: int | None
    search: matching.Settings
    client: Imagined


def infer(
    view: AdversaryView, settings: Settings, *, first_order: bool = False
) -> Inference:
    """What the attack believes of every client.

    Args:
      view: what the adversary has.
      settings: how hard to look.
      first_order: linear inversion.

    Returns:
      Leaves `[C, ...]`; zeros for a client without a message.
    """
    training = view.training
    steps = training.local_steps(view.sizes)
    scales = np.asarray((training.learning_rate or 0.0) * steps, np.float32)
    every, whole = np.arange(len(view.clients)), training.takes_all(view.sizes)
    in_sums = view.transcript is not None and view.transcript.member is not None
    if in_sums or whole.all() or not whole.any():
        return _alike(view, settings, first_order, scales)
    # Who takes all rows in a step sends no noise, and is simulated step by step.
    parts = every[whole], every[~whole]
    found = [_alike(view.of(p), settings, first_order, scales[p]) for p in parts]
    return in_order(found, parts)


def _alike(
    view: AdversaryView, settings: Settings, first_order: bool, scales: np.ndarray
) -> Inference:
    """Of clients who all take steps on all of their rows, or none of them."""
    training, steps = view.training, view.training.local_steps(view.sizes)
    client, facts = _imagined(view, first_order)
    practice = client.practice
    assert view.messages is not None
    settings = effort.for_a_share(settings, client.share, view.messages.count)
    search, table = settings.search._replace(first_order=False), None
    if practice.merges:
        own = int(steps.max())
        most = effort.simulated(training, steps, settings.epoch_steps)
        if (steps != most).any():
            table = np.stack([merging.table(int(each), most) for each in steps])
        steps = np.full_like(steps, most)
        search = search._replace(shorter_steps=min(own, _SHORTER * most))
    elif (
        practice.optimiser != "sgd"
        and (client.batch_size or training.dropout)
        and not practice.kept
    ):
        most, batches = int(steps.max()), training.batches(view.sizes)
        if not client.batch_size:  # steps whose noise no epoch takes back
            batches = np.full_like(batches, quotients.MOST)
        table = np.stack([quotients.table(most, int(each)) for each in batches])
    if view.transcript is not None and view.transcript.member is not None:
        chosen = search._replace(path_steps=int(steps.max()), shorter_steps=0)
        static = training_task(view, _Static(settings.messages, chosen, client))
        fill = settings.messages is not None
        return over_groups(_of_group, static, view, scales, facts, table, fill=fill)
    found, order = [], []
    for count in np.unique(steps):  # the steps of a path are static
        group = np.flatnonzero(steps == count)
        chosen = search._replace(path_steps=int(count))
        static = training_task(view, _Static(settings.messages, chosen, client))
        of_steps = None if table is None else table[:, :count]
        more = scales, facts, of_steps
        more = jax.tree.map(lambda leaf, own=group: leaf[own], more)
        if settings.messages is None:
            found.append(over_clients(_one, static, view.of(group), *more))
        else:
            found.append(over_items(_one, static, view, group, *more))
        order.append(group)
    return in_order(found, order)


def _imagined(
    view: AdversaryView, first_order: bool = False
) -> tuple[Imagined, MessageFacts]:
    """The client that is simulated, and what is known of its messages, leaves `[C, Q]`.

    Where only sums are seen, `[C, R]` of all rounds of the transcript.
    """
    training, seen, messages = view.training, view.transcript, view.messages
    assert seen is not None and messages is not None
    practice = rules.practice(training)
    full = training.takes_all(view.sizes).all()
    batch_size = 0 if full else training.batch_size or 0
    drawn = bool(full and training.dropout)
    client = Imagined(practice, batch_size, training.drop_last, noisy=drawn)
    spec = view.defense or specs.NONE
    known = not practice.kept or from_the_start(seen.round)  # state and all
    noiseless = not training.sends_noise(view.sizes).any()
    if noiseless and not spec and known:
        travels = jax.tree.leaves(seen.delta)[0].dtype
        half = 0.0 if seen.member is not None else rounding.of_models(seen)
        client = client._replace(precision=float(jnp.finfo(travels).eps), half=half)
    rounds = np.asarray(seen.round)
    client = imagined.defended(client, spec)
    number, layers = view.num_rounds, len(jax.tree.leaves(seen.params))
    sums = seen.member is not None
    if sums:  # which changes of a client are its largest nobody sees in a sum
        client = client._replace(share=1.0)
    own = np.broadcast_to(rounds, (len(view.clients), len(rounds)))
    own = own if sums else rounds[messages.row]
    clips = message_facts.clips(spec, own, number, layers)
    noise = added.variance(spec, training, view.sizes, own, number)
    client = client._replace(scheduled=bool(training.schedule))
    rate = training.factors(own).astype(np.float32)
    whole = (
        training.local_steps(view.sizes) == 1
    )  # a path of one step is of first order
    whole = np.broadcast_to(whole.all(), whole.shape) if sums else whole
    path = np.broadcast_to(whole[:, None] | (not first_order), rate.shape)  # traced
    clip, message_clip, limit = np.moveaxis(clips, -1, 0)
    return client, MessageFacts(clip, message_clip, limit, noise, rate, path)


def run(view: AdversaryView, settings: Settings) -> Estimates:
    """Trajectory matching; `details["inference"]` is what it believes.

    `details["probability"]` `[C, n, K]` is the posterior of a category. The diagnostic
    `simulated` `[C]` is there where some rounds could not be simulated: the share of
    the others.
    """
    return {"trajectory": _prediction(view, settings, first_order=False)}


def run_first_order(view: AdversaryView, settings: Settings) -> Estimates:
    """Linear inversion; details as those of `run`."""
    return {"linear_inversion": _prediction(view, settings, first_order=True)}


def _prediction(view: AdversaryView, settings: Settings, *, first_order: bool):
    found = infer(view, settings, first_order=first_order)
    value = found.value[..., 0] if view.continuous else found.index
    details: dict[str, Any] = {"inference": found}
    if not view.continuous:
        details["probability"] = found.probability
    diagnostics = {"misfit": found.misfit}
    if np.min(found.simulated) < 1:
        diagnostics["simulated"] = found.simulated
    return Prediction(value, diagnostics, details)


def _one(
    static: Task,
    client: Client,
    scale: jax.Array,
    facts: MessageFacts,
    table: jax.Array | None = None,
) -> Inference:
    settings = static.settings
    exchange, count = client.exchange, len(client.places.row)
    facts = jax.tree.map(lambda leaf: leaf[:count], facts)
    which = None
    if settings.messages is not None:
        which = _spread(client.places, settings.messages)
        if not settings.client.practice.kept:  # others are of no use then
            exchange, facts = jax.tree.map(lambda leaf: leaf[which], (exchange, facts))
            which = None
    return views.if_messages(
        client.places,
        lambda: one_client.trajectory_matching(
            streams.key(client.seed, streams.TRAJECTORY, client.id),
            static.loss_fn,
            exchange,
            client.known,
            client.candidates,
            scale=scale,
            continuous=static.continuous,
            settings=settings.search,
            client=settings.client,
            facts=facts,
            table=table,
            which=which,
        ),
    )


def _of_group(
    static: Task,
    group: Group,
    scales: jax.Array,
    facts: MessageFacts,
    table: jax.Array | None = None,
) -> Inference:
    settings = static.settings
    facts = _of_sums(facts, group)
    seen = sums.Seen(group.exchange, group.member, group.share, facts)
    if settings.messages is not None:
        which = _spread(group.places, settings.messages)
        seen = jax.tree.map(lambda leaf: leaf[which], seen)
    return sums.trajectory_matching(
        streams.key(group.seed, streams.TRAJECTORY, group.id),
        static.loss_fn,
        seen,
        group.known,
        group.candidates,
        scales=scales,
        table=table,
        continuous=static.continuous,
        settings=settings.search,
        client=settings.client,
    )


def _of_sums(facts: MessageFacts, group: Group) -> MessageFacts:
    """What is known of a group's sums `[Q]`, by that of its clients in all rounds `[M, R]`.

    All but the noise depends on the round only.
    """
    own = jax.tree.map(lambda leaf: leaf[:, group.places.row], facts)
    each = jnp.take_along_axis(own.noise.T, group.member, axis=1)
    noise = jnp.sum(jnp.square(group.share) * each, axis=1)
    return jax.tree.map(lambda leaf: leaf[0], own)._replace(noise=noise)


def _spread(places: views.ClientView, number: int) -> Array:
    """Numbers of so many messages, evenly spread over the client's own or a group's."""
    own = places._replace(row=jnp.arange(places.row.shape[0]))
    return views.spread(own, number).row


_SEEN: tuple[views.View, ...] = ("messages", "sum", "models")
NEEDS = Needs(
    views=_SEEN, members=True, training=True, optimisers=rules.NAMES, plain=False,
    schedules=True, keeps=True,
)  # fmt: skip
SPEC = AttackSpec("trajectory", NEEDS, run, Settings())
_SGD = Needs(
    views=_SEEN, members=True, training=True, optimisers=("sgd",), schedules=True,
    algorithms_not=("fed_prox",),
)  # fmt: skip
FIRST_ORDER = AttackSpec("linear_inversion", _SGD, run_first_order, Settings())

"""One attack on one client becomes the same attack on all, compiled once.

The attack is a function of a module, `(static, client, *more) -> result`, and what it
needs to be told is hashable, so that later calls (other seeds, say) find the program.
"""

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from fljax import parallel, precision
from fljax.attacks import streams
from fljax.attacks.adversary import AdversaryView
from fljax.transcript import views
from fljax.types import Array, Exchange, Known, PyTree, Transcript


class Client(NamedTuple):
    """What an adversary has of ONE client; traced.

    Attributes:
      seed: [] of the attack's streams.
      id: [] its id.
      exchange: its messages, leaves `[Q, ...]`; the last one fills up.
      places: where they lie in the transcript, and how many there are.
      known: public columns and targets of its rows `[n, ...]`.
      candidates: `[K, W]`.
    """

    seed: jax.Array
    id: jax.Array
    exchange: Exchange
    places: views.ClientView
    known: Known
    candidates: jax.Array


class Task(NamedTuple):
    """What attacks are compiled for; all static.

    Attributes:
      loss_fn: of one example.
      apply: of the model.
      continuous: whether the attribute is a number.
      settings: of the attack; hashable.
    """

    loss_fn: Callable
    apply: Callable
    continuous: bool
    settings: Any


class Shared(NamedTuple):
    """What all clients' attacks read: of an `AdversaryView`, on the device."""

    transcript: Transcript
    known: Known
    candidates: Array
    seed: Array


def shared(view: AdversaryView) -> Shared:
    """That of a view with a transcript."""
    assert view.transcript is not None
    seen = single_precision(view.transcript._replace(member=None, share=None))
    seed = np.asarray(view.seed, np.uint32)
    return jax.device_put(Shared(seen, view.known, view.candidates, seed))


def task(view: AdversaryView, settings: Hashable = None) -> Task:
    """The static part of a view."""
    return Task(view.loss_fn, view.apply, view.continuous, settings)


def training_task(view: AdversaryView, settings: Hashable = None) -> Task:
    """The same of an attack that simulates training, whose loss is that of its steps."""
    return task(view, settings)._replace(loss_fn=view.mean_loss)


def over_clients(
    attack: Callable, static: Task, view: AdversaryView, *more: PyTree
) -> PyTree:
    """`attack(static, client, *more)` of every client; on the host, leaves `[C, ...]`.

    Clients with equally many messages are one program, in which `exchange` has exactly
    their messages. See `over_items` for one program for all.

    Args:
      attack: function of a module.
      static: from `task`.
      view: of all clients, each of whom has a message.
      more: leaves `[C, ...]`, what else each client's attack is told.
    """
    assert view.messages is not None
    found, order = [], []
    for count in np.unique(view.messages.count):
        group = np.flatnonzero(view.messages.count == count)
        places = views.first(view.messages, max(count, 1))
        some = view._replace(messages=places)
        rest = jax.tree.map(lambda leaf, own=group: np.asarray(leaf)[own], more)
        found.append(over_items(attack, static, some, group, *rest))
        order.append(group)
    return in_order(found, order)


def in_order(found: Sequence[PyTree], order: Sequence[np.ndarray]) -> PyTree:
    """Of all clients, from those of parts of them, by the numbers of each part."""
    back = np.argsort(np.concatenate(order))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[back], *found)


def over_items(
    attack: Callable, static: Task, view: AdversaryView, which: Array, *more: PyTree
) -> PyTree:
    """`attack(static, client, *more)` of every item; on the host, leaves `[I, ...]`.

    Args:
      attack: function of a module.
      static: from `task`.
      view: of all clients.
      which: `[I]` numbers of the clients, from 0, in any order and number.
      more: leaves `[I, ...]`, what else each item's attack is told.
    """
    assert view.messages is not None
    ids = streams.numbers(np.asarray(view.clients)[which])
    items = (np.asarray(which), ids, view.messages.of(np.asarray(which)), *more)
    return parallel.fetch(_run(attack, static, parallel.mesh(), items, shared(view)))


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
@precision.full
def _run(attack: Callable, static: Task, over: Mesh, items: PyTree, shared: Shared):
    def one(item, shared):
        number, id_, places, *rest = item
        client = Client(
            seed=shared.seed,
            id=id_,
            exchange=views.messages(shared.transcript, places),
            places=places,
            known=jax.tree.map(lambda leaf: leaf[number], shared.known),
            candidates=shared.candidates,
        )
        return attack(static, client, *rest)

    return parallel.map_items(one, items, shared, over)


def single_precision(seen: Transcript) -> Transcript:
    """The same for devices: models in float32, messages in no more than that."""
    return seen._replace(
        params=jax.tree.map(lambda leaf: _single(leaf, jnp.float32), seen.params),
        delta=jax.tree.map(_single, seen.delta),
    )


def _single(leaf: Array, dtype=None) -> Array:
    """In float32, or, of a message, no more; what overflows is no usable message."""
    if dtype is None and leaf.dtype != np.float64:
        return leaf
    if isinstance(leaf, jax.Array):
        return leaf.astype(jnp.float32)
    with np.errstate(over="ignore"):
        return np.asarray(leaf, np.float32)

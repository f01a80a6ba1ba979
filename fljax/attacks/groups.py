"""One attack on clients whose messages are only seen in sums, all of them at once.

Clients who are in a sum together make a group, and so do all who are linked by that:
with secure aggregation everybody who ever took part, with sums of few clients these few.
A group is attacked as `each_client` attacks a client.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from fljax import parallel, precision
from fljax.attacks import each_client, streams
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.each_client import Shared, Task
from fljax.transcript import views
from fljax.types import Array, Exchange, Known, PyTree


class Group(NamedTuple):
    """What an adversary has of ONE group of clients `M`; traced.

    Attributes:
      seed: [] of the attack's streams.
      id: [] smallest id of its clients.
      exchange: its sums, leaves `[Q, ...]`; the last one fills up.
      places: where they lie in the transcript, and how many there are.
      known: public columns and targets of its clients' rows `[M, n, ...]`.
      member: `[Q, S]` positions in `M` of the clients in each sum.
      share: `[Q, S]` their weights in it, 0 for nobody.
      candidates: `[K, W]`.
    """

    seed: jax.Array
    id: jax.Array
    exchange: Exchange
    places: views.ClientView
    known: Known
    member: jax.Array
    share: jax.Array
    candidates: jax.Array


class _Item(NamedTuple):
    """A group on the host, as `Group` but for what all groups share.

    Attributes:
      id, places, member, share: as there.
      client: `[M]` positions of its clients in the view, -1 where there is none.
    """

    id: Array
    places: views.ClientView
    member: Array
    share: Array
    client: Array


def over_groups(
    attack: Callable,
    static: Task,
    view: AdversaryView,
    *more: PyTree,
    fill: bool = True,
) -> PyTree:
    """`attack(static, group, *more)` of every group; on the host, leaves `[C, ...]`.

    All groups are one program: clients without rows fill up the smaller ones.

    Args:
      attack: function of a module; its leaves lead with the group's clients `[M]`.
      static: from `each_client.task`.
      view: of all clients, who are all that is in sums.
      more: leaves `[C, ...]`, what else the attack is told of each client, `[M, ...]` to it.
      fill: whether a group's last sum may be repeated, as `Group.places.count` says;
        else there is a program for each number of sums.

    Returns:
      Zeros for a client who is in no sum.
    """
    told, groups = each_client.shared(view), _groups(view)
    most = max(len(item.client) for item in groups)
    longest = max(len(item.share) for item in groups) if fill else 0
    alike: dict[int, list[_Item]] = {}
    for item in groups:
        filled = _filled(item, most, longest)
        alike.setdefault(len(filled.share), []).append(filled)
    found: list[tuple[np.ndarray, PyTree]] = []
    for items in alike.values():
        item = jax.tree.map(lambda *leaves: np.stack(leaves), *items)
        rest = jax.tree.map(lambda leaf, of=item.client: np.asarray(leaf)[of], more)
        inputs = item, rest
        run = parallel.fetch(_run(attack, static, parallel.mesh(), inputs, told))
        found.append((item.client, run))
    return _scattered(found, len(view.clients))


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
@precision.full
def _run(attack: Callable, static: Task, over: Mesh, items: PyTree, shared: Shared):
    def one(item, shared):
        each, rest = item
        known = jax.tree.map(lambda leaf: leaf[each.client], shared.known)
        group = Group(
            seed=shared.seed,
            id=each.id,
            exchange=views.messages(shared.transcript, each.places),
            places=each.places,
            known=known._replace(mask=known.mask & (each.client >= 0)[:, None]),
            member=each.member,
            share=each.share,
            candidates=shared.candidates,
        )
        return attack(static, group, *rest)

    return parallel.map_items(one, items, shared, over)


def _scattered(found: list[tuple[np.ndarray, PyTree]], count: int) -> PyTree:
    """Results `[groups, M, ...]` at the positions `[groups, M]` of their clients."""

    def joined(*leaves):
        whole = np.zeros((count, *leaves[0].shape[2:]), leaves[0].dtype)
        for (clients, _), leaf in zip(found, leaves, strict=True):
            whole[clients[clients >= 0]] = leaf[clients >= 0]
        return whole

    return jax.tree.map(joined, *(result for _, result in found))


def _filled(item: _Item, clients: int, sums: int) -> _Item:
    """With as many clients, and no fewer sums."""
    more = max(sums - len(item.share), 0)

    def longer(leaf):
        return np.pad(leaf, [(0, more)] + [(0, 0)] * (leaf.ndim - 1), mode="edge")

    row, slot, count = item.places
    return item._replace(
        places=views.ClientView(longer(row), longer(slot), count),
        member=longer(item.member),
        share=longer(item.share),
        client=np.pad(item.client, (0, clients - len(item.client)), constant_values=-1),
    )


def _groups(view: AdversaryView) -> list[_Item]:
    """Clients who are linked by sums, with those that may be used."""
    assert view.transcript is not None and view.messages is not None
    clients, (row, slot, count) = np.asarray(view.clients), view.messages
    member = np.asarray(view.transcript.member)
    share = np.asarray(view.transcript.share)
    order = np.argsort(clients)
    at = order[np.searchsorted(clients, member, sorter=order) % len(order)]
    at = np.where(member >= 0, at, -1)
    left, found = set(np.flatnonzero(count > 0).tolist()), []
    while left:
        here, mine = {min(left)}, set()
        while True:
            places = {
                (r, s) for c in here for r, s in zip(row[c], slot[c], strict=True)
            }
            if places == mine:
                break
            mine = places
            here = {c for r, s in mine for c in at[r, s].tolist() if c >= 0}
        left -= here
        group = np.array(sorted(here))
        rows, slots = np.array(sorted(mine)).T
        position = np.searchsorted(group, at[rows, slots])
        shares = np.where(at[rows, slots] >= 0, share[rows, slots], 0.0)
        places = views.ClientView(
            rows.astype(np.int32),
            slots.astype(np.int32),
            np.asarray(len(rows), np.int32),
        )
        first = streams.numbers(clients[group].min())
        found.append(
            _Item(first, places, position.astype(np.int32), shares.astype(np.float32), group)
        )  # fmt: skip
    return found

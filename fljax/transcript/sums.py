"""What is left of a transcript for whoever sees no single messages.

Each view is a function from the transcript of a server to that of its adversary, and
nothing leads back: sums of clients' messages, global models, the last one. A sum is a
message of its members together, `Transcript.member` and `Transcript.share` say whose.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from fljax.types import Params, Transcript


class Server(NamedTuple):
    """What every adversary knows of the aggregation.

    Attributes:
      clients: `[C]` ids.
      weights: `[C]` of each client in the mean, e.g. its number of rows.
      learning_rate: of the server, which takes the mean of the deltas for a gradient;
        None where it does more than a step along it.
      everybody: whether all clients take part in every round.
    """

    clients: np.ndarray
    weights: np.ndarray
    learning_rate: float | None = 1.0
    everybody: bool = True

    @property
    def tells_sums(self) -> bool:
        """Whether two models in a row tell the mean of the messages between them."""
        return self.everybody and self.learning_rate is not None


def add_up(seen: Transcript, server: Server, size: int | None = None) -> Transcript:
    """The view `sum`: secure aggregation over all participants, or groups of them.

    Args:
      seen: each client's messages, of one seed.
      server: how it weighs them.
      size: participants in a group at least, where so many take part in a round, next
        to each other in `server.clients`; None for all.

    Returns:
      A transcript of sums.
    """
    ids = np.asarray(seen.client)
    order = np.argsort(server.clients)
    at = order[np.searchsorted(server.clients, ids, sorter=order) % len(order)]
    there = (ids >= 0) & (server.clients[at] == ids)
    group, count = _groups(np.where(there, at, len(server.clients)), there, size)
    groups = np.arange(count)
    mine = there[:, None] & (group[:, None] == groups[:, None])  # [R, G, K]
    weights = np.where(mine, np.asarray(server.weights, np.float64)[at][:, None], 0.0)
    share = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-300)
    member = np.where(mine, ids[:, None], -1)
    # Those who are there first, so that as few places are kept as there may be members.
    first = np.argsort(~mine, axis=-1, kind="stable")[..., : mine.sum(axis=-1).max()]
    delta = jax.tree.map(lambda leaf: _sums(share, leaf), seen.delta)
    return Transcript(
        round=np.asarray(seen.round),
        client=np.where(mine.any(axis=-1), groups, -1).astype(np.int32),
        params=jax.tree.map(np.asarray, seen.params),
        delta=delta,
        member=np.take_along_axis(member, first, -1),
        share=np.take_along_axis(share, first, -1).astype(np.float32),
    )


def models(seen: Transcript, server: Server) -> Transcript:
    """The view `models`: sums, as far as the models that were sent tell them.

    Args:
      seen: of one seed; its messages are not read.
      server: how it makes models of messages.

    Returns:
      A transcript with a sum for every two models in a row. Its shares are NaN where
      they are not known. Without such models, that of `final`.
    """
    rounds = np.asarray(seen.round)
    before = np.flatnonzero(np.diff(rounds) == 1)
    if not len(before):
        return final(seen, server)
    rate = server.learning_rate if server.tells_sums else 1.0
    assert rate is not None

    def difference(leaf):
        leaf = np.asarray(leaf)
        wide = leaf.astype(np.float64)
        return ((wide[before] - wide[before + 1]) / rate).astype(leaf.dtype)[:, None]

    return _of_everyone(
        rounds[before],
        jax.tree.map(lambda leaf: np.asarray(leaf)[before], seen.params),
        jax.tree.map(difference, seen.params),
        server,
        known=server.tells_sums,
    )


def final(seen: Transcript, server: Server) -> Transcript:
    """The view `final`: the last model that was sent, as if everyone returned it."""
    last = jax.tree.map(lambda leaf: np.asarray(leaf)[-1:], seen.params)
    nothing = jax.tree.map(lambda leaf: np.zeros_like(leaf)[:, None], last)
    return _of_everyone(np.asarray(seen.round)[-1:], last, nothing, server, known=False)


def stacked(seen: Sequence[Transcript]) -> Transcript:
    """Transcripts of sums of several seeds as one, with as many places in each."""
    members = [each.member for each in seen if each.member is not None]
    groups, most = (max(member.shape[axis] for member in members) for axis in (1, 2))

    def padded(leaf, value, *more):
        widths = [(0, 0), (0, groups - leaf.shape[1]), *more]
        widths += [(0, 0)] * (leaf.ndim - len(widths))
        return np.pad(leaf, widths, constant_values=value)

    def alike(each):
        members = 0, most - each.member.shape[2]
        return each._replace(
            client=padded(each.client, -1),
            delta=jax.tree.map(lambda leaf: padded(leaf, 0), each.delta),
            member=padded(each.member, -1, members),
            share=padded(each.share, 0, members),
        )

    return jax.tree.map(lambda *leaves: np.stack(leaves), *map(alike, seen))


def are_known(seen: Transcript) -> bool:
    """Whether it is known who is in each sum; true where messages are clients' own."""
    return seen.share is None or not np.isnan(seen.share).any()


def _of_everyone(
    rounds: np.ndarray, params: Params, delta: Params, server: Server, *, known: bool
) -> Transcript:
    shape = (len(rounds), 1, len(server.clients))
    weights = np.asarray(server.weights, np.float64)
    share = weights / weights.sum() if known else np.full(len(weights), np.nan)
    return Transcript(
        round=rounds,
        client=np.zeros(shape[:2], np.int32),
        params=params,
        delta=delta,
        member=np.broadcast_to(np.asarray(server.clients), shape),
        share=np.broadcast_to(share, shape).astype(np.float32),
    )


def _groups(at: np.ndarray, there: np.ndarray, size: int | None):
    """Group `[R, K]` of each message, and how many groups a round has at most.

    Args:
      at: `[R, K]` place of its sender.
      there: `[R, K]` whether there is a message.
      size: of a group at least; None for one group of all.
    """
    rank = np.argsort(np.argsort(at, axis=-1), axis=-1)
    taking = there.sum(axis=-1, keepdims=True)
    count = np.maximum(taking // size, 1) if size else np.ones_like(taking)
    return rank * count // np.maximum(taking, 1), int(count.max(initial=1))


def _sums(share: np.ndarray, leaf: np.ndarray) -> np.ndarray:
    """Weighted means `[R, G, ...]` of messages `[R, K, ...]`, added up in float64."""
    leaf = np.asarray(leaf)
    kind = np.float64 if leaf.dtype == np.float64 else np.float32
    found = np.empty((*share.shape[:2], *leaf.shape[2:]), kind)
    for at, (weights, messages) in enumerate(zip(share, leaf, strict=True)):
        flat = messages.reshape(len(messages), -1).astype(np.float64)
        taken = weights.any(axis=0)  # an empty slot may hold anything
        total = weights[:, taken] @ flat[taken]
        found[at] = total.reshape(found.shape[1:])
    return found

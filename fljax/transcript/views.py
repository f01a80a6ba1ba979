"""Where a client's messages lie in a transcript: the one place where they are cut out.

An adversary sees a `View`; `sums` makes a transcript into what is left of it where
single messages are not seen. A `ClientView` says where the messages of a client, or the
sums that it is in, lie in either; `messages` takes them out. Everything here works on a
transcript with and without a leading axis over seeds, on NumPy and on traced arrays.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax.types import Array, Exchange, Params, PyTree, Transcript

View = Literal[
    "messages",  # each client's messages: models sent and returned
    "sum",  # the weighted sum of the clients' messages of a round
    "models",  # the global models only
    "final",  # the last global model only
    "active",  # messages, of clients whose models the adversary chooses
]


class TranscriptError(ValueError):
    """A transcript that cannot be used; the message names the file and the reason."""


class ClientView(NamedTuple):
    """Where clients' messages lie in a transcript, oldest first.

    Of several clients `[C, Q]`, or of one `[Q]`; with seeds `[seeds, C, Q]`.

    Attributes:
      row: `[..., Q]` recorded round; a client's last message fills up.
      slot: `[..., Q]` place within the round.
      count: `[...]` messages of the client.
    """

    row: Array
    slot: Array
    count: Array

    @property
    def has_messages(self) -> Array:
        """`[...]` bool, False for a client who sent none."""
        return self.count > 0

    def of(self, client: Array | int) -> "ClientView":
        """The view of one client, or of several, without a seeds axis; traceable."""
        return ClientView(*(leaf[client] for leaf in self))


def client_view(
    transcript: Transcript,
    clients: Sequence[int] | np.ndarray,
    usable: np.ndarray | None = None,
) -> ClientView:
    """Finds the messages of these clients, or the sums that they are in; on the host.

    Args:
      transcript: client ids `[R, K]`, or `[seeds, R, K]`.
      clients: `C` ids.
      usable: which messages may be used, like the ids; None for all.
    """
    member = transcript.member
    several = transcript.client.ndim == 3
    ids = np.asarray(transcript.client)[..., None] if member is None else member
    if several:
        marks = [None] * len(ids) if usable is None else usable
        pairs = zip(ids, marks, strict=True)
        lists = [_places(own, fits, clients) for own, fits in pairs]
    else:
        lists = [_places(ids, usable, clients)]
    count = np.array([[len(row) for row, _ in each] for each in lists])
    shape = (*count.shape, max(int(count.max(initial=0)), 1))
    row, slot = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for seed, each in enumerate(lists):
        for number, (rows, slots) in enumerate(each):
            if len(rows):
                last = np.minimum(np.arange(shape[-1]), len(rows) - 1)
                row[seed, number], slot[seed, number] = rows[last], slots[last]
    view = ClientView(row, slot, count)
    return view if several else view.of(0)


def first(view: ClientView, number: int) -> ClientView:
    """The first `number` messages of each client, of whom each has as many."""
    return ClientView(
        view.row[..., :number],
        view.slot[..., :number],
        np.minimum(view.count, number),
    )


def ends(view: ClientView) -> ClientView:
    """The first and the last message of each client, twice the same of a single one."""
    row, slot = (leaf[..., np.array([0, -1])] for leaf in view[:2])
    return ClientView(row, slot, np.minimum(view.count, 2))


def before(view: ClientView, rounds: np.ndarray, stop: int) -> ClientView:
    """The messages of the rounds before `stop`; on the host.

    Args:
      view: of all messages, `[..., C, Q]`.
      rounds: `[..., R]` numbers of the recorded rounds.
      stop: round number.
    """
    number = np.take_along_axis(rounds[..., None, :], np.asarray(view.row), axis=-1)
    index = np.arange(number.shape[-1])
    sent = index < np.asarray(view.count)[..., None]
    count = ((number < stop) & sent).sum(axis=-1)
    kept = np.minimum(index, np.maximum(count - 1, 0)[..., None])
    row, slot = (np.take_along_axis(leaf, kept, axis=-1) for leaf in view[:2])
    return ClientView(row, slot, count)


def spread(view: ClientView, number: int) -> ClientView:
    """So many of ONE client's messages, evenly from its first to its last; traceable.

    Args:
      view: `[Q]`.
      number: messages; 1 takes the last.
    """
    share = np.linspace(0, 1, number) if number > 1 else np.ones(1)
    last = jnp.maximum(view.count - 1, 0)
    chosen = jnp.round(share * last).astype(jnp.int32)
    return ClientView(
        jnp.asarray(view.row)[chosen],
        jnp.asarray(view.slot)[chosen],
        jnp.minimum(view.count, number),
    )


def messages(transcript: Transcript, view: ClientView) -> Exchange:
    """The messages of a view in the precision of the model; traceable.

    Args:
      transcript: of one seed, or with a seeds axis.
      view: `[..., Q]`, with the seeds axis that the transcript has.

    Returns:
      An `Exchange`, leaves `[..., Q, *shape]`; behind a client's last message it is
      repeated, and a client without any has those of slot 0 of the first round.
    """
    params, delta = _cut(transcript, view.row, view.slot)
    delta = jax.tree.map(lambda sent, leaf: leaf.astype(sent.dtype), params, delta)
    return Exchange(params, delta)


def exchange(transcript: Transcript, client: int) -> Exchange:
    """All messages of one client, from a transcript without a seeds axis; on the host.

    Raises:
      TranscriptError: if no recorded round has it.
    """
    view = _one_client(transcript, client)
    return messages(jax.tree.map(np.asarray, transcript), view)


def returned_model(transcript: Transcript, client: int) -> Params:
    """The last model that one client returned, of a transcript as `exchange` takes it.

    Raises:
      TranscriptError: if no recorded round has it.
    """
    view = _one_client(transcript, client)
    return last_models(jax.tree.map(np.asarray, transcript), view)[0]


def _one_client(transcript: Transcript, client: int) -> ClientView:
    view = client_view(transcript, [client]).of(0)
    if not view.has_messages:
        raise TranscriptError(f"no recorded message of client {client}")
    return view


def apart(exchange: Exchange, count: Array) -> tuple[Transcript, ClientView]:
    """Messages of clients as a transcript of their own, each of which is a round.

    Args:
      exchange: leaves `[C, Q, *shape]`, of which every client may have been sent others.
      count: `[C]` messages of each client.
    """
    clients, number = jax.tree.leaves(exchange.params)[0].shape[:2]
    params, delta = jax.tree.map(
        lambda leaf: leaf.reshape(clients * number, *leaf.shape[2:]), exchange
    )
    rounds = np.arange(clients * number, dtype=np.int32)
    ids = np.repeat(np.arange(clients, dtype=np.int32), number)[:, None]
    delta = jax.tree.map(lambda leaf: leaf[:, None], delta)
    places = rounds.reshape(clients, number)
    view = ClientView(places, np.zeros_like(places), np.asarray(count))
    return Transcript(rounds, ids, params, delta), view


def flat(transcript: Transcript, view: ClientView) -> tuple[np.ndarray, np.ndarray]:
    """Sent and delta `[..., Q, P]` in float64, in the order of leaves; on the host.

    Nothing is rounded on the way, to the precision of the model or otherwise.
    """

    def joined(tree):
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
        lead = np.shape(view.row)
        parts = [leaf.reshape(*lead, -1).astype(np.float64) for leaf in leaves]
        return np.concatenate(parts, axis=-1)

    sent, delta = _cut(jax.tree.map(np.asarray, transcript), view.row, view.slot)
    return joined(sent), joined(delta)


def last_models(transcript: Transcript, view: ClientView) -> tuple[Params, Params]:
    """Last model returned by, and last model sent to, each client `[..., *shape]`."""
    sent, delta = _cut(transcript, view.row[..., -1], view.slot[..., -1])
    returned = jax.tree.map(lambda leaf, d: leaf - d.astype(leaf.dtype), sent, delta)
    return returned, sent


def sent_models(transcript: Transcript, view: ClientView, behind: int = 0) -> Params:
    """The model sent in each client's last message, or that many before; on the host.

    Returns:
      Leaves `[..., *shape]`; where there are fewer messages, the first one's.
    """
    at = np.maximum(np.asarray(view.count) - 1 - behind, 0)[..., None]
    row, slot = (np.take_along_axis(leaf, at, axis=-1)[..., 0] for leaf in view[:2])
    return _cut(transcript, row, slot).params


def if_messages(view: ClientView, attack: Callable[[], PyTree]) -> PyTree:
    """The result of an attack on ONE client; zeros, without the work, if it sent none.

    Args:
      view: of the client.
      attack: without arguments; traceable.
    """
    attack = jax.jit(attack)  # traced once
    nothing = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(attack)
    )
    return jax.lax.cond(view.count > 0, attack, lambda: nothing)


def _places(ids, usable, clients) -> list[tuple[np.ndarray, ...]]:
    """Rounds and slots of each client's messages, of ids `[R, K, members]`."""
    fits = np.ones(ids.shape[:2], bool) if usable is None else usable
    return [np.nonzero((ids == client).any(axis=2) & fits) for client in clients]


def _cut(transcript: Transcript, row: Array, slot: Array) -> Exchange:
    """What lies there, each array in the precision that it has in the transcript."""
    at: tuple = ()
    if transcript.client.ndim == 3:
        at = (np.arange(len(row)).reshape(-1, *[1] * (row.ndim - 1)),)
    params = jax.tree.map(lambda leaf: leaf[*at, row], transcript.params)
    delta = jax.tree.map(lambda leaf: leaf[*at, row, slot], transcript.delta)
    return Exchange(params, delta)

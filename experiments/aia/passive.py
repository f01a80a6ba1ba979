"""What a passive adversary has: each client's messages, her last models, guesses.

Nothing here is given the truth; `scoring` compares.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax import losses, parallel
from fljax.attacks import attribute
from fljax.types import Exchange, Key, Known, Params, PyTree, Transcript

# Purposes of a seed's streams; 0 and 1 belong to the training.
GRADIENT, SUBSET, ORACLE, TRAJECTORY, PERMUTATION = 2, 3, 4, 5, 6

Attacker = Callable[[Params, Known, np.ndarray], np.ndarray]


class Inbox(NamedTuple):
    """Where each client's messages lie in the transcript, oldest first.

    Attributes:
      row: `[seeds, C, Q]` recorded round; a client's last message fills up.
      slot: `[seeds, C, Q]` place within the round.
      count: `[seeds, C]` messages.
    """

    row: np.ndarray
    slot: np.ndarray
    count: np.ndarray


def inbox(transcript: Transcript, num_clients: int) -> Inbox:
    """Finds every client's messages."""
    clients = np.asarray(transcript.client)  # [seeds, Q, K]
    lists = [
        [np.nonzero(one == client) for client in range(num_clients)] for one in clients
    ]
    count = np.array([[len(row) for row, _ in each] for each in lists])
    shape = (*count.shape, max(int(count.max()), 1))
    row, slot = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for seed, each in enumerate(lists):
        for client, (rows, slots) in enumerate(each):
            if len(rows):
                last = np.minimum(np.arange(shape[-1]), len(rows) - 1)
                row[seed, client], slot[seed, client] = rows[last], slots[last]
    return Inbox(row, slot, count)


def before(box: Inbox, round_: np.ndarray, first: int) -> Inbox:
    """The messages of the rounds before `first`.

    Args:
      box: of all messages.
      round_: `[seeds, Q]` numbers of the recorded rounds.
      first: round number.
    """
    number = np.take_along_axis(round_[:, None, :], box.row, axis=2)
    index = np.arange(box.row.shape[2])
    count = ((number < first) & (index < box.count[..., None])).sum(axis=2)
    kept = np.minimum(index, np.maximum(count - 1, 0)[..., None])
    row, slot = (np.take_along_axis(leaf, kept, axis=2) for leaf in box[:2])
    return Inbox(row, slot, count)


def messages(seen: Transcript, row: jax.Array, slot: jax.Array) -> Exchange:
    """One client's messages in the precision of the model; traceable.

    Args:
      seen: of one seed.
      row: `[Q]` recorded rounds.
      slot: `[Q]` her places in them.
    """
    params = jax.tree.map(lambda leaf: leaf[row], seen.params)
    delta = jax.tree.map(
        lambda sent, leaf: leaf[row, slot].astype(sent.dtype), params, seen.delta
    )
    return Exchange(params, delta)


def if_heard(count: jax.Array, attack: Callable[[], PyTree]) -> PyTree:
    """What an attack finds; for a client without a message zeros, without the work.

    Args:
      count: [] messages that the client sent.
      attack: without arguments; traceable.
    """
    nothing = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(attack)
    )
    return jax.lax.cond(count > 0, attack, lambda: nothing)


def last_models(transcript: Transcript, box: Inbox) -> tuple[Params, Params]:
    """Last model returned by, and last model sent to, each client `[seeds, C, ...]`."""
    seed = np.arange(len(box.count))[:, None]
    row, slot = box.row[..., -1], box.slot[..., -1]
    sent = sent_models(transcript, box)
    returned = jax.tree.map(
        lambda leaf, d: leaf - d[seed, row, slot].astype(leaf.dtype),
        sent,
        transcript.delta,
    )
    return returned, sent


def sent_models(transcript: Transcript, box: Inbox, behind: int = 0) -> Params:
    """The model sent in each client's last message, or that many before; as above."""
    seed = np.arange(len(box.count))[:, None]
    at = np.maximum(box.count - 1 - behind, 0)[..., None]
    row = np.take_along_axis(box.row, at, axis=2)[..., 0]
    return jax.tree.map(lambda leaf: leaf[seed, row], transcript.params)


def model_attacker(loss_fn: losses.LossFn, kind: str) -> Attacker:
    """Model-based attack with one model per client, compiled once.

    Args:
      loss_fn: loss of one example.
      kind: of the attribute.

    Returns:
      `(params [seeds, C, ...], known [seeds, C, n, ...], candidates [seeds, K, W]) ->
      [seeds, C, n]` candidate index, or encoded value for a continuous attribute.
    """

    def one(item, _):
        params, known, candidates = item
        if kind == "continuous":
            return attribute.model_based_continuous(loss_fn, params, known, candidates)
        return attribute.model_based(loss_fn, params, known, candidates).index

    over = parallel.mesh()
    run = jax.jit(lambda items: parallel.map_items(one, items, (), over))

    def attack(params, known, candidates):
        lead = known.y.shape[:2]
        values = np.broadcast_to(candidates[:, None], (*lead, *candidates.shape[1:]))
        items = jax.tree.map(_merge, (params, known, values))
        return np.asarray(run(items)).reshape(*lead, -1)

    return attack


def key(seed, purpose: int, client) -> Key:
    """Stream of one purpose for one client; 5 and 6 belong to `trajectory`."""
    stream = jax.random.fold_in(jax.random.key(seed), purpose)
    return jax.random.fold_in(stream, client)


def _merge(leaf):
    return leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:])

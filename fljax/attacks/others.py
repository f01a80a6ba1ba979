"""Other clients' messages in the place of a client's own: what they tell is no leak of it.

What an attack says of a client by its rows, how many they are, the models and the messages
of everybody else it owes to nobody's message in particular. So attacks on label
distributions, and of an audit that is asked to those on a column, are repeated with the mean of the messages of the others of a round, or of
the nearest round that has any, each as large as if the client's own steps had made it.
Clients whose number of rows is not known are taken to take as many steps as the rest;
messages that are not finite count for nobody's.
"""

import jax
import numpy as np

from fljax.attacks.adversary import AdversaryView
from fljax.transcript.views import ClientView
from fljax.types import Params, Transcript


def of_round(view: AdversaryView, row: int, slot: int | None = None) -> Params | None:
    """In the slots of a round the mean message of the others, leaves `[K, ...]`.

    Args:
      view: of an adversary who sees messages.
      row: recorded round.
      slot: the only one to compute, leaves `[1, ...]`; None for all.

    Returns:
      None where nobody else was recorded; zeros in empty slots.
    """
    seen = view.transcript
    assert seen is not None
    mine = np.asarray(seen.client)[row]
    mine = mine if slot is None else mine[slot : slot + 1]
    near = _nearest(view, mine, row) if seen.member is None else None
    if near is None:
        return None
    theirs = _usable(seen, near)
    others = _are_others(mine, theirs)
    weight = others * (_steps(view, mine)[:, None] / _steps(view, theirs))
    weight = weight / np.maximum(others.sum(axis=1, keepdims=True), 1)
    if near != row:
        factors = _factors(view)
        weight = weight * factors[row] / factors[near]

    def mean(leaf):
        each = np.asarray(leaf[near], np.float32)
        each = np.where((theirs >= 0).reshape(-1, *(1,) * (each.ndim - 1)), each, 0)
        return np.tensordot(weight.astype(np.float32), each, axes=1)

    return jax.tree.map(mean, seen.delta)


def of_messages(view: AdversaryView, places: ClientView) -> Params | None:
    """The others' in the place of some messages of a client, leaves `[Q, ...]`.

    Args:
      view: of an adversary who sees messages.
      places: of the client's messages `[Q]`.

    Returns:
      None where nobody else was recorded.
    """
    found = []
    for row, slot in zip(places.row.tolist(), places.slot.tolist(), strict=True):
        each = of_round(view, row, slot)
        if each is None:
            return None
        found.append(each)
    return jax.tree.map(lambda *rows: np.concatenate(rows), *found)


def messages(view: AdversaryView) -> Transcript | None:
    """The transcript with the mean message of the others in the place of each.

    Args:
      view: of an adversary who sees messages.

    Returns:
      None where only one client was recorded.
    """
    seen = view.transcript
    assert seen is not None
    made = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), seen.delta)
    for row in range(len(seen.round)):
        each = of_round(view, row)
        if each is None:
            return None
        for whole, one in zip(
            jax.tree.leaves(made), jax.tree.leaves(each), strict=True
        ):
            whole[row] = one
    return seen._replace(delta=made)


def _nearest(view: AdversaryView, mine: np.ndarray, row: int) -> int | None:
    """The round next to this one in which everybody `[K]` has others."""
    seen = view.transcript
    assert seen is not None
    factors, rows = _factors(view), np.arange(len(seen.round))
    for near in rows[np.argsort(np.abs(rows - row), kind="stable")].tolist():
        if near != row and not factors[near] > 0:
            continue
        some = np.any(_are_others(mine, _usable(seen, near)), axis=1)
        if np.all(some | (mine < 0)):
            return near
    return None


def _are_others(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Whether each of `theirs [J]` is a message of somebody else, `[K, J]`."""
    there = (mine[:, None] >= 0) & (theirs >= 0)
    return there & (mine[:, None] != theirs)


def _usable(seen: Transcript, row: int) -> np.ndarray:
    """Ids `[K]` of the clients of a round, -1 also for messages that are not finite."""
    ids = np.asarray(seen.client)[row]
    finite = np.ones(len(ids), bool)
    for leaf in jax.tree.leaves(seen.delta):
        each = np.asarray(leaf[row], np.float32)
        finite &= np.isfinite(each).reshape(len(ids), -1).all(axis=1)
    return np.where(finite, ids, -1)


def _factors(view: AdversaryView) -> np.ndarray:
    """Learning rate of each round over that of the training."""
    assert view.transcript is not None
    return view.training.factors(np.asarray(view.transcript.round))


def _steps(view: AdversaryView, ids: np.ndarray) -> np.ndarray:
    """Local steps `[K]` of the clients of a round, at least one."""
    own = np.maximum(view.training.local_steps(view.sizes).astype(float), 1)
    known = dict(zip(np.asarray(view.clients).tolist(), own.tolist(), strict=True))
    return np.array([known.get(each, own.mean()) for each in ids.tolist()])

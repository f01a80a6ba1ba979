"""Other clients' messages in the place of a client's own: what they tell is no leak of it.

What an attack says of a client by its rows, how many they are, the models and the messages
of everybody else it owes to nobody's message in particular. So attacks on label
distributions are repeated with the mean of the messages of the others of a round, or of
the nearest round that has any, each as large as if the client's own steps had made it.
Clients whose number of rows is not known are taken to take as many steps as the rest.
"""

import jax
import numpy as np

from fljax.attacks.adversary import AdversaryView
from fljax.transcript.views import ClientView
from fljax.types import Params, Transcript


def of_round(view: AdversaryView, row: int) -> Params | None:
    """In each slot of a round the mean message of the others, leaves `[K, ...]`.

    Args:
      view: of an adversary who sees messages.
      row: recorded round.

    Returns:
      None where nobody else was recorded; zeros in empty slots.
    """
    seen = view.transcript
    assert seen is not None
    ids = np.asarray(seen.client)
    near = _nearest(ids, row) if seen.member is None else None
    if near is None:
        return None
    steps, theirs = _steps(view, ids[row]), _steps(view, ids[near])
    factors = view.training.factors(np.asarray(seen.round))
    others = (ids[row][:, None] != ids[near]) & (ids[near] >= 0)
    others &= ids[row][:, None] >= 0
    weight = others * (steps[:, None] / theirs) * (factors[row] / factors[near])
    weight = weight / np.maximum(others.sum(axis=1, keepdims=True), 1)

    def mean(leaf):
        each = np.asarray(leaf[near], np.float32)
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
        each = of_round(view, row)
        if each is None:
            return None
        found.append(jax.tree.map(lambda leaf, at=slot: leaf[at], each))
    return jax.tree.map(lambda *rows: np.stack(rows), *found)


def messages(view: AdversaryView) -> Transcript | None:
    """The transcript with the mean message of the others in the place of each.

    Args:
      view: of an adversary who sees messages.

    Returns:
      None where only one client was recorded.
    """
    seen = view.transcript
    assert seen is not None
    each = [of_round(view, row) for row in range(len(seen.round))]
    if any(delta is None for delta in each):
        return None
    return seen._replace(delta=jax.tree.map(lambda *rows: np.stack(rows), *each))


def _nearest(ids: np.ndarray, row: int) -> int | None:
    """The round next to this one in which everybody of this one has others."""
    there = np.sort(ids[row][ids[row] >= 0])
    alone = there[0] if len(there) == 1 else -1
    has = ((ids >= 0) & (ids != alone)).any(axis=1)
    if len(there) > 1:
        return row
    rows = np.flatnonzero(has)
    return int(rows[np.abs(rows - row).argmin()]) if len(rows) else None


def _steps(view: AdversaryView, ids: np.ndarray) -> np.ndarray:
    """Local steps `[K]` of the clients of a round."""
    own = view.training.local_steps(view.sizes).astype(float)
    known = dict(zip(np.asarray(view.clients).tolist(), own.tolist(), strict=True))
    return np.array([known.get(each, own.mean()) for each in ids.tolist()])

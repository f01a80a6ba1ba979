"""What messages show of a training that is not the declared one, or cannot be imitated.

Attacks that imitate clients estimate noise from the differences of a client's messages, so
that what changes from round to round passes for noise, and hides what they tell. Some of it
shows in the messages themselves:

* in some rounds something else was recorded: in another unit, or a change as a model;
* most numbers did not move, in every round others: the largest alone were sent;
* numbers moved by one and the same size: their signs were sent;
* running statistics moved: batch norm took each batch's own in their place.

All but the last are looked for where no defense is simulated, in messages of clients who
visit ten rows or more in a round: of fewer the sizes of honest ones jump, too. At least
half of these clients have to show it.
"""

from typing import NamedTuple

import jax
import numpy as np

from fljax.attacks.adversary import AdversaryView
from fljax.auditing import normalisation
from fljax.transcript import views
from fljax.types import Transcript

_FEWEST = 8  # messages of a client, and numbers of an array
_ROWS = 10  # that are visited in a round
_SIDE = 2  # messages at least that are of one kind
_WHOLE = 0.9  # cosine of a model and a move that takes it away
_FAR = 10.0  # times as large is a message of another kind
_STILL = 0.3  # of the numbers that move in some round
_ANEW = 0.3  # of how often those that are drawn anew in each round would change
_ALIKE = 0.02  # spread of sizes, of their mean
_TINY = 1e-300
_NORM = "batch norm takes each batch's own statistics, which attacks do not imitate"
_KIND = (
    "are of two kinds, to and fro from round to round, as if of some rounds something "
    "else was recorded, in another unit or a change as a model"
)
_THINNED = (
    "leave many numbers as they were, others in every round, as if only the largest "
    "were sent"
)
_SIGNS = "move numbers by one and the same size, as if only their signs were sent"


class _Messages(NamedTuple):
    """Of one client.

    Attributes:
      returned: `[Q, P]` models.
      moved: `[Q, P]` sent minus returned.
      rate: `[Q]` learning rate of each round over that of the first.
      widths: numbers of each array, P in all.
    """

    returned: np.ndarray
    moved: np.ndarray
    rate: np.ndarray
    widths: tuple[int, ...]


def found(view: AdversaryView) -> str:
    """The first of these that messages show, in words; empty where they show none.

    Args:
      view: what attacks have.
    """
    seen, training = view.transcript, view.training
    assert seen is not None
    if normalisation.counts(seen):
        return _NORM
    if view.sees != "messages" or view.defense:
        return ""
    each = _of_clients(view, seen)
    checks = {_KIND: _alternate}
    if training.steps is None and training.epochs is not None:  # all rows in a round
        checks[_THINNED] = _are_thinned
    if training.optimiser == "sgd":
        checks[_SIGNS] = _are_signs
    for said, shows in checks.items():
        some = sum(map(shows, each))
        if some and 2 * some >= len(each):
            return f"messages of {some} of {len(view.sizes)} clients {said}"
    return ""


def _of_clients(view: AdversaryView, seen: Transcript) -> list[_Messages]:
    """Messages of each client who sent enough of enough rows."""
    messages, training = view.messages, view.training
    assert messages is not None
    visited = np.asarray(view.sizes)
    if training.steps is not None and training.batch_size:
        visited = np.minimum(visited, training.steps * training.batch_size)
    sent, delta = views.flat(seen, messages)
    rate = training.factors(np.asarray(seen.round)[messages.row])
    widths = tuple(int(np.prod(a.shape[2:])) for a in jax.tree.leaves(seen.delta))
    return [
        _Messages((s - d)[:count], d[:count], r[:count], widths)
        for s, d, r, count, rows in zip(
            sent, delta, rate, messages.count, visited, strict=True
        )
        if count >= _FEWEST and rows >= _ROWS
    ]


def _alternate(client: _Messages) -> bool:
    """Whether two kinds of messages take turns."""
    turns = [np.diff(each.astype(int)) for each in (_large(client), _whole(client))]
    return any((each > 0).any() and (each < 0).any() for each in turns)


def _large(client: _Messages) -> np.ndarray:
    """Which `[Q]` are more than ten times as large as others, with none between."""
    size = np.linalg.norm(client.moved, axis=1) / client.rate
    ordered = np.sort(size)
    apart = ordered[_SIDE : 1 - _SIDE] > _FAR * ordered[_SIDE - 1 : -_SIDE]
    if not apart.any():
        return np.zeros(len(size), bool)
    return size > ordered[_SIDE - 1 + int(apart.argmax())]


def _whole(client: _Messages) -> np.ndarray:
    """Which `[Q]` take the model itself away; none where a single one does."""
    sent = client.returned + client.moved
    lengths = np.linalg.norm(sent, axis=1) * np.linalg.norm(client.moved, axis=1)
    found = np.sum(sent * client.moved, axis=1) > _WHOLE * np.maximum(lengths, _TINY)
    return found if found.sum() >= _SIDE else np.zeros(len(found), bool)


def _are_thinned(client: _Messages) -> bool:
    """Whether many numbers do not move, others in every round.

    Not where models travelled in half the precision, which rounds small moves away.
    """
    some = np.any(client.moved != 0, axis=0)
    fine = np.mean(np.float32(client.returned).view(np.int32) & 0xFFF != 0)
    if not some.any() or fine < 0.5:
        return False
    still = client.moved[:, some] == 0
    share, changes = still.mean(), np.mean(still[1:] != still[:-1])
    return bool(share > _STILL and changes > _ANEW * 2 * share * (1 - share))


def _are_signs(client: _Messages) -> bool:
    """Whether most numbers move by the size of all numbers of their array."""
    alike, ends = 0.0, np.cumsum(client.widths)[:-1]
    for array in np.split(np.abs(client.moved), ends, axis=1):
        if array.shape[1] >= _FEWEST:
            same = array.std(axis=1) < _ALIKE * array.mean(axis=1)
            alike += array.shape[1] * same.mean()
    return alike > sum(client.widths) / 2

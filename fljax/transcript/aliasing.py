"""Recordings that hold one model several times, because it was not copied in time.

A PyTorch `state_dict` is the memory of its network. Kept until the end of a round, it
holds what was written there last: the last client's model, or the server's next one.
No attack can see that; all of them then find less than there is.

A client who does no step returns what it was sent, a warm-up starts at rate 0, and a few
signs may agree: from values alone nothing is said before rounds have been compared.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fljax.transcript import arrays as arrays_lib

Named = Mapping[str, np.ndarray]

_MOST = 10**7  # numbers of a round's messages, for what is computed of all of them
SURE = 3  # rounds of equal messages; of few parameters and their signs one may be
_COPY = "copy each model when it is made: transcript.from_torch, .clone() or .copy()"


def one_memory(returned: Mapping[int, Any], deltas: Sequence[Named]) -> str:
    """What is wrong where clients have one memory that is not the sent model; or empty.

    Args:
      returned: client -> its model as it was given.
      deltas: of each, sent minus returned.
    """
    seen: dict[tuple, int] = {}
    for (client, tree), delta in zip(returned.items(), deltas, strict=True):
        places = tuple(_place(leaf) for _, leaf in arrays_lib.leaves(tree))
        if None in places or not _changed(delta):
            continue
        if (other := seen.setdefault(places, client)) != client:
            return (
                f"clients {other} and {client} returned the same memory, which holds "
                f"the model that was written last; {_COPY}"
            )
    return ""


class Watch:
    """Looks at the first rounds of a recording."""

    def __init__(self):
        """Before the first round."""
        self._rounds = 0
        self._equal = self._still = True  # all so far
        self._first: tuple[Named, Sequence[Named]] = {}, ()

    def look(self, sent: Named, deltas: Sequence[Named]) -> str:
        """What is wrong with this round and those before; or empty.

        Args:
          sent: the model of the round.
          deltas: of each client, sent minus returned.
        """
        self._rounds += 1
        if self._rounds > SURE:
            return ""
        self._equal = self._equal and _equal(deltas)
        self._still = self._still and not any(map(_changed, deltas))
        if self._rounds == 1:
            self._first = sent, deltas
            return ""
        moved = any(not np.array_equal(sent[k], v) for k, v in self._first[0].items())
        still = self._still and self._rounds == SURE
        if moved and (still or (self._rounds == 2 and _averaged(*self._first, sent))):
            what = "just what it was sent" if still else "models with this average"
            return (
                f"the server goes on, yet every client returned {what}: `sent` was "
                f"recorded after the server had changed it; {_COPY}"
            )
        if self._equal and self._rounds == SURE:
            return (
                f"all clients returned equal models in each of {SURE} rounds, the one "
                f"that was written last; {_COPY}; of clients who hold the same rows one "
                "is enough"
            )
        return ""


def _place(leaf: Any) -> int | None:
    """Where a mutable array lies; None for others."""
    if hasattr(leaf, "data_ptr"):
        return leaf.data_ptr()
    if isinstance(leaf, np.ndarray):
        return leaf.__array_interface__["data"][0]
    return None


def _changed(delta: Named) -> bool:
    return any(each.any() for each in delta.values())


def _equal(deltas: Sequence[Named]) -> bool:
    """Whether several clients sent one message, which says something."""
    first, *others = deltas
    return (
        bool(others)
        and _changed(first)
        and all(np.array_equal(each[k], v) for each in others for k, v in first.items())
    )


def _averaged(sent: Named, deltas: Sequence[Named], now: Named) -> bool:
    """Whether the server moved although `sent` was an average of its clients' models.

    Then weights of 0 or more, with sum 1, make `sum_c w_c delta_c` vanish.
    """
    count, size = len(deltas), sum(each.size for each in sent.values())
    if count < 2 or count * size > _MOST:
        return False
    moved = np.linalg.norm(_flat(now) - _flat(sent))
    each = np.stack([_flat(delta) for delta in deltas])
    trained = each.any(axis=0)  # a frozen layer tells nothing apart
    each = each[:, trained]
    if count > each.shape[1] / 2:
        return False
    norms = np.linalg.norm(each, axis=1)
    largest = norms.max()
    if not np.isfinite([moved, largest]).all():
        return False
    if norms.min() < 0.01 * largest:  # of who hardly trained all the weight makes it so
        return False
    apart, mean = each[:-1] - each[-1], each.mean(axis=0)
    shift = np.linalg.lstsq(apart @ apart.T, -apart @ mean)[0]
    weights = 1 / count + np.append(shift, -shift.sum())
    rest = np.linalg.norm(weights @ each)
    return bool(
        rest < 1e-3 * largest and weights.min() > -0.01 and moved > 0.03 * largest
    )


def _flat(arrays: Named) -> np.ndarray:
    return np.concatenate(
        [np.ravel(each).astype(np.float64) for each in arrays.values()]
    )

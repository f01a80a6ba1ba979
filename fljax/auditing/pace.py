"""Whether clients moved as far as their true rows would have sent them.

Batches are drawn anew in each round, so that a misfit (`fits`) leaves room for noise: with small
batches another learning rate by a factor of two is in it, and an attack that is told the wrong
one reads less. Noise hits no direction for long, though. The *pace* is the factor by which what
is simulated of the true rows has to be multiplied to meet the messages best, over all rounds:
about 1 of clients that train as declared, 2 of those whose learning rate is twice as large, and
less for the rows of others. A simulation of the mean is not exact at large rates: what counts
is the pace beside that of messages that clients sent who do train as declared (`replay`).
"""

from collections.abc import Callable

import numpy as np

from fljax.attacks.adversary import AdversaryView
from fljax.types import Array

_FEWEST = 8  # messages of a client
_OFF = 1.1  # times as far, or as near
_ANOTHER = 1.6  # the same, of what hardly moves messages at all and leaves all to noise
_SURE = 3  # standard errors


def found(view: AdversaryView, pace: Array, honest: Callable[[], Array | None]) -> str:
    """What the pace shows of another training, in words; empty where it shows nothing.

    Under a defense nothing is said: what clips or ruins messages is no pace of clients.

    Args:
      view: of somebody who knows the true rows.
      pace: `[C, 2]` and its standard error, of a simulation.
      honest: that of messages of clients who train as declared, asked for only where the
        first is far off; None where nobody knows.
    """
    if view.defense or not _far(view, pace):
        return ""
    usual = honest()
    if usual is None:
        return ""
    (value, error), (one, own) = np.asarray(pace).T, np.asarray(usual).T
    return _far(view, np.stack([value / one, np.hypot(error, own) / one], axis=1))


def is_usual(view: AdversaryView, pace: Array) -> bool:
    """Whether messages moved about as far as is supposed, so that they may fit.

    Where little is simulated, or the wrong thing, most of a message passes for noise.
    """
    if view.defense:
        return True
    return bool(1 / _ANOTHER < np.median(np.asarray(pace)[:, 0]) < _ANOTHER)


def _far(view: AdversaryView, pace: Array) -> str:
    """Of how many clients it is far off, if of half of them."""
    assert view.messages is not None
    enough = np.asarray(view.messages.count) >= _FEWEST
    value, error = np.asarray(pace)[enough].T
    slower, faster = value + _SURE * error < 1 / _OFF, value - _SURE * error > _OFF
    off = max(slower, faster, key=np.sum)
    if not off.any() or 2 * off.sum() < len(off):
        return ""
    return (
        f"messages of {off.sum()} of {len(view.sizes)} clients move "
        f"{np.median(value[off]):.2g} times as far as these rows would have moved them, as "
        "with another learning rate or number of local steps"
    )

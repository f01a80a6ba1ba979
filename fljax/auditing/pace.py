"""Whether clients moved as far as their true rows would have sent them.

Batches are drawn anew in each round, so that a misfit (`fits`) leaves room for noise: with small
batches another learning rate by a factor of two is in it, and an attack that is told the wrong
one reads less. Noise hits no direction for long, though. The *pace* is the factor by which what
is simulated of the true rows has to be multiplied to meet the messages best, over all rounds: 1
to within a tenth of clients that train as declared, half for twice the learning rate, and less
for the rows of others.
"""

import numpy as np

from fljax.attacks.adversary import AdversaryView
from fljax.types import Array

_FEWEST = 8  # messages of a client
_OFF = 1.2  # times as far, or as near
_SURE = 3  # standard errors


def found(view: AdversaryView, pace: Array) -> str:
    """What the pace shows of another training, in words; empty where it shows nothing.

    Under a defense nothing is said: what clips or ruins messages is no pace of clients.

    Args:
      view: of somebody who knows the true rows.
      pace: `[C, 2]` and its standard error, of a simulation.
    """
    assert view.messages is not None
    if view.defense:
        return ""
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

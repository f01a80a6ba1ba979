"""The attack on what `views` lets through."""

import time
from typing import NamedTuple

from experiments.rows.views import Known, Sight
from fljax.attacks import rows


class Guess(NamedTuple):
    """What was found behind one message, and the seconds that it took."""

    found: rows.Found
    seconds: float


def attack(known: Known, sight: Sight, combinations: int) -> Guess:
    """Rows behind a message."""
    begun = time.perf_counter()
    found = rows.recover(
        sight.params,
        sight.message,
        known.loss_fn,
        known.schema,
        sight.rows,
        sight.targets,
        seed=sight.seed,
        effort=rows.Effort(combinations=combinations),
    )
    return Guess(found, time.perf_counter() - begun)

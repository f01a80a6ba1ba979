"""The attack on what `views` lets through."""

import time
from typing import NamedTuple

from experiments.rows.views import Known, Sight
from fljax.attacks import rows
from fljax.attacks.rows import epoch, repeated


class Guess(NamedTuple):
    """What was found behind one message, and the seconds that it took."""

    found: rows.Found
    seconds: float


def attack(known: Known, sight: Sight, combinations: int) -> Guess:
    """Rows behind a message."""
    begun = time.perf_counter()
    sent = sight.params, sight.message, known.loss_fn
    about = known.schema, sight.rows, sight.targets
    hard = {"seed": sight.seed, "effort": rows.Effort(combinations=combinations)}
    if sight.steps.count == 1:
        found = rows.recover(*sent, *about, **hard)
    elif sight.steps.rows:
        found = epoch.recover(*sent, sight.steps, *about, **hard)
    else:
        found = repeated.recover(*sent, sight.steps, *about, combinations)
    return Guess(found, time.perf_counter() - begun)

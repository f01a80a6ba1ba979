"""The attack on what `views` lets through."""

import time
from typing import NamedTuple

import numpy as np

from experiments.rows.views import Known, OneMessage, Rounds
from fljax.attacks import rows
from fljax.attacks.rows import matching
from fljax.attacks.rows import rounds as rounds_lib


class Guess(NamedTuple):
    """What was found behind messages, and the seconds that it took."""

    found: rows.Found
    seconds: float


def attack(known: Known, seen: OneMessage, combinations: int) -> Guess:
    """Rows behind a message."""
    begun = time.perf_counter()
    found = rows.recover_steps(
        seen.params,
        seen.message,
        known.loss_fn,
        seen.steps,
        known.schema,
        seen.rows,
        seen.targets,
        seed=seen.seed,
        effort=rows.Effort(combinations=combinations),
    )
    return Guess(found, time.perf_counter() - begun)


def match(known: Known, seen: OneMessage, y: np.ndarray, pool: matching.Pool) -> Guess:
    """Rows behind a message of one step by TabLeak, which is told the targets `[B]`."""
    begun = time.perf_counter()
    sent = seen.params, seen.message, known.loss_fn
    found = matching.recover(*sent, known.schema, y, seed=seen.seed, pool=pool)
    return Guess(found, time.perf_counter() - begun)


def over_rounds(known: Known, rounds: Rounds, searches: int) -> Guess:
    """Rows behind messages of many rounds."""
    begun = time.perf_counter()
    seen = rounds.params, rounds.message, known.loss_fn
    about = known.schema, rounds.rows, rounds.targets
    found = rounds_lib.recover(*seen, *about, seed=rounds.seed, searches=searches)
    return Guess(found, time.perf_counter() - begun)

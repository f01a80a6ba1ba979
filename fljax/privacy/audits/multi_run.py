"""Many independent trainings, half of them with a canary: what each observer can prove."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fljax import federation as federation_lib
from fljax.federation import Federation, Tables, checks
from fljax.privacy import sampled
from fljax.privacy.audits import evidence, planting, statistics
from fljax.privacy.audits.canaries import Canary
from fljax.privacy.audits.chances import inclusions, local_steps
from fljax.privacy.audits.evidence import OBSERVERS, Observer, Seen
from fljax.privacy.audits.likelihood import likelihood_ratios
from fljax.privacy.audits.planting import Planted
from fljax.privacy.audits.statistics import Audited
from fljax.privacy.noise_spec import as_poisson
from fljax.types import NoiseSpec, PyTree

_BLOCK = 250  # trainings whose messages are held at the same time

Keep = Callable[[str, Callable[[], Any]], Any]
# (name, compute) -> what `compute` returns, or returned in a run that was stopped


class Audit(NamedTuple):
    """Epsilon from both sides.

    Attributes:
      canary: what was planted, and what it was compared with.
      accounted: upper bound of epsilon for whoever sees messages, and so for all others.
      audited: observer -> lower bound, with its delta, confidence and counts.
      trainings: number of them.
    """

    canary: Canary
    accounted: float
    audited: dict[Observer, Audited]
    trainings: int


def audit(
    federation: Federation,
    *,
    trainings: int,
    delta: float,
    confidence: float = 0.95,
    observers: Sequence[Observer] = OBSERVERS,
    numbers: PyTree = (),
    seed: int = 0,
    keep: Keep | None = None,
    progress: Callable[[int], None] | None = None,
) -> Audit:
    """Audits a private federation by training it many times.

    Args:
      federation: with a place for a canary, from `plant`; audits of it share its
        compiled programs.
      trainings: number of them; every second has the canary.
      delta: in (0, 1), of both sides.
      confidence: of each lower bound.
      observers: who is asked.
      numbers: of the method, e.g. learning rate.
      seed: of all trainings.
      keep: keeps blocks of trainings, so that an audit can go on.
      progress: called with the number of trainings done.

    Raises:
      TypeError: for a federation without a place for a canary.
      ValueError: for numbers out of range, or noise that is accounted for other batches
        than are drawn.
    """
    planted = federation.method
    if not isinstance(planted, Planted):
        raise TypeError("federation: expected one from privacy.plant")
    check_observers(observers)
    # Nuisances and thresholds are chosen by one part, bounds are of the other.
    present, tuning = np.arange(trainings) % 2 > 0, statistics.first(max(trainings, 0))
    statistics.check_numbers(delta, confidence)
    statistics.check_sides(present, tuning)
    noise = planted.method.defended(numbers).noise
    upper = accounted(noise, federation.tables, planted.canary, delta)
    seen = _seen(federation, trainings, numbers, seed, keep, progress)
    often = inclusions(federation.tables, planted.canary)
    audited: dict[Observer, Audited] = {
        observer: statistics.audited(
            likelihood_ratios(seen[observer], observer, often, tuning & ~present),
            present,
            delta=delta,
            confidence=confidence,
            tuning=tuning,
        )
        for observer in observers
    }
    return Audit(planted.canary, upper, audited, trainings)


def check_observers(observers: Sequence[str]) -> None:
    """Refuses names of nobody.

    Raises:
      ValueError: naming them.
    """
    if unknown := [each for each in observers if each not in OBSERVERS]:
        raise ValueError(
            f"observers: expected some of {', '.join(OBSERVERS)}, got {unknown[0]!r}"
        )


def accounted(
    noise: Sequence[NoiseSpec], tables: Tables, canary: Canary, delta: float
) -> float:
    """Upper bound of epsilon of what `messages` tell of a canary; inf without a promise.

    Raises:
      ValueError: for noise that promises for other batches than are drawn.
    """
    checks.check_noise(noise, tables)
    unit = "client" if canary.kind == "client" else "record"
    client, bounds = canary.client, [np.inf]
    rounds = int(inclusions(tables, canary).present.sum())
    for spec in noise:
        if spec.unit != unit or spec.against != "messages":
            continue
        steps = rounds * (1 if unit == "client" else int(local_steps(tables)[client]))
        own = spec.of_client(client)
        rate, count = as_poisson(own, steps, rounds)
        multiplier = float(np.asarray(own.noise_multiplier))
        replaced = canary.neighbours != "remove"
        epsilon = sampled.poisson(
            multiplier, float(rate), [int(count)], [1.0], delta, replace=replaced
        )
        bounds.append(epsilon)
    return min(bounds)


def _seen(federation, trainings, numbers, seed, keep, progress):
    """Observers -> leaves `[N, R]`, a block of trainings after the other."""
    look, blocks = evidence.witness(federation), []

    def block(first, count):
        items = planting.trainings(first, count, seed, numbers)
        trained = federation_lib.train(federation, items, evaluate=look, room=_BLOCK)
        return jax.tree.map(lambda leaf: np.asarray(leaf[-1]), trained.evaluations)

    for first in range(0, trainings, _BLOCK):
        count = min(_BLOCK, trainings - first)
        name = f"trainings-{first}-{count}"
        if keep is None:
            found = block(first, count)
        else:
            found = keep(name, lambda first=first, count=count: block(first, count))
        blocks.append(found)
        if progress is not None:
            progress(first + count)
    return {
        observer: Seen(
            *map(np.concatenate, zip(*(b[observer] for b in blocks), strict=True))
        )
        for observer in OBSERVERS
    }

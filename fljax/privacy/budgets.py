"""A defense's spec resolved once: the sigma that keeps a budget, and what is promised.

The noise is that of the `Defense` itself, made with a noise of one: its `NoiseSpec` says
how large a noise of one is for the guarantee.
"""

import functools
from collections.abc import Collection, Sequence
from typing import NamedTuple

import jax
import numpy as np

from fljax import packing
from fljax.defenses import specs
from fljax.defenses.definition import Setting
from fljax.defenses.specs import Numbers, Spec
from fljax.federation import Tables
from fljax.privacy.bounds import accuracy_without
from fljax.privacy.calibration import noise_multiplier_for
from fljax.privacy.noise_spec import Guarantee, as_poisson, guarantee
from fljax.types import Array, Defense, NoiseSpec, Unit


class Releases(NamedTuple):
    """How often noisy sums are released.

    Attributes:
      steps: `[C]` or [], sums over records of each client.
      rounds: `[C]` or [], over which they are spread; each is also a sum over clients.
    """

    steps: Array | int
    rounds: Array | int

    @classmethod
    def of_tables(cls, tables: Tables, schedule: int = 0) -> "Releases":
        """Those of a training on these tables, as if everybody came into every round.

        Args:
          tables: of the federation, e.g. `Tables.of`.
          schedule: which of theirs.

        Raises:
          ValueError: a client comes into no round, so that its steps are not known.
        """
        plan = tables.schedule
        people, slots = jax.tree.map(
            lambda leaf: leaf[schedule], (plan.participants, plan.slots)
        )
        steps = packing.most_steps(people, slots, plan.sizes.shape[-1] - 1)
        if not steps.all():
            absent = int(np.argmin(steps))
            raise ValueError(
                f"tables: expected every client in some round, client {absent} is in none"
            )
        return cls(plan.num_rounds * steps, np.full(len(steps), plan.num_rounds))

    def of(self, unit: str) -> Array | int:
        """Sums that a unit, record or client, may be in."""
        return self.steps if unit == "record" else self.rounds


class Promise(NamedTuple):
    """A kind of noise of a defense, and what it promises."""

    noise: NoiseSpec
    guarantee: Guarantee


def numbers_for(
    spec: Spec, setting: Setting, releases: Releases, delta: float
) -> Numbers:
    """All numbers of a spec, a sigma in the place of every budget.

    Args:
      spec: without alternatives.
      setting: with concrete numbers, [] or `[C]`.
      releases: that the budget covers.
      delta: of the budget.

    Raises:
      ValueError: for numbers out of range, or a budget that no noise keeps.
    """
    found = []
    for part, own in zip(spec.parts, specs.numbers(spec), strict=True):
        if part.has_budget:
            alone = Spec((part,))
            (unit,) = specs.bind(alone, setting, ({**own, "sigma": 1.0},)).noise
            sigma = _sigma(part, unit, releases, delta)
            # What all clients add together has one size.
            own["sigma"] = np.max(sigma) if unit.unit == "client" else sigma
        found.append(own)
    return tuple(found)


def promises(defense: Defense, releases: Releases, delta: float) -> list[Promise]:
    """What each kind of noise of a defense promises; empty without any.

    Args:
      defense: with concrete numbers.
      releases: that are accounted for.
      delta: of every epsilon.

    Raises:
      ValueError: for numbers out of range.
    """
    return [
        Promise(
            noise,
            guarantee(noise, releases.of(noise.unit), delta, rounds=releases.rounds),
        )
        for noise in defense.noise
    ]


def against(promises: Sequence[Promise], views: Collection[str]) -> dict[Unit, Promise]:
    """By unit, the promise with the least epsilon of those that hold against somebody.

    Args:
      promises: of one defense.
      views: all that is seen, of 'messages', 'sum', 'models' and 'final'. Noise of a
        server promises nothing to who sees messages or their sum before it is added.
    """
    models_alone = {*views} <= {"models", "final"}
    found: dict[Unit, Promise] = {}
    for promise in sorted(promises, key=lambda p: float(p.guarantee.epsilon_rdp.max())):
        if models_alone or promise.noise.against == "messages":
            found.setdefault(promise.noise.unit, promise)
    return found


def ceiling(
    defense: Defense, releases: Releases, without: Array | float
) -> np.ndarray | None:
    """Share of rows that nobody who sees messages can be above, on average.

    Args:
      defense: with concrete numbers.
      releases: that are seen.
      without: `[C]` or [], share that is told rightly without the row, as
        `bounds.accuracy_without` takes it.

    Returns:
      `[C]`, the smallest of what the kinds of noise allow; None where nothing is promised
      against whoever sees messages.

    Raises:
      ValueError: for numbers out of range.
    """
    found = [
        accuracy_without(
            noise, releases.of(noise.unit), without, rounds=releases.rounds
        )
        for noise in defense.noise
        if noise.against == "messages" and np.all(np.asarray(noise.noise_multiplier))
    ]
    return functools.reduce(np.minimum, found) if found else None


def _sigma(part, unit: NoiseSpec, releases: Releases, delta: float) -> np.ndarray:
    budget, accountant = part.values["epsilon"], part.values["accountant"]

    @functools.cache  # many clients have the same numbers
    def least(rate, number):
        sums = max(number, 1)  # whoever is in none may have the noise of one
        return noise_multiplier_for(budget, delta, rate, sums, accountant)

    sums = as_poisson(unit, releases.of(unit.unit), releases.rounds)
    return np.vectorize(least, otypes=[float])(*sums) / unit.noise_multiplier

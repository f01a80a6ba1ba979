"""Clients that take part no more once their budget is spent (`--stop_at_epsilon`).

Who is drawn for which round is known before the training, so the rounds that a client
cannot afford are too; the schedule then lacks them.
"""

import numpy as np

from experiments.tabular.defense_config import BoundDefense
from experiments.tabular.settings import DefenseConfig
from fljax import privacy
from fljax.defenses.specs import Spec
from fljax.driver.config import ConfigError
from fljax.schedule import Schedule

_FLAG = "--stop_at_epsilon"


def check(config: DefenseConfig, spec: Spec, active_rounds: int) -> None:
    """Refuses what nobody can stop at.

    Raises:
      ConfigError: naming the flag.
    """
    if config.stop_at_epsilon is None:
        return
    if active_rounds:
        raise ConfigError(f"{_FLAG}: expected no active server, who asks on")
    if spec.has_budget:
        raise ConfigError(
            f"{_FLAG}: expected a defense with sigma=, got {spec}, whose sigma keeps its "
            "budget over all rounds"
        )
    if not any(part.values.get("sigma") for part in spec.parts):
        raise ConfigError(
            f"{_FLAG}: expected a defense that promises an epsilon, got {spec}"
        )


def ledgers(config: DefenseConfig, bound: BoundDefense, seed: int) -> list:
    """A `privacy.Ledger` for each kind of noise, nothing charged.

    Args:
      config: of the run.
      bound: the defense.
      seed: position of the seed.
    """
    taken = np.maximum(np.broadcast_to(bound.rounds, bound.steps.shape)[seed], 1)
    return [
        privacy.Ledger(
            noise,
            delta=config.delta,
            steps=bound.steps[seed] // taken,
            budget=config.stop_at_epsilon or np.inf,
        )
        for noise in bound.build(bound.of_seed(seed)).noise
    ]


def within(
    config: DefenseConfig, bound: BoundDefense, seed: int, present: np.ndarray
) -> np.ndarray:
    """Who is drawn `[T, C]`, without those who have spent their budget.

    Raises:
      ConfigError: if that is nobody in any round.
    """
    for ledger in ledgers(config, bound, seed):
        present = ledger.within(present)
    if not present.any():
        raise ConfigError(
            f"{_FLAG}={config.stop_at_epsilon:g}: expected at least what one round of "
            f"one client spends under --defense={bound.spec}"
        )
    return present


def rounds_of_each(schedule: Schedule) -> np.ndarray:
    """Rounds `[seeds, C]` that each client takes part in."""
    seeds, tables = schedule.participants.shape[:2]
    people = schedule.participants.reshape(seeds, -1)
    count = np.zeros(
        schedule.sizes.shape, int
    )  # the last is nobody, who fills up rounds
    np.add.at(count, (np.arange(seeds)[:, None], people), 1)
    return count[:, :-1] * (schedule.num_rounds // tables)

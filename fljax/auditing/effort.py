"""How many local steps attacks simulate of a message: a transcript's word is not enough.

A description that says a million epochs costs its writer nothing, and whoever believes it
days. So the number is bounded, and said before anything is attacked.
"""

from collections.abc import Sequence

import numpy as np

from fljax.attacks.adversary import LocalTraining
from fljax.attacks.spec import AttackSpec
from fljax.auditing.case import Case
from fljax.auditing.doubts import SIMULATING
from fljax.auditing.settings import AuditConfig
from fljax.driver.config import ConfigError


def steps(case: Case, attacks: Sequence[AttackSpec], config: AuditConfig) -> int:
    """Simulated steps of a message, the most of any attack and client; 0 for none."""
    training, sizes = case.view.training, case.view.sizes
    if training.missing:
        return 0
    each = np.max(training.local_steps(sizes))
    merged = min(each, config.path_steps * (training.epochs or 1))
    found = [0]
    for attack in attacks:
        if attack.name in SIMULATING:
            found.append(merged if _merges(training) else each)
        elif attack.needs.epochs:
            found.append(each)
    return int(max(found))


def check(case: Case, attacks: Sequence[AttackSpec], config: AuditConfig) -> None:
    """Refuses what nobody waits for.

    Raises:
      ConfigError: with the ways out.
    """
    count = steps(case, attacks, config)
    if count > config.most_steps:
        training = case.view.training
        told = f"{training.epochs} local epochs"
        told = told if training.steps is None else f"{training.steps} local steps"
        raise ConfigError(
            f"--local_epochs, --local_steps: by them or by {case.recording.stem}.json a "
            f"message is {told}, of which attacks would simulate {count}; say a smaller "
            "number, leave out attacks that simulate with --attacks, or allow so many "
            f"with --most_steps={count}"
        )


def _merges(training: LocalTraining) -> bool:
    """Whether many steps are followed by fewer, as in `trajectory.rules`."""
    return training.optimiser == "sgd" and not training.momentum

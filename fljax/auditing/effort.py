"""What attacks cost, said and bounded before anything is attacked.

A description that says a million epochs costs its writer nothing, and whoever believes it
days: the local steps that are simulated of a message are bounded. Memory grows with the
rows of a client times the values that its sensitive column may take: each row is tried
with each of them.
"""

from collections.abc import Collection, Sequence

import jax
import numpy as np

from fljax import memory
from fljax.attacks.spec import AttackSpec
from fljax.attacks.trajectory import effort as effort_lib
from fljax.attacks.trajectory import relaxation
from fljax.auditing.case import Case
from fljax.auditing.doubts import SIMULATING
from fljax.auditing.settings import AuditConfig
from fljax.driver.config import ConfigError

# Copies of the inputs and hidden units of each row under each value, as XLA counts them.
_TRIED = 1.3
_SIMULATED = 8.0


def steps(case: Case, attacks: Sequence[AttackSpec], config: AuditConfig) -> int:
    """Simulated steps of a message, the most of any attack and client; 0 for none."""
    training, sizes = case.view.training, case.view.sizes
    if training.missing:
        return 0
    each, found = training.local_steps(sizes), [0]
    for attack in attacks:
        if attack.name in SIMULATING:
            found.append(effort_lib.simulated(training, each, config.path_steps))
        elif attack.needs.epochs:
            found.append(int(np.max(each)))
    return max(found)


def check(case: Case, attacks: Sequence[AttackSpec], config: AuditConfig) -> None:
    """Refuses what nobody waits for, or what fits into no memory.

    Raises:
      ConfigError: with the ways out.
    """
    _check_memory(case, attacks)
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


def of_candidates(
    rows: int, values: int, units: int, attacks: Collection[str], devices: int
) -> float:
    """Bytes in which attacks hold a client's rows under each value.

    Args:
      rows: of the largest client.
      values: that its sensitive column may take.
      units: inputs and hidden units of the model.
      attacks: names.
      devices: clients attacked side by side.
    """
    copies = _SIMULATED if set(SIMULATING) & set(attacks) else _TRIED
    return 4.0 * copies * rows * values * units * devices


def _check_memory(case: Case, attacks: Sequence[AttackSpec]) -> None:
    view = case.view
    inputs = view.known.public.numeric.shape[-1] + view.candidates.shape[-1]
    assert view.transcript is not None
    leaves = jax.tree.leaves(view.transcript.params)
    biases = sum(leaf.size // len(leaf) for leaf in leaves if leaf.ndim == 2)
    names = [attack.name for attack in attacks]
    values = relaxation.POINTS if view.continuous else len(view.candidates)
    devices = min(jax.device_count(), len(view.clients))
    rows = int(np.max(view.sizes))
    needed = of_candidates(rows, values, inputs + biases, names, devices)
    free = memory.available()
    if needed > free:
        raise ConfigError(
            f"--sensitive: {values} values tried on each of {rows} rows need about "
            f"{needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free; join rare "
            "values, or leave out attacks with --attacks"
        )

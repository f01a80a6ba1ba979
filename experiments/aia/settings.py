"""What attribute inference can be told beside its training (`experiments.tabular`).

Each class becomes flags (`config.define`) with the prefix given here; a field's help is
the flag's help.
"""

import dataclasses
from typing import Literal

from fljax.attacks import registry
from fljax.attacks.estimates import Prediction
from fljax.auditing import values
from fljax.driver.config import ConfigError
from fljax.driver.option import RunFlags, option, several

STANDARD = "standard"
_STANDARD = ("model", "linear_inversion", "trajectory")


def attack_kinds() -> list[str]:
    """All of --attack_kinds that have a name, in the order in which they run."""
    first = ("model", "grad", "reconstruct", "active", "oracle")
    of_registry = [
        spec.name for spec in registry.ATTACKS.values() if spec.gives is Prediction
    ]
    return list(dict.fromkeys([*first, *of_registry]))


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttackConfig:
    """Prefix `attack`."""

    kinds: tuple[str, ...] = option(
        (STANDARD,),
        f"attacks to run: {STANDARD} for those of {', '.join(_STANDARD)} that apply, "
        "names of the registry, grad (the cosine grid: slow), active, oracle, or "
        "package.module:attribute for your own; grad with active: also in isolation",
    )
    controls: tuple[Literal["imputation", "strangers", "permuted"], ...] = option(
        ("imputation", "strangers"),
        "what attacks are compared with beside the majority: imputation from the other "
        "columns, strangers (the same attack on rows that never met the messages), "
        "permuted (on the client's rows with their targets in random order)",
    )
    score: Literal["own", "pooled"] = option(
        "own", "rows that a client's model is attacked on: its own, or all clients'"
    )
    knows_defense: bool = option(True, "attacks simulate the defense of the training")
    grad_rounds: tuple[int, ...] = several(
        (1, 5, 10, 20, 50, 100), "grad: numbers of first messages tried", min=1
    )
    grad_learning_rates: tuple[float, ...] = several(
        (1e2, 1e3, 1e4, 1e5, 1e6), "grad: learning rates tried", above=0
    )
    grad_iterations: int = option(100, "grad: iterations", min=1)
    grad_temperature: float = option(1.0, "grad: tau of the relaxation", above=0)
    grad_noise: Literal["gumbel", "logistic"] = option(
        "gumbel", "grad: noise of a binary attribute; gumbel as the authors' code"
    )
    subset_rounds: tuple[int, ...] = option(
        (), "reconstruct: messages of the square system; empty: search", min=0
    )
    subset_trials: int = option(
        10_000, "reconstruct: random sets of messages searched", min=1
    )

    def __post_init__(self):
        known = [STANDARD, *attack_kinds()]
        for name in self.kinds:
            if ":" not in name and name not in known:
                raise ConfigError(
                    f"--attack_kinds: expected some of {', '.join(known)}, or "
                    f"package.module:attribute, got {name!r}"
                )

    @property
    def standard(self) -> tuple[str, ...]:
        """Attacks that were not named, and are left out where they do not apply."""
        named = STANDARD in self.kinds
        return tuple(name for name in _STANDARD if named and name not in self.kinds)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrajectoryConfig:
    """Prefix `trajectory`, for the kinds trajectory and linear_inversion."""

    rounds: int | None = option(
        None,
        "messages used, evenly spread over the training, more where a defense sends a "
        "part of each; none: all",
        min=1,
    )
    path_steps: int = option(10, "simulated steps of a local epoch", min=1)
    iterations: int = option(240, "steps of the search", min=1)
    rough_iterations: int = option(
        0, "cheap steps of a search before, to first order", min=0
    )
    batch_rounds: int = option(3, "random messages in each step", min=1)
    rate: float = option(0.5, "first learning rate of the search", above=0)
    stages: int = option(2, "how often the noise is estimated", min=1)
    held_out: float = option(0.1, "share of messages held out", min=0, below=1)
    scale_error: float = option(
        1.0, "factor by which learning rate times local steps is misjudged", above=0
    )
    estimate_scale: bool = option(
        False, "correct that factor from the messages; else it is taken as right"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig(RunFlags):
    """No prefix."""

    seeds: tuple[int, ...] = several((0,), "seeds, vmapped", min=0, max=2**32 - 1)
    sweep: str = option(
        "", "points to run one after another: 'flag=value flag=value; flag=value ...'"
    )
    paper_table: str | None = option(
        None, "table of Diana et al. to show beside the results, e.g. table1"
    )
    record: Literal["all", "last"] = option("all", "rounds that the transcript keeps")
    record_dtype: Literal["float32", "bfloat16"] = option(
        "float32", "precision of the messages that it keeps"
    )
    max_clients_in_memory: int | None = option(
        None,
        "clients whose messages the transcript keeps and who are attacked, drawn for "
        "each seed; all take part in the training; none: all",
        min=1,
    )
    transcript: str | None = option(
        None, "attack this saved transcript (path without .npz) instead of training"
    )
    most_values: int = values.most_values()
    save_transcript: bool = option(False, "also save each seed's transcript")
    save_guesses: bool = option(
        False, "also write guesses.csv: what each attack names for every row"
    )

"""What the program can be told."""

import dataclasses
from typing import NamedTuple

from experiments import defense_options
from experiments.tabular.settings import (
    DataConfig,
    ModelConfig,
    PartitionConfig,
    TrainConfig,
)
from fljax.driver.option import RunFlags, option, several
from fljax.privacy.audits.evidence import Observer


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig(RunFlags):
    """No prefix."""

    defenses: str = option("none", f"what is trained: {defense_options.SEVERAL}")
    delta: float = option(1e-5, "delta of every epsilon", above=0, below=1)
    trainings: int = option(
        64,
        "of each seed, in pairs with the two halves of every pool: each is attacked "
        "once, with the other pairs as shadows",
        min=8,
        max=2**12,
    )
    pool: int | None = option(
        None,
        "rows of each client that may be in a training, half of which are; the others "
        "belong to the population; none: all",
        min=8,
    )
    observers: tuple[Observer, ...] = several(
        ("messages", "sum", "models", "final"),
        "who attacks: with gradients whoever sees messages, their sum or the models of "
        "all rounds, with losses whoever has a client's last model or the final one",
    )
    rounds_used: int | None = option(
        None,
        "rounds that gradients are matched in, evenly spread; fewer take less time, and "
        "tell less; none: all",
        min=1,
    )
    seeds: tuple[int, ...] = several((0, 1, 2), "repetitions", min=0, max=2**20 - 1)


class Settings(NamedTuple):
    """The configuration of a run."""

    data: DataConfig
    partition: PartitionConfig
    model: ModelConfig
    train: TrainConfig
    run: RunConfig

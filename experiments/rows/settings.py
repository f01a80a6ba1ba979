"""What the program can be told."""

import dataclasses
from typing import Literal, NamedTuple

from experiments.tabular.settings import DataConfig
from fljax.driver.option import RunFlags, option, several


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig(RunFlags):
    """No prefix."""

    batch_sizes: tuple[int, ...] = several((8,), "rows of a message", min=1)
    batches: int = option(
        10, "messages of each seed and size, or with --num_rounds trainings", min=1
    )
    local_steps: int = option(
        1,
        "steps of gradient descent in a message, all over the same rows",
        min=1,
        of={"num_rounds": (0,)},
    )
    step_rows: int = option(
        0,
        "rows of a step where each row is in one of them, of an epoch; 0: all in each",
        min=0,
        of={"num_rounds": (0,)},
    )
    learning_rate: float = option(
        0.1,
        "of --local_steps and --step_rows, and of the steps of --num_rounds",
        above=0,
    )
    num_rounds: int = option(
        0,
        "of a training by --clients, of which the first one's rows are read from its "
        "messages; 0: rows are read from one message",
        min=0,
    )
    clients: int = option(
        6, "of --num_rounds, each with its rows", min=1, of={"num_rounds": ()}
    )
    sum_of: int = option(
        1,
        "with --num_rounds: clients of whose messages the adversary sees the sum alone "
        "(secure aggregation)",
        min=1,
        of={"num_rounds": ()},
    )
    messages: int = option(
        40,
        "of --num_rounds that are looked at, evenly from the first to the last",
        min=1,
        of={"num_rounds": ()},
    )
    searches: int = option(
        40,
        "with --num_rounds: for the rows of the messages, at most",
        min=1,
        of={"num_rounds": ()},
    )
    hidden: tuple[int, ...] = option(
        (100, 100),
        "hidden widths of the network; from the second layer on it is attacked best",
        min=1,
    )
    activation: Literal["relu", "gelu"] = option("relu", "of hidden layers")
    norm: Literal["none", "layernorm"] = option(
        "none", "of hidden layers, before the activation"
    )
    initialisation: Literal["torch", "lecun", "glorot"] = option(
        "torch", "of the network"
    )
    tolerance: float = option(
        0.319, "deviations that a number may be off to count as read", min=0
    )
    combinations: int = option(
        200_000,
        "without --num_rounds: of categories, that are looked at in a turn",
        min=1,
        of={"num_rounds": (0,)},
    )
    matching: int = option(
        0,
        "searches of TabLeak's gradient matching, to which targets are told, that are "
        "pooled for each message of one step, beside the attack; 0: none",
        min=0,
    )
    matching_iterations: int = option(
        1500, "of a search of --matching", min=1, of={"matching": ()}
    )
    seeds: tuple[int, ...] = several((0, 1, 2), "repetitions", min=0, max=2**20)


class Settings(NamedTuple):
    """The configuration of a run."""

    data: DataConfig
    run: RunConfig

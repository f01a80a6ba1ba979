"""What the program can be told."""

import dataclasses
from typing import Literal, NamedTuple

from fljax.driver.image_flags import ImageFlags
from fljax.driver.option import RunFlags, option, several

Order = Literal["shuffled", "fixed"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig(ImageFlags):
    """Prefix `data`."""

    name: str = option("digits", "images, see fljax.data.image_names()")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig(RunFlags):
    """No prefix."""

    clients: int = option(4, "clients, whose updates are summed", min=2)
    rows: int = option(12, "of each client", min=1)
    batch_size: int = option(3, "rows of a local step", min=1)
    local_steps: int = option(2, "of a client in a round", min=1)
    num_rounds: int = option(20, "of a training", min=1)
    trainings: tuple[int, ...] = several(
        (1, 2), "how many trainings of the same rows are seen", min=1
    )
    orders: tuple[Order, ...] = several(
        ("shuffled", "fixed"),
        "of a client's rows: shuffled before every epoch, or always the same",
    )
    hidden: int = option(100, "width of the one hidden layer", min=1)
    learning_rate: float = option(0.1, "of the clients", above=0)
    seeds: tuple[int, ...] = several((0, 1, 2), "repetitions", min=0, max=2**20)


class Settings(NamedTuple):
    """The configuration of a run."""

    data: DataConfig
    run: RunConfig

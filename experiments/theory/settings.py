"""What the program of Theorem 1 can be told."""

import dataclasses
from typing import Literal, NamedTuple

from fljax.driver.option import RunFlags, option, several
from fljax.memory import MOST_ROUNDS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(RunFlags):
    """The client, the centre of the sweeps, and their values. No prefix."""

    rows: int = option(128, "rows S_c of the client", min=2)
    params: int = option(6, "parameters d, the intercept included", min=2)
    target_noise: float = option(0.5, "standard deviation of the targets' noise", min=0)
    spread: float = option(1.0, "standard deviation of the sent models", above=0)
    offset: float = option(
        1.0, "distance of their mean from the local optimum, in spreads", min=0
    )
    samplings: tuple[Literal["shuffled", "independent"], ...] = several(
        ("shuffled", "independent"),
        "mini-batches: epochs without replacement, or every step drawn anew",
    )
    learning_rate: float = option(0.02, "eta of the other sweeps", above=0)
    batch_size: int = option(32, "B of the other sweeps", min=1)
    local_epochs: int = option(1, "E of the other sweeps", min=1)
    num_messages: int = option(128, "n_c of the other sweeps", min=1, max=MOST_ROUNDS)
    learning_rates: tuple[float, ...] = option(
        (0.005, 0.01, 0.02, 0.05, 0.1, 0.2), "sweep of eta", above=0
    )
    batch_sizes: tuple[int, ...] = option((4, 8, 16, 32, 64), "sweep of B", min=1)
    epochs: tuple[int, ...] = option((1, 2, 4, 8), "sweep of E", min=1)
    messages: tuple[int, ...] = option(
        (16, 32, 64, 128, 256, 512, 1024, 2048),
        "sweep of n_c",
        min=1,
        max=MOST_ROUNDS,
    )
    probability: float = option(
        0.05, "delta: how often the bound may fail", above=0, below=1
    )
    seeds: tuple[int, ...] = several(tuple(range(10)), "seeds", min=0, max=2**32 - 1)


class Settings(NamedTuple):
    """All that the program can be told."""

    run: Config

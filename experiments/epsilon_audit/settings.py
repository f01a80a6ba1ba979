"""What `experiments.epsilon_audit` can be told."""

import dataclasses
from typing import Literal, NamedTuple

from fljax.driver.config import ConfigError
from fljax.driver.option import RunFlags, option, several
from fljax.memory import MOST_ROUNDS
from fljax.privacy.audits import OBSERVERS, Canary, Observer
from fljax.privacy.audits.canaries import Kind, Neighbours

Planted = Literal[
    "gradient", "gradient:replace", "row", "row:sensitive", "mislabelled",
    "mislabelled:replace", "outlier", "outlier:replace", "client", "client:replace",
]  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Prefix `data`."""

    name: Literal["diabetes", "medical", "breast_cancer"] = option(
        "diabetes", "tabular data with a sensitive column"
    )
    dir: str | None = option(None, "folder with local copies of the data files")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(RunFlags):
    """No prefix."""

    mode: Literal["many", "one_run"] = option(
        "many",
        "many: trainings of which every second has one canary; one_run: one training with "
        "many canaries, each in by a coin of its own, which needs a delta far below one "
        "over their number",
    )
    trainings: int = option(
        1000, "independent trainings of each canary and epsilon; one_run: not used",
        min=100, max=10**6,
    )  # fmt: skip
    planted: int = option(
        100,
        "canaries of one_run, rows of all clients in turn; of clients all",
        min=20,
        of={"mode": ("one_run",)},
    )
    canaries: tuple[Planted, ...] = several(
        ("gradient",),
        "what is planted in every second training; after a colon what it is compared "
        "with, else nothing in its place. `client` audits Fed-SDP, all others DP-SGD",
    )
    epsilons: tuple[float, ...] = several(
        (1.0, 2.0, 4.0),
        "budgets that the noise keeps, a unit added or removed",
        above=0,
    )
    delta: float = option(0.1, "delta of both sides", above=0, below=1)
    confidence: float = option(0.95, "of each lower bound", above=0.5, below=1)
    observers: tuple[Observer, ...] = several(OBSERVERS, "who is asked")
    num_rounds: int = option(100, "rounds", min=1, max=MOST_ROUNDS)
    local_steps: int | None = option(
        None, "of a round, each of which the account counts; none: an epoch", min=1
    )
    clients: int = option(2, "clients, all in every round", min=1)
    batch_size: int = option(32, "rows of a mini-batch, drawn one by one", min=1)
    learning_rate: float = option(0.01, "of the clients' SGD", above=0)
    clip: float = option(1.0, "C, of a gradient or of each array of an update", above=0)
    hidden: int = option(128, "hidden units", min=1)
    seed: int = option(0, "of all trainings", min=0, max=2**32 - 1)


class Settings(NamedTuple):
    """All that the program can be told."""

    data: DataConfig
    run: Config


def canary(planted: Planted, values=None) -> Canary:
    """The canary that a flag names.

    Args:
      planted: kind, and after a colon what it is compared with.
      values: `[2, W]` of the sensitive column.
    """
    kind, _, compared = planted.partition(":")
    kinds: dict[str, Kind] = {
        each: each for each in ("gradient", "row", "mislabelled", "outlier", "client")
    }  # type: ignore[assignment]
    others: dict[str, Neighbours] = {
        "": "remove", "replace": "replace", "sensitive": "sensitive"
    }  # fmt: skip
    told = values if compared == "sensitive" else None
    return Canary(kinds[kind], others[compared], values=told)


def check(settings: Settings) -> None:
    """Refuses what no bound could come of.

    Raises:
      ConfigError: naming the flag.
    """
    run = settings.run
    if len({f"{budget:g}" for budget in run.epsilons}) < len(run.epsilons):
        raise ConfigError(
            f"--epsilons: expected budgets that differ in six digits, got {run.epsilons}"
        )
    if "client" in run.canaries and run.clients < 2 and "messages" not in run.observers:
        raise ConfigError("--clients: a client alone is seen in its messages only")
    if run.mode == "many":
        return
    whole = any(name.startswith("client") for name in run.canaries)
    counts = {"--planted": run.planted} | ({"--clients": run.clients} if whole else {})
    for flag, count in counts.items():
        if run.delta * count > 0.1:
            raise ConfigError(
                f"--delta: one training proves nothing at {run.delta:g}, expected 0.1 / "
                f"{flag} = {0.1 / count:.3g} at most"
            )
    if run.clients < 20 and whole:
        raise ConfigError("--clients: expected 20 at least, each of which is a canary")

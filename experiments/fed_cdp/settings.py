"""What `experiments.fed_cdp` can be told, and what Wei et al. (2021) chose.

Several values of clients, percent and the numbers of a defense are a grid, every point of
which is trained; learning rates are tuned. What is left at none is the paper's choice for the
data (Table I), which gives every data set B / N_i = 0.01 and L = N_i / B, one epoch. It
gives no learning rate, no widths for the tables, and no size of the federation beside
Table II's.
"""

import dataclasses
import math
from typing import Literal, NamedTuple

from experiments import defense_options
from fljax import accelerators
from fljax.driver.config import ConfigError
from fljax.driver.image_flags import ImageFlags
from fljax.driver.option import RunFlags, filled, option, several
from fljax.memory import MOST_ROUNDS


class Size(NamedTuple):
    """The federation of a data set, and the clients side by side that suit a CPU."""

    rows_per_client: int
    batch_size: int
    local_steps: int
    num_rounds: int
    partition: str
    lanes: int


SIZES = {
    "digits": Size(50, 5, 10, 10, "classes", 1),
    "mnist": Size(500, 5, 100, 100, "classes", 1),
    "cifar10": Size(400, 4, 100, 100, "classes", 1),
    "lfw": Size(300, 3, 100, 60, "few_classes", 1),
    "adult": Size(300, 3, 100, 10, "random", 10),
    "breast_cancer": Size(400, 4, 100, 3, "random", 10),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig(ImageFlags):
    """Prefix `data`."""

    name: Literal["digits", "mnist", "cifar10", "lfw", "adult", "breast_cancer"] = (
        option("digits", "data set; digits needs no file")
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(RunFlags):
    """No prefix."""

    defense: str = option("none; fed_cdp(clip=4, sigma=6)", defense_options.SEVERAL)
    clients: tuple[int, ...] = several((100,), "numbers of clients K", min=1)
    percent: tuple[float, ...] = several(
        (10.0,), "percent of the clients in a round, K_t / K", above=0, max=100
    )
    delta: float = option(1e-5, "delta of every epsilon", above=0, below=1)
    learning_rates: tuple[float, ...] = several(
        (0.05,), "rates tried, of which validation rows choose per point", above=0,
        below=math.inf,
    )  # fmt: skip
    tuning_seeds: int = option(
        1, "first seeds on which every rate is tried; the others take the best", min=1
    )
    tuning_rounds: int | None = option(
        None, "rounds after which rates are compared; none: the last", min=1
    )
    seeds: tuple[int, ...] = several((0,), "seeds", min=0, max=2**32 - 1)
    num_rounds: int | None = option(None, "rounds T", min=1, max=MOST_ROUNDS)
    local_steps: int | None = option(None, "local steps L", min=1)
    batch_size: int | None = option(None, "rows per batch B", min=1)
    rows_per_client: int | None = option(None, "rows of each client N_i", min=1)
    partition: (
        Literal["classes", "buckets", "few_classes", "random", "copies"] | None
    ) = option(
        None,
        "how rows are dealt: classes_per_client each; buckets of sorted rows as the "
        "paper's code; few_classes of unequal size; random; copies of all rows",
    )
    classes_per_client: int | None = option(
        None, "classes, few_classes: of each client; none: 2, lfw 15", min=1
    )
    batches: Literal["fixed", "poisson"] = option(
        "fixed",
        "disjoint batches in one order, as the code; or every row by chance, which "
        "defenses that rest on it always have",
    )
    participation: Literal["fixed", "poisson"] = option(
        "fixed", "a fixed number of clients in each round, as the code, or by chance"
    )
    divisor: Literal["participants", "one_less"] = option(
        "participants",
        "what the sum of a round's models is divided by; one_less as the paper's code, "
        "so that weights grow by K_t / (K_t - 1) every round",
    )
    hidden: tuple[int, ...] = option((100, 100), "tables: hidden widths", min=1)
    biases: bool = option(False, "layers have biases, each clipped apart")
    eval_every: int = option(1, "rounds between two evaluations of the model", min=1)
    eval_rows: int | None = option(
        None,
        "validation rows of an evaluation, for curves and tuning; none: all",
        min=1,
    )
    propositions: bool = option(
        False,
        "measure Propositions 1 and 2 as well: how classes are drawn, and how much "
        "noise the last model bears",
    )
    probed: int = option(100, "clients whose gradient norms are measured", min=1)
    lanes: int | None = option(
        None,
        "clients side by side on a device; none: the fastest for the data and the device",
        min=1,
    )
    paper_table: Literal["table1", "table2", "table3", "table4", "table5"] | None = (
        option(None, "table of Wei et al. to show beside the results")
    )


class Settings(NamedTuple):
    """All that the program was told, with nothing left at none that has a default."""

    data: DataConfig
    run: Config


def complete(settings: Settings) -> Settings:
    """Fills in the paper's choices and refuses what does not fit together.

    Raises:
      ConfigError: naming the flag.
    """
    run = filled(settings.run, SIZES[settings.data.name])
    if accelerators.used():  # the schedule chooses, by who takes part
        run = dataclasses.replace(run, lanes=settings.run.lanes)
    few = 15 if settings.data.name == "lfw" else 2
    if run.classes_per_client is None:
        run = dataclasses.replace(run, classes_per_client=few)
    _check_effects(settings.data.name, run, few)
    tuning_rounds = run.tuning_rounds or run.num_rounds
    if tuning_rounds > run.num_rounds:
        raise ConfigError(
            f"--tuning_rounds: expected at most --num_rounds={run.num_rounds}, "
            f"got {tuning_rounds}"
        )
    run = dataclasses.replace(run, tuning_rounds=tuning_rounds)
    if (run.divisor, run.participation) == ("one_less", "poisson"):
        raise ConfigError(
            "--divisor=one_less: expected --participation=fixed, got poisson"
        )
    if run.partition != "copies" and run.batch_size > run.rows_per_client:
        raise ConfigError(
            f"--batch_size: expected at most --rows_per_client={run.rows_per_client}, "
            f"got {run.batch_size}"
        )
    return settings._replace(run=run)


def _check_effects(data_name: str, run: Config, few: int) -> None:
    """Refuses what would change nothing, for the partition or the data."""
    dealt = run.partition in ("classes", "few_classes")
    if not dealt and run.classes_per_client != few:
        raise ConfigError(
            f"--classes_per_client={run.classes_per_client}: is of --partition=classes or "
            f"few_classes, got {run.partition}"
        )
    tables = data_name in ("adult", "breast_cancer")
    if not tables and run.hidden != Config().hidden:
        widths = ",".join(map(str, run.hidden))
        raise ConfigError(
            f"--hidden={widths}: is of --data_name=adult or breast_cancer, got {data_name}"
        )

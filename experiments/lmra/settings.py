"""What `experiments.lmra` can be told, and what Xu & Neglia (2021) left open.

OPEN in the paper: the number of rounds, where training starts, how Adam solves eqs. (6)
and (7), and how their inputs are scaled; each is a flag. `--search` looks for rounds and
start whose last returned models come nearest to the printed ones.
"""

import dataclasses
from typing import Literal, NamedTuple

from fljax.driver.config import ConfigError
from fljax.driver.option import RunFlags, option, several
from fljax.memory import MOST_ROUNDS

Method = Literal["mlp", "affine", "simulated"]
_LEAF = {"name": ("leaf_synthetic",)}
ATTACKS = {
    "mlp": "decoded",
    "affine": "decoded_affine",
    "simulated": "decoded_simulated",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Prefix `data`."""

    name: Literal["leaf_synthetic", "adult"] = option(
        "leaf_synthetic", "Table 1, needs no file; or Figure 1"
    )
    dir: str | None = option(None, "folder with local copies of the data files")
    sizes: tuple[int, ...] = option(
        (280, 184, 1536, 256, 208), "leaf_synthetic: training rows of each client",
        min=2, of=_LEAF,
    )  # fmt: skip
    generator: Literal["code", "text"] = option(
        "code",
        "leaf_synthetic: as its public code draws, or as its text says, which makes "
        "labels easier to guess",
        of=_LEAF,
    )
    missing: Literal["category", "drop"] = option(
        "category",
        "adult: unknown values are a category, or their rows are dropped",
        of={"name": ("adult",)},
    )
    held_out: float = option(
        0.1,
        "share of each client's rows that are held out of training",
        above=0,
        below=1,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(RunFlags):
    """No prefix."""

    num_rounds: int = option(50, "rounds T", min=2, max=MOST_ROUNDS)
    record_every: int = option(
        1, "rounds from one message that the adversary keeps to the next", min=1
    )
    local_steps: tuple[int, ...] = several((1,), "local steps of a round", min=1)
    batch_sizes: tuple[int, ...] = several((256,), "rows of a mini-batch", min=1)
    learning_rate: float = option(0.01, "local learning rate", above=0)
    start_scales: tuple[float, ...] = several(
        (0.0,), "standard deviations of the first model's parameters", min=0
    )
    proximal: float | None = option(None, "mu of FedProx; none: FedAvg", min=0)
    percent: float = option(
        100.0, "percent of the clients in a round, drawn anew", above=0, max=100
    )
    weights: Literal["rows", "uniform"] = option("rows", "of clients in the mean")
    attacked: int | None = option(
        None, "first clients, to be attacked; none: all", min=1
    )
    mappings: tuple[Method, ...] = several(
        ("mlp", "affine", "simulated"),
        "G: the paper's MLP; a regression; a client of learned rows",
    )
    units: int = option(1000, "mlp: hidden units", min=1)
    fit_rate: float = option(1e-3, "mlp: Adam's rate for eq. (6)", above=0)
    fit_iterations: int = option(2000, "mlp: its iterations", min=1)
    decode_rate: float = option(1e-2, "mlp: Adam's rate for eq. (7)", above=0)
    decode_iterations: int = option(2000, "mlp: its iterations", min=1)
    scaling: Literal["standardised", "raw"] = option(
        "standardised", "mlp: inputs and targets"
    )
    rcond: float = option(
        1e-5, "affine: singular values below it, over the largest, are zero; also the "
        "cut-off of the directions that are counted", above=0, below=1,
    )  # fmt: skip
    rows: int = option(30, "simulated: rows of a client that is learned", min=1)
    ensemble_size: int = option(
        8, "simulated: such clients, whose mean is decoded", min=1
    )
    average: int = option(
        1, "simulated: consecutive messages that are averaged first", min=1
    )
    iterations: int = option(150, "simulated: Levenberg-Marquardt steps", min=1)
    damping: float = option(1e-4, "simulated: pull towards the last model sent", min=0)
    floor: float = option(
        3e-5, "simulated: least noise assumed, over the size of the deltas", above=0
    )
    spread: float = option(
        1.0, "simulated: prior standard deviation of the inputs", above=0
    )
    shared_spread: float = option(
        1.0,
        "simulated: prior standard deviation of an offset that a client's inputs share",
        min=0,
    )
    slope: float = option(
        2.0,
        "simulated: prior standard deviation of the coefficients that make the labels",
        above=0,
    )
    ridge: float = option(
        1e-6, "L2 penalty that makes local optima finite", above=0
    )  # fmt: skip
    search: bool = option(
        False, "no attack: last returned accuracies by rounds and start"
    )
    search_rounds: tuple[int, ...] = several(
        (5, 10, 15, 20, 30, 50, 100), "search: rounds T", min=1, max=MOST_ROUNDS,
        of={"search": (True,)},
    )  # fmt: skip
    seeds: tuple[int, ...] = several((0, 1), "draws", min=0, max=2**32 - 1)
    paper_table: Literal["table1"] | None = option(
        None, "table of Xu & Neglia to show beside the results"
    )


class Settings(NamedTuple):
    """All that the program was told."""

    data: DataConfig
    run: Config


class Case(NamedTuple):
    """One federation: what is swept."""

    local_steps: int
    batch_size: int
    start_scale: float

    def setting(self, run: Config) -> str:
        """Its name in the rows: the local steps and whatever else is swept."""
        parts = [f"local_steps={self.local_steps}"]
        if len(run.batch_sizes) > 1:
            parts.append(f"batch_size={self.batch_size}")
        if len(run.start_scales) > 1:
            parts.append(f"start_scale={self.start_scale:g}")
        return ";".join(parts)


def cases(run: Config) -> list[Case]:
    """All federations."""
    return [
        Case(steps, batch, scale)
        for scale in run.start_scales
        for batch in run.batch_sizes
        for steps in run.local_steps
    ]


def complete(settings: Settings) -> Settings:
    """Refuses what does not fit together.

    Raises:
      ConfigError: naming the flag.
    """
    clients = len(settings.data.sizes) if settings.data.name == "leaf_synthetic" else 10
    attacked = settings.run.attacked or clients
    if attacked > clients:
        raise ConfigError(f"--attacked: expected at most {clients}, got {attacked}")
    run = dataclasses.replace(settings.run, attacked=attacked)
    if run.search:
        run = dataclasses.replace(run, num_rounds=max(run.search_rounds))
    _check_printed(settings.data, run, clients)
    kept = (run.num_rounds - 1) // run.record_every + 1
    if run.average > kept:
        raise ConfigError(
            f"--average: expected at most the {kept} messages, got {run.average}"
        )
    if run.search and run.record_every > 1:
        raise ConfigError("--record_every: --search looks at every round")
    if run.percent < 100 and run.record_every > 1:
        raise ConfigError(
            f"--record_every: expected 1 with --percent={run.percent:g}, for a client's "
            f"last message may be of any round, got {run.record_every}"
        )
    if run.search and len(run.batch_sizes) > 1:
        raise ConfigError("--batch_sizes: --search is of one batch size")
    if run.proximal and "simulated" in run.mappings and not run.search:
        raise ConfigError(
            "--proximal: the mapping simulated takes plain steps for granted; "
            "--mappings=mlp,affine do without it"
        )
    return Settings(settings.data, run)


def _check_printed(chosen: DataConfig, run: Config, clients: int) -> None:
    """Whether clients are those of Table 1, where they stand beside it."""
    flag = "--search" if run.search else "--paper_table"
    if not run.search and run.paper_table is None:
        return
    if chosen.name != "leaf_synthetic":
        raise ConfigError(f"{flag}: Table 1 is on --data_name=leaf_synthetic")
    if chosen.sizes != DataConfig().sizes:
        raise ConfigError(
            f"{flag}: Table 1 is of --data_sizes={','.join(map(str, DataConfig().sizes))}"
        )
    if run.attacked != clients:
        raise ConfigError(
            f"{flag}: Table 1 is of all {clients} clients, not --attacked"
        )

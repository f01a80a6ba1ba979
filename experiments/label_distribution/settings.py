"""What `experiments.label_distribution` can be told, and what Rajani et al. (2023) chose.

What is left at none is the paper's choice for the data; `digits`, which the paper does
not have, is in little. OPEN in the paper: samples of a shadow client (500, as in its
FedAvg), the optimiser of clients (its ClientUpdate is plain SGD), architectures, and
whether the shadow clients have the noise that the clients have (`--attackers`).
"""

import dataclasses
from typing import Literal, NamedTuple

from experiments import defense_options
from fljax.driver.config import ConfigError
from fljax.driver.image_flags import ImageFlags
from fljax.driver.option import RunFlags, filled, option, several
from fljax.memory import MOST_ROUNDS

Attacker = Literal["aware", "unaware"]


class Size(NamedTuple):
    """Of a data set's meta-dataset and federation."""

    model: str
    train_clients: int
    basis_clients: int
    test_clients: int
    rows_per_client: int
    learning_rate: float
    hidden: tuple[int, ...]
    predictor_hidden: tuple[int, ...]
    num_rounds: int
    clients: int
    trials: int


SIZES = {
    "digits": Size("mlp", 600, 200, 200, 96, 0.05, (32,), (128,) * 8, 40, 20, 2),
    "mnist": Size(
        "mlp", 10_000, 2000, 2000, 500, 1e-4, (128,), (1000,) * 8, 500, 100, 8
    ),
    "cifar10": Size(
        "cnn", 10_000, 2000, 2000, 500, 1e-3, (128,), (1000,) * 8, 500, 100, 8
    ),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig(ImageFlags):
    """Prefix `data`."""

    name: Literal["digits", "mnist", "cifar10"] = option(
        "digits", "images; digits needs no file"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(RunFlags):
    """No prefix."""

    study: Literal["attack", "clusters"] = option(
        "attack", "the attack under each defense; or Figures 2 to 4, what clusters"
    )
    model: Literal["mlp", "cnn", "autoencoder"] | None = option(
        None, "clients' model; none: cnn for cifar10, else mlp"
    )
    hidden: tuple[int, ...] | None = option(None, "mlp: hidden widths", min=1)
    alphas: tuple[float, ...] = several(
        (0.1, 1.0, 10.0, 100.0, 1000.0), "concentrations of label distributions",
        above=0,
    )  # fmt: skip
    train_clients: int | None = option(None, "shadow clients to learn from", min=1)
    basis_clients: int | None = option(None, "shadow clients to fit the PCA on", min=2)
    test_clients: int | None = option(None, "clients to attack", min=2)
    rows_per_client: int | None = option(None, "rows of every client", min=1)
    batch_size: int = option(32, "rows per batch B", min=1)
    local_epochs: int = option(1, "local epochs E", min=1)
    learning_rate: float | None = option(None, "clients' learning rate", above=0)
    optimiser: Literal["sgd", "adam"] = option("sgd", "of the clients")
    attack_round: int = option(0, "round whose messages are attacked", min=0)
    path_steps: int = option(
        0, "simulated_path: simulated steps of a round; 0: it is not run", min=0
    )
    components: int = option(10, "principal components", min=1)
    predictor_hidden: tuple[int, ...] | None = option(None, "its widths", min=1)
    predictor_epochs: int = option(20, "passes over the shadow clients", min=1)
    predictor_rate: float = option(1e-3, "of Adam, at the start", above=0)
    predictor_batch: int = option(64, "shadow clients per step", min=1)
    defense: str = option("none", defense_options.SEVERAL)
    attackers: tuple[Attacker, ...] = several(
        ("aware",), "whether shadow clients train with the clients' defense"
    )
    delta: float = option(1e-5, "delta of every epsilon", above=0, below=1)
    num_rounds: int | None = option(
        None,
        "FedAvg rounds for the utility; 0: it is not measured",
        min=0,
        max=MOST_ROUNDS,
    )
    clients: int | None = option(None, "clients K of this FedAvg", min=1)
    percent: float = option(10.0, "percent of them in a round", above=0, max=100)
    trials: int | None = option(None, "trainings of this FedAvg", min=1)
    eval_every: int = option(50, "rounds between two evaluations of the model", min=1)
    eval_rows: int | None = option(2000, "test rows of an evaluation; none: all", min=1)
    cluster_clients: int = option(
        100, "clusters: clients", min=20, of={"study": ("clusters",)}
    )
    cluster_alpha: float = option(
        0.2, "clusters: concentration", above=0, of={"study": ("clusters",)}
    )
    chunk: int = option(256, "shadow clients in memory at a time", min=1)
    kept: int = option(256, "rows of the sketch of the PCA", min=1)
    lanes: int = option(4, "shadow clients side by side on a device", min=1)
    seeds: tuple[int, ...] = several((0,), "seeds", min=0, max=2**32 - 1)


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
    _check(run)
    if settings.run.hidden is not None and run.model != "mlp":
        raise ConfigError(f"--hidden: is of --model=mlp, got {run.model}")
    return settings._replace(run=run)


def _check(run: Config) -> None:
    most = min(run.kept, run.basis_clients - 1)
    if run.components > most:
        raise ConfigError(
            f"--components: expected at most --kept and fewer than --basis_clients, "
            f"{most}, got {run.components}"
        )
    if run.study == "clusters" and run.defense != "none":
        raise ConfigError(
            f"--defense: expected none for --study=clusters, got {run.defense}"
        )
    if run.path_steps and run.optimiser != "sgd":
        raise ConfigError(
            "--path_steps: expected 0 for clients that do not use sgd, got "
            f"{run.path_steps}"
        )
    if run.chunk % run.lanes:
        raise ConfigError(
            f"--chunk: expected a multiple of --lanes={run.lanes}, got {run.chunk}"
        )
    if run.model == "autoencoder" and run.study == "attack" and run.num_rounds:
        raise ConfigError(
            "--num_rounds: expected 0 for an autoencoder, which names no class, got "
            f"{run.num_rounds}"
        )
    if run.test_clients < len(run.alphas):
        raise ConfigError(
            f"--test_clients: expected one for each of --alphas at least, got "
            f"{run.test_clients}"
        )

"""What a training of tabular clients can be told: data, partition, model, defense.

Each class becomes flags (`config.define`) with the prefix given here; a field's help is
the flag's help.
"""

import dataclasses
from typing import Literal

from experiments import defense_options
from fljax.driver.option import option
from fljax.memory import MOST_ROUNDS

_MOST_STEPS = 10**6  # in a round, or passes


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Prefix `data`. Options that a data set does not know are refused."""

    name: str = option("diabetes", "data set, see fljax.data.names()")
    dir: str | None = option(None, "folder with local copies of the data files")
    preset: str | None = option(
        None, "preprocessing preset; default: neural, or linear for --model_name=linear"
    )
    path: str | None = option(None, "csv: the file")
    target: str | None = option(None, "csv: column to predict")
    sensitive: str | None = option(
        None, "column that the attacks infer; more: --data_also_sensitive"
    )
    also_sensitive: tuple[str, ...] = option(
        (), "columns of categories that are inferred together with it"
    )
    numeric: tuple[str, ...] = option((), "csv: columns to take as numbers")
    categorical: tuple[str, ...] = option((), "csv: columns to take as categories")
    drop: tuple[str, ...] = option(
        (), "csv: columns that are no inputs; --partition_column may still name one"
    )
    missing: Literal["error", "drop", "impute"] | None = option(
        None,
        "csv: rows with missing values are an error (default), dropped, or imputed; "
        "without target or sensitive value they are dropped then, too",
    )
    missing_codes: tuple[str, ...] = option(
        (), "csv: cells without a value, such as ?; column=code in one column only"
    )
    separator: str | None = option(None, "csv: between cells, or tab (default ,)")
    decimal: Literal[".", ","] | None = option(None, "csv: decimal mark (default .)")
    thousands: str | None = option(
        None, "csv: mark between groups of three digits, or space (default none)"
    )
    encoding: str | None = option(None, "csv: of its text (default utf-8)")
    task: Literal["regression", "binary", "multiclass"] | None = option(
        None,
        "csv: what the target is, default by its values, text needs one; acs_income, "
        "acs_shaped, pums2016: regression, or binary for incomes above the median",
    )
    states: str | None = option(
        None, "acs_income: two-letter codes, or all; acs_shaped: all"
    )
    year: int | None = option(None, "acs_income: last year of the survey")
    horizon: Literal["1-Year", "5-Year"] | None = option(None, "acs_income: survey")
    features: Literal["all", "reduced"] | None = option(
        None, "acs_income, acs_shaped, pums2016: feature space"
    )
    largest_state: int | None = option(
        None,
        "acs_income, acs_shaped: rows of the largest state, others in proportion",
        min=1,
    )
    seed: int | None = option(None, "generated data: seed of the draw", min=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartitionConfig:
    """Prefix `partition`."""

    kind: Literal[
        "iid", "contiguous", "dirichlet", "label_shards", "by_column", "correlation",
        "dominant_label", "ordered", "sampled",
    ] = option("contiguous", "how rows are dealt to clients")  # fmt: skip
    clients: int | None = option(
        None, "number of clients, default 2; by_column: at most, default all", min=1
    )
    column: str | None = option(
        None, "by_column, ordered: raw column", of={"kind": ("by_column", "ordered")}
    )
    values: tuple[str, ...] = option(
        (), "by_column: whose rows are clients', default all; others are nobody's",
        of={"kind": ("by_column",)},
    )  # fmt: skip
    heterogeneity: float = option(
        0.0, "correlation: h", min=0, max=0.5, of={"kind": ("correlation",)}
    )
    alpha: float = option(
        1.0, "dirichlet: concentration", above=0, of={"kind": ("dirichlet",)}
    )
    shards: int = option(
        2, "label_shards: shards of each client", min=1, of={"kind": ("label_shards",)}
    )
    rows: int = option(
        100, "dominant_label, sampled: rows of each client", min=1,
        of={"kind": ("dominant_label", "sampled")},
    )  # fmt: skip
    share: float = option(
        0.8, "dominant_label: share of that label", min=0, max=1,
        of={"kind": ("dominant_label",)},
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Prefix `model`."""

    name: Literal["mlp", "linear"] = option("mlp", "model")
    hidden: tuple[int, ...] = option((128,), "mlp: hidden widths", min=1)
    initialisation: Literal["torch", "lecun"] = option(
        "torch", "distribution of the initial parameters"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """No prefix."""

    algorithm: Literal["fed_avg", "fed_sgd", "fed_prox"] = option(
        "fed_avg",
        "federated algorithm; fed_sgd takes one step on all of a client's rows, so "
        "batch_size, drop_last, local_epochs, local_steps, client_optimiser, "
        "optimiser_state and learning_rate_decay do not apply",
    )
    num_rounds: int = option(100, "communication rounds T", min=1, max=MOST_ROUNDS)
    local_epochs: int = option(1, "local epochs E", min=1, max=_MOST_STEPS)
    local_steps: int | None = option(
        None, "local steps instead of epochs", min=1, max=_MOST_STEPS
    )
    batch_size: int | None = option(32, "rows per mini-batch B; none: all", min=1)
    drop_last: bool = option(
        False, "leave out the rows behind the last full batch of an epoch"
    )
    learning_rate: float = option(1e-3, "client learning rate", above=0)
    learning_rate_decay: float = option(
        1.0, "what it is multiplied by after each round", above=0, max=1
    )
    client_optimiser: Literal["sgd", "momentum", "adam"] = option(
        "sgd", "client optimiser"
    )
    optimiser_state: Literal["new", "kept"] = option(
        "new",
        "momentum, adam: the client optimiser's state in each round, from zero or as its "
        "last round left it",
        of={"client_optimiser": ("momentum", "adam")},
    )
    dropout: float = option(
        0.0,
        "mlp: probability that a client drops a hidden unit, for each row and step",
        min=0,
        below=1,
    )
    proximal: float = option(
        0.01, "fed_prox: mu", min=0, of={"algorithm": ("fed_prox",)}
    )
    server_optimiser: Literal["sgd", "momentum", "adam"] = option(
        "sgd", "server optimiser on the mean delta"
    )
    server_learning_rate: float = option(1.0, "server learning rate", above=0)
    participation: Literal["all", "uniform", "poisson"] = option(
        "all", "which clients take part in a round"
    )
    fraction: float = option(
        1.0, "uniform, poisson: share of clients", above=0, max=1,
        of={"participation": ("uniform", "poisson")},
    )  # fmt: skip
    weights: Literal["rows", "uniform"] = option("rows", "weights of the clients")
    shuffle: bool = option(True, "reshuffle the rows in every local epoch")
    lanes: int | None = option(
        None, "clients side by side; none: chosen", min=1, max=128
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DefenseConfig:
    """No prefix."""

    defense: str = option(
        "none",
        f"{defense_options.HELP}. Alternatives of a clip, separated by |, are chosen "
        "from on held-out rows, for each seed",
    )
    delta: float = option(1e-5, "delta of every epsilon", above=0, below=1)
    stop_at_epsilon: float | None = option(
        None,
        "a client takes part no more once the next round would bring what it has spent "
        "(by Renyi divergences) above this; none: nobody stops",
        above=0,
    )

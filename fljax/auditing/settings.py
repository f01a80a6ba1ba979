"""Settings of an audit: files, model, how the clients train, how hard to look."""

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any, Literal, NamedTuple

from fljax.attacks.attribute import gradient_grid
from fljax.attacks.inversion import first_message as inversion
from fljax.attacks.label_distribution import first_message as label_distribution
from fljax.attacks.trajectory import clients, matching
from fljax.auditing import values, words
from fljax.driver.option import RunFlags, option, several

ATTACKS = (
    "model", "grad", "linear_inversion", "trajectory", "reconstruct",
    "label_distribution", "inversion",
)  # fmt: skip


def _required(help_: str):
    return dataclasses.field(metadata={"help": help_})


@dataclasses.dataclass(frozen=True, kw_only=True)
class FilesConfig:
    """No prefix: what was seen, and whose rows they are."""

    transcript: str = _required(
        "what the adversary saw: path without .npz, or a folder with one transcript"
    )
    known: str = _required("CSV file of rows, the true sensitive column among them")
    target: str = _required("column that the model predicts")
    sensitive: str = _required("column that the attacks infer; scores only read it")
    client_column: str | None = option(
        None,
        "column with the id of the client who has the row; rows of clients who are not "
        "audited serve for categories, means and deviations; texts need client_names in "
        "the recording's about; none: all are --client's",
    )
    client: tuple[int, ...] = option(
        (), "audited clients; default: all that the transcript and the rows have", min=0
    )
    proxy: str | None = option(
        None, "CSV file with the same columns: the adversary's own rows"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowsConfig:
    """No prefix: how the training made inputs of the columns."""

    numeric: tuple[str, ...] = option((), "columns to take as numbers")
    categorical: tuple[str, ...] = option((), "columns to take as categories")
    drop: tuple[str, ...] = option((), "columns that the model does not read")
    missing: Literal["error", "drop", "impute"] = option(
        "error",
        "rows with missing values are an error, dropped, or imputed; without target or "
        "sensitive value they are dropped then, too",
    )
    missing_codes: tuple[str, ...] = option(
        (), "cells without a value, such as ?; column=code in one column only"
    )
    separator: str = option(",", "between cells of the CSV files, or tab")
    decimal: Literal[".", ","] = option(".", "their decimal mark")
    thousands: str = option("", "mark between groups of three digits, or space")
    encoding: str = option("utf-8", "of their text")
    task: Literal["regression", "binary", "multiclass"] | None = option(
        None, "what the target is; default by its values, text needs one"
    )
    standardise: bool = option(
        False,
        "numbers and columns of two values have mean 0 and deviation 1 over the file",
    )
    standardise_target: bool = option(False, "so has the target")
    drop_first: bool = option(
        False, "the first category, in sorted order, has no input of its own"
    )
    binary_text: Literal["auto", "one", "two"] = option(
        "auto",
        "inputs of a column of two texts: one, which is 0 or 1; two, as "
        "pandas.get_dummies makes; auto: one, or two where only that fits the transcript",
    )
    input_order: Literal["file", "dummies", "neural", "linear"] = option(
        "file",
        "inputs in the order of the file's columns; those of texts last, as "
        "pandas.get_dummies has them; or as experiments.aia orders them in these presets",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """No prefix: the model and what clients do with it; none: as the transcript says."""

    model: str = _required(
        "linear, mlp:128, mlp:64,32 or package.module:attribute: a fljax.types.Model, or "
        "a function that is called and returns one; the module is imported, its code runs"
    )
    classes: int | None = option(
        None, "multiclass: outputs of the model; none: classes in the file", min=2
    )
    batch_size: int | None = option(
        None, "rows per mini-batch; 0: all of a client's rows", min=0
    )
    drop_last: bool | None = option(
        None,
        "whether clients leave out the rows behind the last full batch of an epoch; none, "
        "and not in the transcript: no",
    )
    learning_rate: float | None = option(None, "client learning rate", above=0)
    local_epochs: int | None = option(None, "local epochs", min=1)
    local_steps: int | None = option(None, "local steps instead of epochs", min=1)
    optimiser: str | None = option(
        None, "client optimiser: sgd, adam, ...; none, and not in the transcript: sgd"
    )
    momentum: float | None = option(None, "of the client optimiser", min=0, below=1)
    weight_decay: float | None = option(None, "of the client optimiser", min=0)
    optimiser_state: Literal["new", "kept"] | None = option(
        None,
        "momentum or moments in each round: new, from zero, or kept from the last one; "
        "none, and not in the transcript: new",
    )
    proximal: float | None = option(None, "fed_prox: mu", min=0)
    dropout: float | None = option(
        None,
        "probability that a client drops a unit, behind every hidden layer or where the "
        "model has nn.Dropout; none, and not in the transcript: 0",
        min=0,
        below=1,
    )
    loss: str | None = option(
        None,
        "of one row: squared, absolute, huber; logistic; cross_entropy; or "
        "package.module:attribute, a function (output, target) of your own, whose module "
        "is imported; none, and not in the transcript: the first for the target's task",
    )
    huber_delta: float | None = option(
        None, "huber: error from which it is linear; none: 1", above=0
    )
    pos_weight: float | None = option(
        None, "logistic: weight of a target of 1; none: 1", above=0
    )
    label_smoothing: float | None = option(
        None, "cross_entropy: weight spread over all classes; none: 0", min=0, below=1
    )
    defense: str | None = option(
        None,
        "that the clients trained with, for attacks to simulate: none, dp_sgd(clip=1, "
        "sigma=1), ...; none, and not in the transcript: not known",
    )
    delta: float | None = option(
        None,
        "of the defense's epsilon, if it names one, for its ceiling",
        above=0,
        below=1,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AuditConfig(RunFlags):
    """No prefix: which attacks, and how hard to look."""

    attacks: tuple[str, ...] = several(
        ATTACKS,
        "attacks to try: names or groups of fljax.attacks.registry, or "
        "package.module:attribute, an AttackSpec of your own, whose module is imported",
    )
    controls: tuple[Literal["imputation", "strangers", "others", "permuted"], ...] = (
        option(
            ("imputation", "strangers"),
            "what attacks must be better than, beside the most frequent value: imputation "
            "from the other columns, the same attack on rows that are not the client's, and "
            "(others) on the client's with other clients' messages, for strangers who differ; "
            "permuted shows it on the client's rows with their targets in random order",
        )
    )
    fail_on: tuple[words.Outcome, ...] = option(
        (), "outcomes with which the program ends with exit code 3, for a script"
    )
    most_values: int = values.most_values()
    seed: int = option(0, "of what attacks draw", min=0, max=2**32 - 1)
    grad_rounds: tuple[int, ...] = several(
        (1, 5, 10, 20, 50, 100), "grad: numbers of first messages tried", min=1
    )
    grad_learning_rates: tuple[float, ...] = several(
        (1e2, 1e3, 1e4, 1e5, 1e6), "grad: learning rates tried", above=0
    )
    grad_iterations: int = option(100, "grad: iterations", min=1)
    most_steps: int = option(
        10_000, "local steps of a message that attacks simulate, at most", min=1
    )
    path_steps: int = option(10, "trajectory: simulated steps of a local epoch", min=1)
    trajectory_iterations: int = option(240, "trajectory: steps of the search", min=1)
    shadow_clients: int = option(
        600, "label_distribution: made-up clients to learn from", min=8
    )
    inversion_rows: int = option(
        8, "inversion: rows of a message, at most, that are rebuilt", min=1
    )
    inversion_iterations: int = option(100, "inversion: iterations", min=1)
    inversion_starts: int = option(4, "inversion: searches, the best is kept", min=1)


GROUPS = (FilesConfig, RowsConfig, TrainingConfig, AuditConfig)


class Config(NamedTuple):
    """All that an audit is told."""

    files: FilesConfig
    rows: RowsConfig
    training: TrainingConfig
    audit: AuditConfig


def of_groups(make: Callable[[type], Any]) -> Config:
    """All groups, each made from its class."""
    return Config(*(make(group) for group in GROUPS))


def simulation(config: AuditConfig) -> clients.Settings:
    """How clients are simulated, and how long their rows are searched for."""
    return clients.Settings(
        epoch_steps=config.path_steps,
        search=matching.Settings(iterations=config.trajectory_iterations),
    )


def of_attacks(config: AuditConfig) -> dict[str, Hashable]:
    """Settings of each attack that has flags, by its name."""
    trajectory = simulation(config)
    return {
        "grad": gradient_grid.Settings(
            rounds=config.grad_rounds,
            learning_rates=config.grad_learning_rates,
            iterations=config.grad_iterations,
        ),
        "linear_inversion": trajectory,
        "trajectory": trajectory,
        "predictor": label_distribution.Settings(config.shadow_clients),
        "inversion": inversion.Settings(
            config.inversion_rows, config.inversion_iterations, config.inversion_starts
        ),
    }

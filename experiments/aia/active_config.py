"""What the active server and the oracle can be told; each class becomes flags."""

import dataclasses
from typing import Literal

from fljax.driver.option import option, several


@dataclasses.dataclass(frozen=True, kw_only=True)
class ActiveConfig:
    """Prefix `active`."""

    rounds: int = option(50, "attacked rounds", min=1)
    report: tuple[int, ...] = several(
        (10, 50), "numbers of attacked rounds to report, as settings active_K", min=1
    )
    start: int | None = option(
        None, "first attacked round, 1 or later; none: the one after training", min=1
    )
    trials: int = option(50, "trials of Adam's step size and decays", min=1)
    step_sizes: tuple[float, ...] = option(
        (0.1, 50.0), "smallest and largest step size of Adam that is tried", above=0
    )
    tuner: Literal["design", "optuna"] = option(
        "design",
        "how trials are chosen: a quasi-random design, all side by side, or one after "
        "another by Optuna's TPE, as in the paper",
    )
    objective: Literal["client_loss", "reported_loss"] = option(
        "client_loss",
        "what tuning minimises: the client's true training loss under the last forged "
        "model, as in the paper, or the loss that it reports in the last round",
    )
    choice: Literal["shared", "client"] = option(
        "shared", "one setting for all clients, as in the authors' code, or one each"
    )
    grad_rounds: tuple[int, ...] = several(
        (1, 2, 5, 10, 25, 50), "grad: numbers of first isolated rounds tried", min=1
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OracleConfig:
    """Prefix `oracle`."""

    trials: int = option(50, "trials of Adam's settings", min=1)
    epochs: int = option(200, "epochs of every trial", min=1)

"""What the program can be told: all that `experiments.aia` can, the grid, and wishes."""

import dataclasses
from typing import Literal, NamedTuple

from experiments import defense_options
from experiments.aia.setup import Settings as Training
from fljax.driver.option import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChoiceConfig:
    """No prefix."""

    defenses: str = option(
        "dp_sgd(clip=0.3|1|3, epsilon=0.5|1|2|4|8|16|32|64)",
        f"the grid: {defense_options.SEVERAL}; none is always among them",
    )
    tolerance: float = option(
        2.0,
        "points of held-out variation explained, below the best, that do not matter",
        min=0,
    )
    most_beyond: float | None = option(
        None,
        "percentage points that any adversary may have beyond imputation by the bound "
        "of the defense; none: only attacks that are run decide",
        min=0,
    )
    audit_trainings: int | None = option(
        None,
        "trainings of the first seed by which a defense's epsilon is audited, half with "
        "a gradient canary; none: no audit",
        min=100,
    )
    audited: Literal["recommended", "all"] = option(
        "recommended",
        "whose epsilon is audited: all that promise one, or this one",
        of={"audit_trainings": ()},
    )


Settings = NamedTuple(
    "Settings", [*Training.__annotations__.items(), ("choice", ChoiceConfig)]
)

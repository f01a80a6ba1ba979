"""How far a client trains in a round, from flags and a transcript's description.

The description is free text of a stranger: each field that is used is checked. Flags
go first. Fields: `batch_size` (null or 0: all rows), `learning_rate`, `local_epochs` or
`epochs`, `local_steps`, `client_optimiser`, `algorithm` and `defense`.
"""

from typing import Any, NamedTuple

import numpy as np

from fljax import packing
from fljax.auditing.settings import TrainingConfig
from fljax.transcript import TranscriptError


class Pace(NamedTuple):
    """How clients train, None where it is not known.

    Attributes:
      batch_size: rows per mini-batch, 0 for all rows.
      learning_rate: of the clients.
      epochs: local epochs.
      steps: local steps in place of epochs.
      optimiser: of the clients; not known counts as sgd.
      algorithm: fed_avg, fed_sgd, fed_prox or another name.
      defense: its name, `none` if none is named.
    """

    batch_size: int | None = None
    learning_rate: float | None = None
    epochs: int | None = None
    steps: int | None = None
    optimiser: str = "sgd"
    algorithm: str = "fed_avg"
    defense: str = "none"

    @property
    def missing(self) -> list[str]:
        """What has to be known before a round can be simulated, and is not."""
        needed = {"learning_rate": self.learning_rate}
        if self.steps is None:
            needed |= {"batch_size": self.batch_size, "local_epochs": self.epochs}
        return [name for name, value in needed.items() if value is None]

    def local_steps(self, sizes: np.ndarray) -> np.ndarray:
        """Local steps `[C]` of clients with so many rows, if nothing is missing."""
        batch = self.batch_size or None
        return packing.steps_per_round(sizes, batch, self.epochs or 1, self.steps)


def read(about: dict[str, Any], told: TrainingConfig, stem: str) -> Pace:
    """Joins both.

    Raises:
      TranscriptError: a field of the description is not what it should be.
    """
    found = {
        "batch_size": _count(about, "batch_size", stem, least=0),
        "learning_rate": _rate(about, stem),
        "epochs": _count(about, "local_epochs", stem) or _count(about, "epochs", stem),
        "steps": _count(about, "local_steps", stem),
        "optimiser": _name(about, "client_optimiser", "sgd", stem),
        "algorithm": _name(about, "algorithm", "fed_avg", stem),
        "defense": _name(about, "defense", "none", stem),
    }
    if "batch_size" in about and about["batch_size"] is None:
        found["batch_size"] = 0
    if found["algorithm"] == "fed_sgd":
        # One step of rate 1 on all rows; the server takes the real one.
        found |= {"batch_size": 0, "learning_rate": 1.0, "epochs": 1, "steps": None}
        found["optimiser"] = "sgd"
    given = {
        "batch_size": told.batch_size,
        "learning_rate": told.learning_rate,
        "epochs": told.local_epochs,
        "steps": told.local_steps,
        "optimiser": told.client_optimiser,
    }
    if told.local_epochs is not None and told.local_steps is None:
        found["steps"] = None
    return Pace(**found | {k: v for k, v in given.items() if v is not None})


def _count(about, name: str, stem: str, least: int = 1) -> int | None:
    value = about.get(name)
    if value is None or (type(value) is int and least <= value < 2**31):
        return value
    raise TranscriptError(
        f"{stem}.json: about, {name}: expected an integer >= {least}, got {value!r:.40}"
    )


def _rate(about, stem: str) -> float | None:
    value = about.get("learning_rate")
    if value is None:
        return None
    if type(value) in (int, float) and 0 < value < 1e30:  # False for NaN
        return float(value)
    raise TranscriptError(
        f"{stem}.json: about, learning_rate: expected a number > 0, got {value!r:.40}"
    )


def _name(about, name: str, default: str, stem: str) -> str:
    value = about.get(name) or default
    if isinstance(value, str) and value.isprintable() and len(value) <= 60:
        return value
    raise TranscriptError(
        f"{stem}.json: about, {name}: expected a name, got {value!r:.40}"
    )

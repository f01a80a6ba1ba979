"""How rows name the epsilons of a defense, and how a reader finds them again."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fljax.results import Row, summarise

# Unit of a guarantee -> what the names of its numbers begin with.
PREFIX = {"record": "", "client": "client_"}
_METRICS = (  # the tightest first, records before whole clients
    "epsilon_pld", "epsilon_rdp", "client_epsilon_pld", "client_epsilon_rdp",
)  # fmt: skip

EPSILON = "epsilon"  # of a training whose attack is a method: in one way of many
_DRAWN = "the noise that is drawn"


class Stated(NamedTuple):
    """An epsilon that rows state.

    Attributes:
      value: of the client with the largest one, a mean over seeds.
      of_client: whether it protects a whole client, not a record.
    """

    value: float
    of_client: bool

    @property
    def text(self) -> str:
        """The number, and whom it protects where that is no record."""
        return self.of_whom if self.of_client else f"{self.value:.3g}"

    @property
    def of_whom(self) -> str:
        """The number, and whom it protects."""
        return f"{self.value:.3g} of a {'client' if self.of_client else 'record'}"


def as_json(epsilon: float | None) -> float | str:
    """As manifests have it: a number, or what there is in place of one."""
    if epsilon is None or math.isnan(epsilon):
        return "no number"
    return float(epsilon) if math.isfinite(epsilon) else "infinite"


def drawn(unit: str) -> str:
    """Setting of the epsilon of the noise itself; `unit` as in its `NoiseSpec`."""
    return _DRAWN if unit == "record" else f"{_DRAWN} for a {unit}"


def drawn_for(setting: str) -> str:
    """The unit of such a setting, empty for another one."""
    unit = setting.removeprefix(_DRAWN).removeprefix(" for a ") or "record"
    return unit if setting == drawn(unit) else ""


def of_noise(rows: Sequence[Row]) -> dict[tuple[str, str, str], Stated]:
    """`(defense, point, method)` -> the epsilon of the noise itself, if it is finite."""
    found = {}
    for row in rows:
        unit = drawn_for(row.setting)
        if unit and row.metric == EPSILON and math.isfinite(row.value):
            at = row.defense, row.point, row.attack
            found[at] = Stated(row.value, of_client=unit == "client")
    return found


def stated(rows: Sequence[Row]) -> dict[tuple[str, str], Stated]:
    """`(defense, point)` -> the tightest epsilon, where there is a finite one.

    One of records goes before one of whole clients.
    """
    told = [row for row in rows if row.client == "all" and row.metric in _METRICS]
    found: dict[tuple[str, str], Stated] = {}
    for s in sorted(summarise(told), key=lambda s: _METRICS.index(s.row.metric)):
        value = s.estimate.mean
        if 0 <= value < 1e100:
            of_client = s.row.metric.startswith(PREFIX["client"])
            found.setdefault((s.row.defense, s.row.point), Stated(value, of_client))
    return found

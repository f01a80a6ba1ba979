"""What a run's rows tell of each attack: over all clients, of each, and its intervals."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from fljax.results import HALF_WIDTH, PAIRED_HALF_WIDTH, Row


class Measured(NamedTuple):
    """One attack by one metric.

    Attributes:
      row: its labels.
      totals: seed -> value over all clients.
      rows: seed -> number of rows.
      halves: seed -> half of its interval.
      clients: seed -> client -> row of the value.
      own_halves: the same of half of its interval over the client's rows.
      paired: the same of half of the interval of its gain over imputation.
    """

    row: Row
    totals: dict[int, float]
    rows: dict[int, int]
    halves: dict[int, float]
    clients: dict[int, dict[int, Row]]
    own_halves: dict[int, dict[int, Row]]
    paired: dict[int, dict[int, Row]]

    def perfect(self, best: float) -> "Measured":
        """The same of an attack that is right throughout.

        Args:
          best: what it has by the metric.
        """

        def exact(clients: dict[int, dict[int, Row]], value: float):
            return {
                seed: {
                    client: row._replace(value=value) for client, row in some.items()
                }
                for seed, some in clients.items()
            }

        return self._replace(
            totals=dict.fromkeys(self.totals, best),
            halves=dict.fromkeys(self.halves, 0.0),
            clients=exact(self.clients, best),
            own_halves=exact(self.own_halves, 0.0),
            paired={},
        )


def by_attack(rows: Sequence[Row], metric: str) -> dict[tuple[str, ...], Measured]:
    """What was measured by a metric: by defense, point, attack and setting."""
    found: dict[tuple[str, ...], Measured] = {}
    for row in rows:
        what = row.metric.removeprefix(metric)
        if what == row.metric or what not in ("", HALF_WIDTH, PAIRED_HALF_WIDTH):
            continue
        at = row.defense, row.point, row.attack, row.setting
        labels = row._replace(metric=metric, client="all")
        each = found.setdefault(at, Measured(labels, {}, {}, {}, {}, {}, {}))
        if isinstance(row.client, int):
            kept = {"": each.clients, HALF_WIDTH: each.own_halves}
            kept.get(what, each.paired).setdefault(row.seed, {})[row.client] = row
        elif what == HALF_WIDTH:
            each.halves[row.seed] = row.value
        elif not what:
            each.totals[row.seed] = row.value
            each.rows[row.seed] = row.n
    return {at: each for at, each in found.items() if each.totals}


def student(
    values, halves: Mapping[int, Row], clients: Sequence[int], level: float
) -> list[tuple[float, float]]:
    """Student's intervals at a level, from half widths of those of 95 %."""
    found = []
    for value, client in zip(values, clients, strict=True):
        row = halves.get(client)
        half = math.nan
        if row is not None:
            wide, usual = special.stdtrit(row.n - 1, 0.5 + np.array([level, 0.95]) / 2)
            half = row.value * float(wide / usual)
        found.append((value - half, value + half))
    return found

"""Results of a run: one row per number, a manifest, and summaries over seeds.

`rows.jsonl` holds one JSON object per number; nothing in it needs JAX to be read.
"""

import json
import math
import os
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fljax import files, metrics

# metric + this: half of a 95 % interval; likewise of a gain over imputation that is
# paired row by row.
HALF_WIDTH = "_half_width"
PAIRED_HALF_WIDTH = "_paired_half_width"

# How the names of metrics that are never negative end.
_NOT_NEGATIVE = (
    "loss", "error", "by_chance", "distance", "brier_score", "total_variation", "misfit",
    "divergence", "entropy", "mse", "_auc",
)  # fmt: skip
_EXPLAINED = ("explained_percent", "beyond_imputation_percent")
_AT_MOST_ONE = re.compile(r"^silhouette|_auc$|^ssim$|^total_variation$")


class Row(NamedTuple):
    """One number.

    Attributes:
      experiment: which program, e.g. `aia`.
      data: name of the data that it really ran on.
      model: name of the model.
      defense: name of the defense, `none` without.
      attack: name of the attack, or `majority` for a baseline.
      setting: `passive`, `active_10`, `oracle`, ... or `round_T` for training metrics.
      point: which point of a sweep, empty without one.
      seed: seed of the repetition.
      client: client id, or `all` for the mean over clients, weighted by rows or plain.
      metric: what was measured, with its unit in the name.
      value: the number.
      n: rows that it was measured on; of an audit's plain mean over clients, as many as
        that is worth (`metrics.rows_of_mean`).
    """

    experiment: str
    data: str
    model: str
    defense: str
    attack: str
    setting: str
    point: str
    seed: int
    client: int | str
    metric: str
    value: float
    n: int

    @property
    def repeated(self) -> "Row":
        """Equal of the rows that differ in seed, value and n alone."""
        return self._replace(seed=0, value=0.0, n=0)


class Labels(NamedTuple):
    """What the rows of one case have in common; fields are those of `Row`."""

    experiment: str
    data: str
    model: str
    defense: str = "none"
    point: str = ""

    def row(
        self,
        attack: str,
        setting: str,
        seed: int,
        metric: str,
        value: float,
        n: int,
        client: int | str = "all",
    ) -> Row:
        """One number.

        Args:
          attack: name, or of what it is compared with.
          setting: what the adversary has, or a baseline's.
          seed: of the training.
          metric: name, with its unit.
          value: the number.
          n: rows, images or clients that it is measured on.
          client: id; 'all' for a mean over clients.
        """
        return Row(
            *self[:4], attack, setting, self.point, seed, client, metric, float(value),
            int(n),
        )  # fmt: skip

    def by_client(
        self,
        attack: str,
        setting: str,
        seed: int,
        metric: str,
        values: Sequence[float],
        counts: Sequence[int],
        clients: Sequence[int] | None = None,
    ) -> list[Row]:
        """Each client's number, then their plain mean.

        Args:
          attack: as in `row`.
          setting: as in `row`.
          seed: as in `row`.
          metric: as in `row`.
          values: `[C]` the number of each client.
          counts: `[C]` rows that it is measured on.
          clients: `[C]` ids; None numbers them from 0.
        """
        where = attack, setting, seed, metric
        ids = range(len(values)) if clients is None else clients
        each = zip(ids, values, counts, strict=True)
        rows = [self.row(*where, v, n, int(client)) for client, v, n in each]
        return [*rows, self.row(*where, float(np.mean(values)), int(np.sum(counts)))]


class Summary(NamedTuple):
    """A number over all seeds.

    Attributes:
      row: a representative row; its seed and value mean nothing.
      estimate: mean, 95 % interval, median and number of seeds.
    """

    row: Row
    estimate: metrics.Estimate

    @property
    def shown(self) -> metrics.Estimate:
        """The estimate, its interval cut to what the metric can be."""
        return within(self.estimate, self.row.metric)


def write_rows(path: str | os.PathLike, rows: Iterable[Row]) -> None:
    """Writes `rows.jsonl` atomically; values that are not finite become null."""
    lines = (json.dumps(_plain(row), allow_nan=False) for row in rows)
    files.write_text(path, "".join(f"{line}\n" for line in lines))


def read_rows(path: str | os.PathLike) -> list[Row]:
    """Reads what `write_rows` wrote."""
    lines = pathlib.Path(path).read_text().splitlines()
    rows = (Row(**json.loads(line)) for line in lines)
    return [r._replace(value=math.nan) if r.value is None else r for r in rows]


def write_manifest(path: str | os.PathLike, manifest: dict[str, Any]) -> None:
    """Writes a JSON object atomically, a line for each of its names."""
    lines = (
        f" {json.dumps(name)}: {json.dumps(value, allow_nan=False)}"
        for name, value in manifest.items()
    )
    files.write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def summarise(rows: Sequence[Row]) -> list[Summary]:
    """Means over seeds of rows that differ in nothing else, in order of appearance."""
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.repeated, []).append(row)
    return [
        Summary(group[0], metrics.interval([row.value for row in group]))
        for group in groups.values()
    ]


def within(estimate: metrics.Estimate, metric: str) -> metrics.Estimate:
    """Cuts an interval to what a metric can be: for people, not for computing.

    Percentages lie between 0 and 100, but that what is explained may be less than
    nothing; losses, errors, distances and areas under a curve are not negative;
    silhouettes, areas under a curve and total variation are at most 1.
    """
    e, share = estimate, metric.endswith("_percent")
    positive = share and not metric.endswith(_EXPLAINED)
    low = min(0.0, e.mean) if positive or metric.endswith(_NOT_NEGATIVE) else -math.inf
    most = 100.0 if share else 1.0 if _AT_MOST_ONE.search(metric) else math.inf
    high = max(most, e.mean)
    return e._replace(low=max(e.low, low), high=min(e.high, high))


def finite(value: float) -> float | None:
    """A number as JSON has it; None for what is infinite or none."""
    return value if math.isfinite(value) else None


def _plain(row: Row) -> dict[str, Any]:
    return row._asdict() | {"value": finite(float(row.value))}

"""The picture of Figure 4 of Diana et al.: what is read of clients, by their size."""

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.report import kept
from experiments.report import lines as lines_lib
from experiments.report.documents import chart
from experiments.report.documents.chart import Line
from fljax import metrics
from fljax.driver.config import ConfigError
from fljax.metrics import Estimate
from fljax.results import Row, within

_RESULTS = "aia.fig4", "aia.fig4.gradients", "aia.fig4.gradients.active"
_LINES = {
    ("model", "active_50"): "active server, 50 further rounds",
    ("model", "passive"): "last message, model-based",
    ("grad", "passive"): "gradients, best cosine",
    ("grad", "active_50"): "active server, gradients",
    ("imputation", "baseline"): "imputation",
    ("majority", "baseline"): "most frequent value",
}


def draw() -> str:
    """The picture as SVG; a point is the clients of at most so many rows, each alike.

    Raises:
      ConfigError: no client's accuracy is kept.
    """
    rows = {
        (row.attack, row.setting, row.seed, row.client): row  # baselines are in both
        for name in _RESULTS
        for row in kept.read(name).rows
        if row.metric == lines_lib.ACCURACY and row.client != "all"
    }.values()
    if not rows:
        named = ", ".join(_RESULTS)
        raise ConfigError(f"picture: {named} have no accuracies of clients")
    lines = [
        Line(name, _by_size(own), of[1] == "baseline")
        for of, name in _LINES.items()
        if (own := [row for row in rows if (row.attack, row.setting) == of])
    ]
    return chart.svg(
        chart.Chart(
            "People whose sex is read, by the rows of their client, %",
            "rows of a client, at most", lines, {}, low=40, high=100, tick=10,
        )
    )  # fmt: skip


def _by_size(rows: Sequence[Row]) -> Mapping[float, Estimate]:
    """Largest number of rows -> mean over its clients, over seeds."""
    found: dict[float, dict[int, list[float]]] = {}
    for row in rows:
        most = float(1000 * 2 ** max(int(np.ceil(np.log2(row.n / 1000))), 0))
        found.setdefault(most, {}).setdefault(row.seed, []).append(row.value)
    return {
        most: within(
            metrics.interval([np.mean(each) for each in seeds.values()]),
            lines_lib.ACCURACY,
        )
        for most, seeds in found.items()
    }

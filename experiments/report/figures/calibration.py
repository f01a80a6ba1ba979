"""Whether an attack that says 90 % is right nine times in ten."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from experiments.report.figures import drawing, selection
from fljax import certainty, metrics
from fljax.results import Row

_MOST = 12  # lines, beyond which none can be told from another
_Bins = dict[float, list[Row]]


def calibration(rows: Sequence[Row]) -> Figure | None:
    """Accuracy of the rows of which an attack is equally sure, over all seeds.

    Larger marks are more rows; intervals are Wilson's over those of one seed, since seeds
    share people. None without an attack that has
    a posterior, or with too many for one figure.
    """
    lines: dict[str, _Bins] = {}
    for row in rows:
        sure = certainty.confidence_of(row.metric)
        if sure is not None and row.client == "all" and selection.is_drawn(row):
            lines.setdefault(drawing.label(row), {}).setdefault(sure, []).append(row)
    if not 0 < len(lines) <= _MOST:
        return None
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.axline((50, 50), slope=1, color="grey", ls="--")
    for (name, bins), look in zip(lines.items(), drawing.styles(), strict=False):
        places = sorted(bins)
        shares, counts = zip(*(_together(bins[at]) for at in places), strict=True)
        x, y = 100 * np.array(places), np.array(shares)
        seeds = len({row.seed for each in bins.values() for row in each})
        alone = [max(1, round(count / seeds)) for count in counts]
        ends = np.array([metrics.of_rows(*each) for each in zip(shares, alone)])
        reach = np.abs(ends.T - y)
        axes.errorbar(x, y, yerr=reach, color=look["color"], fmt="none", lw=0.6)
        sizes = 12 + 200 * np.array(counts) / sum(counts)
        axes.scatter(x, y, sizes, color=look["color"], marker=look["marker"])
        axes.plot(x, y, color=look["color"], lw=0.6, ls=look["ls"], label=name)
    axes.set_xlim(100 * min(min(bins) for bins in lines.values()) - 5, 101)
    axes.set_ylim(-2, 104)
    axes.set_xlabel("how sure the attack is of a row (%); dashed: as right as sure")
    axes.set_ylabel("named rightly (%), 95 %")
    axes.set_title(drawing.title(rows))
    drawing.name_lines(axes)
    return figure


def _together(rows: Sequence[Row]) -> tuple[float, int]:
    """Percent and number of the rows of all seeds."""
    count = sum(row.n for row in rows)
    return sum(row.value * row.n for row in rows) / max(count, 1), count

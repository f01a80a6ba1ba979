"""Whether an attack that says 90 % is right nine times in ten."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from experiments.report.figures import drawing, selection
from fljax import certainty
from fljax.results import Row, Summary, summarise

_MOST = 12  # lines, beyond which none can be told from another


def calibration(rows: Sequence[Row]) -> Figure | None:
    """Accuracy of the rows of which an attack is equally sure, means over seeds.

    None without an attack that has a posterior, or with too many for one figure.
    """
    lines: dict[str, list[tuple[float, Summary]]] = {}
    for s in summarise(rows):
        sure = certainty.confidence_of(s.row.metric)
        if sure is not None and s.row.client == "all" and selection.is_drawn(s.row):
            lines.setdefault(drawing.label(s.row), []).append((sure, s))
    if not 0 < len(lines) <= _MOST:
        return None
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    least = min(sure for points in lines.values() for sure, _ in points)
    axes.axline((50, 50), slope=1, color="grey", ls="--")
    axes.annotate(
        "as right as sure", (0.98, 0.93), xycoords="axes fraction", ha="right",
        fontsize=8, color="dimgrey",
    )  # fmt: skip
    for (name, points), look in zip(lines.items(), drawing.styles(), strict=False):
        points = sorted(points, key=lambda pair: pair[0])
        places = [100 * sure for sure, _ in points]
        axes.plot(places, [s.estimate.mean for _, s in points], label=name, **look)
    axes.set_xlim(100 * least - 5, 101)
    axes.set_ylim(-2, 102)
    axes.set_xlabel("how sure the attack is of a row (%)")
    axes.set_ylabel("named rightly (%), mean over seeds")
    axes.set_title(drawing.title(rows))
    drawing.name_lines(axes)
    return figure

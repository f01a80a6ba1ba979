"""What secure aggregation hides: accuracy against the clients whose messages are summed."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from experiments.report.figures import drawing, selection
from fljax.metrics import Estimate
from fljax.results import Row, summarise

_OF = "sum_of_"


def accuracy_by_sum(rows: Sequence[Row]) -> Figure | None:
    """Accuracy against the number of clients in a sum: a line per attack, 95 % bands.

    References are horizontal. None without two sizes in one point of the run.
    """
    points = {row.point: None for row in rows if row.setting.startswith(_OF)}
    for point in points:
        figure = _of_point([row for row in rows if row.point == point])
        if figure is not None:
            return figure
    return None


def _of_point(rows: Sequence[Row]) -> Figure | None:
    lines: dict[str, list[tuple[float, Estimate]]] = {}
    references: dict[str, float] = {}
    for s in summarise(rows):
        if not selection.is_total(s, selection.ACCURACY):
            continue
        size = s.row.setting.removeprefix(_OF)
        if size != s.row.setting and size.isdecimal() and len(size) < 10:
            lines.setdefault(drawing.plain(s.row.attack), []).append(
                (float(size), s.shown)
            )
        elif s.row.setting == "baseline":
            references[s.row.attack] = s.estimate.mean
    lines = {name: sorted(line) for name, line in lines.items() if len(line) > 1}
    if not 0 < len(lines) <= 20:
        return None
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    drawing.draw_bands(axes, lines, {})
    for attack, mean in references.items():
        if attack in drawing.REFERENCES:
            axes.axhline(mean, **drawing.REFERENCES[attack])
    sizes = sorted({size for line in lines.values() for size, _ in line})
    if sizes[-1] > 5 * sizes[0]:
        axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("clients whose messages are summed")
    axes.set_ylabel("accuracy (%), mean over seeds")
    axes.set_title(drawing.title(rows))
    drawing.name_lines(axes)
    return figure

"""Audited over accounted, by observer."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from experiments.report.figures import drawing
from fljax.results import Row

_AUDITED, _ACCOUNTED = "epsilon_audited", "epsilon_accounted"
_REACHABLE = "epsilon_reachable"


def audited_by_accounted(rows: Sequence[Row]) -> Figure | None:
    """A panel for each canary: epsilon audited against accounted, a line per observer."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        if row.metric == _AUDITED:
            upper = _beside(rows, row, _ACCOUNTED)
            panel = found.setdefault(row.setting, {})
            panel.setdefault(row.attack, []).append((upper, row.value))
            most = panel.setdefault("what so many trainings can prove", [])
            most.append((upper, _beside(rows, row, _REACHABLE)))
    if not found:
        return None
    figure = Figure(figsize=(4.4 * len(found), 3.8), layout="constrained")
    for axes, (canary, lines) in zip(
        figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
    ):
        for (name, line), look in zip(lines.items(), drawing.styles(), strict=False):
            x, y = zip(*sorted(set(line)), strict=True)
            axes.plot(x, y, label=drawing.plain(name), **look)
        highest = max(x for line in lines.values() for x, _ in line)
        axes.plot([0, highest], [0, highest], color="0.5", lw=1, label="accounted")
        axes.set_xlabel("epsilon accounted")
        axes.set_ylabel("epsilon audited")
        axes.set_title(drawing.plain(f"{rows[0].data}: {canary}"))
        axes.legend(fontsize=7)
    return figure


def _beside(rows: Sequence[Row], row: Row, metric: str) -> float:
    """Another number of the same audit."""
    wanted = row._replace(metric=metric)
    for other in rows:
        if other._replace(value=row.value) == wanted:
            return other.value
    raise ValueError(f"rows: expected {metric} beside {row}")

"""Figures of runs with several points: swept flags, active rounds, defenses.

Figures 1, 3, 5 and 6 of Diana et al., "Attribute Inference Attacks for Federated
Regression Tasks", 2025, are of these kinds. A point of a sweep is labelled
`name=value`; a label of another form is not drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.report.figures import drawing, selection
from fljax.metrics import Estimate
from fljax.results import Row, Summary, summarise

_MOST_PANELS = 4
_MOST_LINES = 40
_LONGEST_VALUE = 12

# label of a line -> value on the x axis -> estimate
_Lines = dict[str, dict[str, Estimate]]


def accuracy_by_value(rows: Sequence[Row]) -> Figure | None:
    """Accuracy against a swept flag: a line per attack and setting, 95 % bands.

    Flags that were swept one after another in the same run stand side by side.
    """
    totals = [s for s in summarise(rows) if selection.is_total(s, selection.ACCURACY)]
    panels = _panels(totals, lambda row: drawing.label(row, point=False))
    return _swept(rows, panels, "accuracy (%), mean over seeds")


def loss_by_value(rows: Sequence[Row]) -> Figure | None:
    """Last loss against a swept flag, where a defense was trained with: its cost."""
    if all(row.defense == "none" for row in rows):
        return None
    last = [s for m in selection.LOSSES for s in selection.last_losses(rows, m)]
    panels = _panels(last, lambda row: row.metric.replace("_", " "))
    return _swept(rows, panels, "loss of the last model sent")


def accuracy_by_active_rounds(rows: Sequence[Row]) -> Figure | None:
    """Accuracy against the number of active rounds, 0 being the passive attack.

    None without two numbers of active rounds, or where several points would overlap.
    """
    lines: _Lines = {}
    oracles: dict[str, float] = {}
    for s in summarise(rows):
        if not selection.is_total(s, selection.ACCURACY):
            continue
        number, attack = selection.active_rounds(s.row), drawing.plain(s.row.attack)
        if number is not None:
            lines.setdefault(attack, {})[str(number)] = s.shown
        elif s.row.setting in ("oracle", "baseline"):
            oracles[attack] = s.estimate.mean
    lines = {label: line for label, line in lines.items() if len(line) > 1}
    numbers = {number for line in lines.values() for number in line}
    if len({r.point for r in rows}) > 1 or len(numbers - {"0"}) < 2:
        return None
    if len(lines) > _MOST_LINES:
        return None
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    _draw(axes, lines, {number: float(number) for number in numbers})
    for attack, mean in oracles.items():
        look: dict[str, Any] = {"color": "black", "ls": ":", "label": attack}
        axes.axhline(mean, **drawing.REFERENCES.get(attack, look))
    axes.set_xlabel("active rounds (0: passive)")
    axes.set_ylabel("accuracy (%), mean over seeds")
    axes.set_title(drawing.title(rows))
    drawing.name_lines(axes)
    return figure


def accuracy_by_loss(rows: Sequence[Row]) -> Figure | None:
    """What each defense prevents and what it costs: accuracy against the last loss.

    A line per attack and setting that at least two variants (defense and point) were
    measured on; the loss is that of the last model sent, on test rows where there are
    any. None without a defense and a second variant to compare it with.
    """
    losses = {at: s.estimate.mean for at, s in selection.utility(rows).items()}
    if not 2 <= len(losses) <= _MOST_LINES:
        return None
    if all(defense == "none" for defense, _ in losses):
        return None
    lines: dict[str, list[tuple[float, float]]] = {}
    for s in summarise(rows):
        at = s.row.defense, s.row.point
        if selection.is_total(s, selection.ACCURACY) and at in losses:
            name = drawing.label(s.row, point=False)
            lines.setdefault(name, []).append((losses[at], s.estimate.mean))
    lines = {name: points for name, points in lines.items() if len(points) > 1}
    if not 0 < len(lines) <= _MOST_LINES:
        return None
    figure = Figure(figsize=(7.4, 4.4), layout="constrained")
    axes = figure.subplots()
    for (name, points), style in zip(lines.items(), drawing.styles(), strict=False):
        look = _muted(name) or style
        axes.plot(*zip(*sorted(points), strict=True), label=name, lw=0.8, **look)
    # Names stand side by side, however close their losses are.
    for place, (defense, point) in enumerate(sorted(losses, key=losses.__getitem__)):
        loss = losses[defense, point]
        axes.axvline(loss, color="grey", lw=0.4)
        axes.annotate(
            drawing.plain(point or defense),
            (loss, 1),
            xytext=((place + 0.3) / len(losses), 1.12),
            xycoords=("data", "axes fraction"),
            textcoords="axes fraction",
            arrowprops={
                "arrowstyle": "-",
                "color": "grey",
                "lw": 0.4,
                "relpos": (0, 0),
            },
            rotation=40,
            rotation_mode="anchor",
            fontsize=7,
        )
    _spread(axes, list(losses.values()))
    axes.set_xlabel("loss of the last model sent (less is more useful)")
    axes.set_ylabel("accuracy (%), mean over seeds")
    drawing.name_lines(axes, beside=True)
    return figure


def _panels(
    summaries: Sequence[Summary], name_line: Callable[[Row], str]
) -> dict[str, _Lines]:
    """Swept flag -> its lines."""
    panels: dict[str, _Lines] = {}
    for s in summaries:
        at = selection.swept(s.row)
        if at is not None:
            line = panels.setdefault(at[0], {}).setdefault(name_line(s.row), {})
            line[at[1]] = s.shown
    return panels


def _swept(rows, panels: Mapping[str, _Lines], ylabel: str) -> Figure | None:
    """One panel per flag that has two values; the panels share the vertical axis."""
    values = {
        name: list(dict.fromkeys(value for line in lines.values() for value in line))
        for name, lines in panels.items()
        if not all(map(_muted, lines)) and len(lines) <= _MOST_LINES
    }
    names = [name for name in values if len(values[name]) > 1]
    if not 0 < len(names) <= _MOST_PANELS:
        return None
    size = (2.2 + 4.2 * len(names), 4)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(grid, names, strict=True):
        places, numeric = selection.places(values[name])
        _draw(axes, panels[name], places)
        if numeric:
            _spread(axes, list(places.values()))
            _in_order(axes, list(places.values()))
        if not numeric or len(places) <= 8:
            texts = [drawing.plain(value, _LONGEST_VALUE) for value in places]
            axes.set_xticks(list(places.values()), texts)
            axes.minorticks_off()
        axes.set_xlabel(drawing.plain(name.replace("_", " ")))
    grid[0].set_ylabel(ylabel)
    figure.suptitle(drawing.title(rows), fontsize="large")
    drawing.name_lines(grid[-1], beside=True)
    return figure


def _draw(axes: Axes, lines: _Lines, places: Mapping[str, float]) -> None:
    """Lines with their bands."""
    muted = {name: look for name in lines if (look := _muted(name))}
    at = {
        name: [(places[value], e) for value, e in line.items()]
        for name, line in lines.items()
    }
    drawing.draw_bands(axes, at, muted)


def _muted(line: str) -> dict[str, Any]:
    """Look of a line that is a reference, empty for all others."""
    look = drawing.REFERENCES.get(line.partition(" ")[0], {})
    return {key: value for key, value in look.items() if key != "label"}


def _spread(axes: Axes, values: Sequence[float]) -> None:
    """A logarithmic axis where positive values differ much."""
    if min(values) > 0 and max(values) > 5 * min(values):
        axes.set_xscale("log")


def _in_order(axes: Axes, values: Sequence[float]) -> None:
    """Numbers that were swept from the largest to the smallest are drawn so."""
    if len(values) > 2 and list(values) == sorted(values, reverse=True):
        axes.invert_xaxis()

"""Figures of any run: accuracy of the attacks, losses by round, accuracy by client."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.report.figures import drawing, selection
from fljax import verdicts
from fljax.results import Row, summarise

_MOST_ATTACKS = 60  # higher figures are not readable, much higher ones not drawn
_MOST_GROUPS = 24
_MOST_CLIENTS = 60
_MEDIAN = selection.ERROR, verdicts.MAJORITY  # what is most frequent of numbers
_ONE_LINE = 1e-3  # of references, relative to them, that are drawn as one


def accuracy_by_attack(rows: Sequence[Row]) -> Figure | None:
    """Mean accuracy of each attack with its 95 % interval; references as lines.

    Where points of a sweep have different references, a band spans them. None also
    where there are more attacks, settings and points than one figure can show.
    """
    return _by_attack(rows, selection.ACCURACY, "accuracy (%)", "{:.1f}")


def error_by_attack(rows: Sequence[Row]) -> Figure | None:
    """The same of the errors of attacks on a number, in the unit of its column."""
    return _by_attack(rows, selection.ERROR, "mean absolute error", "{:.3g}")


def _by_attack(
    rows: Sequence[Row], metric: str, name: str, written: str
) -> Figure | None:
    chosen = [s for s in summarise(rows) if selection.is_total(s, metric)]
    attacks = [s for s in chosen if s.row.attack not in drawing.REFERENCES]
    if not 0 < len(attacks) <= _MOST_ATTACKS:
        return None
    figure = Figure(figsize=(6.4, 0.9 + 0.4 * len(attacks)), layout="constrained")
    axes = figure.subplots()
    places = range(len(attacks))
    estimates = [s.estimate for s in attacks]
    means = [e.mean for e in estimates]
    # A single seed has no interval: a bar of no length.
    half = [0 if math.isnan(e.low) else e.mean - e.low for e in estimates]
    axes.errorbar(means, places, xerr=half, fmt="o", capsize=3)
    axes.set_yticks(places, [drawing.label(s.row) for s in attacks])
    for index, mean in enumerate(means):
        axes.annotate(
            written.format(mean),
            (mean, index),
            (0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    for reference, look in drawing.REFERENCES.items():
        means = [s.estimate.mean for s in chosen if s.row.attack == reference]
        said = "median" if (metric, reference) == _MEDIAN else reference
        _reference(axes, means, look | {"label": said})
    if axes.get_legend_handles_labels()[1]:  # where no attack is likely
        corner = "upper left" if metric == selection.ERROR else "lower left"
        axes.legend(loc=corner, fontsize=8)
    axes.set_xlabel(f"{name}, mean over seeds with 95 % interval")
    axes.set_title(drawing.title(rows))
    axes.margins(x=0.1)
    axes.set_ylim(len(attacks) - 0.4, -0.7)  # first on top, room for its number
    return figure


def loss_by_round(rows: Sequence[Row]) -> Figure | None:
    """Training and test loss of the model that was SENT in each recorded round.

    Round 0 is thus the untrained model; the model after the last round is not shown.
    """
    curves: dict[str, list[tuple[int, float]]] = {}
    for s in summarise(rows):
        number = selection.round_number(s.row)
        if number is not None and s.row.metric in selection.LOSSES:
            label = " ".join(filter(None, [s.row.metric, s.row.point]))
            curves.setdefault(label, []).append((number, s.estimate.mean))
    if not 0 < len(curves) <= _MOST_GROUPS:
        return None
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for label, points in curves.items():
        name = drawing.plain(label.replace("_", " "))
        axes.plot(*zip(*sorted(points), strict=True), label=name)
    if all(value > 0 for points in curves.values() for _, value in points):
        axes.set_yscale("log")
    axes.set_xlabel("round")
    axes.set_ylabel("loss of the global model")
    axes.set_title(drawing.title(rows))
    drawing.name_lines(axes)
    return figure


def accuracy_by_size(rows: Sequence[Row]) -> Figure | None:
    """Accuracy on each client against its number of rows; None if these are alike."""
    groups: dict[str, list[tuple[int, float]]] = {}
    for s in summarise(rows):
        if s.row.client == "all" or not selection.is_drawn(s.row):
            continue
        if s.row.metric == selection.ACCURACY:
            point = (s.row.n, s.estimate.mean)
            groups.setdefault(drawing.label(s.row), []).append(point)
    sizes = {size for points in groups.values() for size, _ in points}
    if not selection.are_unlike(sizes) or len(groups) > _MOST_GROUPS:
        return None
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for (label, points), style in zip(groups.items(), drawing.styles(), strict=False):
        look = {"marker": style["marker"], "color": style["color"]}
        if label.startswith(tuple(drawing.REFERENCES)):
            look = {"marker": "x+"[label.startswith("imputation")], "color": "grey"}
        axes.scatter(*zip(*points, strict=True), label=label, s=18, **look)
    if max(sizes) > 3 * min(sizes) > 0:
        axes.set_xscale("log")
    axes.set_xlabel("rows of the client")
    axes.set_ylabel("accuracy (%), mean over seeds")
    axes.set_title(drawing.title(rows))
    drawing.name_lines(axes)
    return figure


def accuracy_by_client(rows: Sequence[Row]) -> Figure | None:
    """Accuracy on each client, a mark per attack; None without two clients."""
    groups: dict[str, dict[int, float]] = {}
    for s in summarise(rows):
        client, found = s.row.client, s.row.metric == selection.ACCURACY
        if found and isinstance(client, int) and selection.is_drawn(s.row):
            groups.setdefault(drawing.label(s.row), {})[client] = s.estimate.mean
    clients = sorted({client for each in groups.values() for client in each})
    if not 2 <= len(clients) <= _MOST_CLIENTS or len(groups) > _MOST_GROUPS:
        return None
    figure = Figure(figsize=(6.4, 1.2 + 0.25 * len(clients)), layout="constrained")
    axes = figure.subplots()
    for (label, each), style in zip(groups.items(), drawing.styles(), strict=False):
        look = {"marker": style["marker"], "color": style["color"]}
        if label.startswith(tuple(drawing.REFERENCES)):
            look = {"marker": "x+"[label.startswith("imputation")], "color": "grey"}
        places = [clients.index(client) for client in each]
        axes.scatter([*each.values()], places, label=label, s=24, **look)
    axes.set_yticks(range(len(clients)), [f"client {each}" for each in clients])
    axes.set_ylim(len(clients) - 0.5, -0.5)
    axes.set_xlabel("accuracy (%), mean over seeds")
    axes.set_title(drawing.title(rows))
    drawing.name_lines(axes, beside=True)
    return figure


def _reference(axes: Axes, means: Sequence[float], look: Mapping[str, Any]) -> None:
    """One line, or a band from the lowest to the highest."""
    if not means:
        return
    if max(means) - min(means) <= _ONE_LINE * max(map(abs, means)):
        axes.axvline(means[0], **look)
    else:
        span = min(means), max(means)
        axes.axvspan(*span, **look, alpha=0.2)

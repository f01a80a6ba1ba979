"""Figures of a run, from its result rows alone."""

import math
import os
from collections.abc import Sequence

from matplotlib.figure import Figure

from fljax import files
from fljax.results import Row, Summary, summarise

_ACCURACY = "aia_accuracy_percent"


def accuracy_by_attack(rows: Sequence[Row]) -> Figure | None:
    """Mean accuracy of each attack with its 95 % interval; the majority as a line."""
    chosen = [s for s in summarise(rows) if _is_total(s, _ACCURACY)]
    attacks = [s for s in chosen if s.row.attack != "majority"]
    if not attacks:
        return None
    figure = Figure(figsize=(6.4, 0.9 + 0.4 * len(attacks)), layout="constrained")
    axes = figure.subplots()
    names = [
        " ".join(filter(None, [s.row.attack, f"({s.row.setting})", s.row.point]))
        for s in attacks
    ]
    estimates = [s.estimate for s in attacks]
    means = [e.mean for e in estimates]
    # A single seed has no interval: a bar of no length.
    half = [0 if math.isnan(e.low) else e.mean - e.low for e in estimates]
    axes.errorbar(means, names, xerr=half, fmt="o", capsize=3)
    for index, mean in enumerate(means):
        axes.annotate(
            f"{mean:.1f}",
            (mean, index),
            (0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    for s in chosen:
        if s.row.attack == "majority" and s.row.point == chosen[0].row.point:
            axes.axvline(s.estimate.mean, color="grey", ls="--", label="majority")
            axes.legend(loc="lower left", fontsize=8)
    axes.set_xlabel("accuracy (%), mean over seeds with 95 % interval")
    axes.set_title(_title(rows))
    axes.margins(x=0.1, y=0.15)
    axes.invert_yaxis()
    return figure


def loss_by_round(rows: Sequence[Row]) -> Figure | None:
    """Training and test loss of the model that was SENT in each recorded round.

    Round 0 is thus the untrained model; the model after the last round is not shown.
    """
    curves: dict[str, list[tuple[int, float]]] = {}
    for s in summarise(rows):
        if s.row.setting.startswith("round_") and s.row.metric.endswith("loss"):
            label = " ".join(filter(None, [s.row.metric, s.row.point]))
            number = int(s.row.setting.removeprefix("round_"))
            curves.setdefault(label, []).append((number, s.estimate.mean))
    if not curves:
        return None
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for label, points in curves.items():
        axes.plot(*zip(*sorted(points), strict=True), label=label.replace("_", " "))
    if all(value > 0 for points in curves.values() for _, value in points):
        axes.set_yscale("log")
    axes.set_xlabel("round")
    axes.set_ylabel("loss of the global model")
    axes.set_title(_title(rows))
    axes.legend(fontsize=8)
    return figure


def accuracy_by_size(rows: Sequence[Row]) -> Figure | None:
    """Accuracy on each client against her number of rows."""
    groups: dict[str, list[tuple[int, float]]] = {}
    for s in summarise(rows):
        row = s.row
        if row.metric == _ACCURACY and row.client != "all":
            label = " ".join(filter(None, [row.attack, row.point]))
            groups.setdefault(label, []).append((row.n, s.estimate.mean))
    if not groups:
        return None
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for label, points in groups.items():
        style = {"marker": "x", "color": "grey"} if label.startswith("majority") else {}
        axes.scatter(*zip(*points, strict=True), label=label, s=18, **style)
    sizes = [size for points in groups.values() for size, _ in points]
    if max(sizes) > 3 * min(sizes):
        axes.set_xscale("log")
    axes.set_xlabel("rows of the client")
    axes.set_ylabel("accuracy (%), mean over seeds")
    axes.set_title(_title(rows))
    axes.legend(fontsize=8)
    return figure


def save(figure: Figure, path: str | os.PathLike) -> None:
    """Writes a PNG atomically."""
    with files.replacing(path) as file:
        figure.savefig(file, format="png", dpi=150)


def _is_total(s: Summary, metric: str) -> bool:
    return s.row.client == "all" and s.row.metric == metric


def _title(rows: Sequence[Row]) -> str:
    row = rows[0]
    seeds = len({r.seed for r in rows})
    return f"{row.data}, {row.model}, {seeds} seed{'s' if seeds > 1 else ''}"

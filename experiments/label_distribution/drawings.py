"""Figures of a run: leakage by utility and epsilon, Figures 5 and 6, clouds of 2 to 4."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from experiments import epsilons
from experiments.label_distribution import reporting
from experiments.label_distribution.attacking import SETTINGS
from experiments.label_distribution.clusters import Cloud
from experiments.label_distribution.reporting import ACCURACY, FEDAVG
from experiments.label_distribution.scores import Attacked
from experiments.report.figures import drawing
from fljax.results import Row

_LEAK = "total_variation"
_SHOWN = [name for name, setting in SETTINGS.items() if setting != "baseline"]


def attack_figures(found: Sequence[Row]) -> dict[str, Figure]:
    """Name -> figure, of the study `attack`."""
    drawn = {
        "leakage_by_defense": _by_defense(found),
        "leakage_by_utility": _by_utility(found),
        "accuracy_by_round": _by_round(found),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def example_figure(found: Attacked, classes: Sequence[str], title: str) -> Figure:
    """Figure 5: the labels of one client of each concentration, and what attacks say.

    Clients are the first of their concentration, as they were drawn.
    """
    chosen = reporting.examples(found.alphas)
    figure = Figure(figsize=(0.8 + 2.6 * len(chosen), 3.2), layout="constrained")
    grid = figure.subplots(1, len(chosen), sharey=True, squeeze=False)[0]
    places = np.arange(len(classes))
    names = [drawing.plain(name) for name in classes]
    attacks = [name for name in _SHOWN if name in found.predicted]
    shifts = np.linspace(-0.3, 0.3, len(attacks))
    for axes, (alpha, client) in zip(grid, chosen.items(), strict=True):
        axes.bar(places, 100 * found.truth[client], color="lightgrey", label="true")
        for attack, shift, style in zip(attacks, shifts, drawing.styles()):
            said = 100 * found.predicted[attack][client]
            axes.plot(places + shift, said, label=attack, **style | {"ls": ""})
        axes.set_title(alpha.replace("=", " = "), fontsize=9)
        axes.set_xticks(places, names, rotation=90, fontsize=7)
    grid[0].set_ylabel("share of rows (%)")
    figure.suptitle(drawing.plain(title, 80), fontsize="medium")
    drawing.name_lines(grid[-1], beside=True)
    return figure


def cloud_figure(clouds: Sequence[Cloud], classes: Sequence[str], title: str) -> Figure:
    """A row for each kind of clients, a column for each layer; colours are labels."""
    kinds = list(dict.fromkeys(c.kind for c in clouds))
    layers = list(dict.fromkeys(c.layer for c in clouds))
    figure = Figure(
        figsize=(1.5 + 3.0 * len(layers), 0.6 + 3.0 * len(kinds)), layout="constrained"
    )
    grid = figure.subplots(len(kinds), len(layers), squeeze=False)
    places = {(c.kind, c.layer): c for c in clouds}
    for line, kind in zip(grid, kinds, strict=True):
        for axes, layer in zip(line, layers, strict=True):
            cloud = places[kind, layer]
            for number, name in enumerate(classes):
                mine = cloud.label == number
                axes.scatter(
                    *cloud.points[mine].T,
                    s=40 * cloud.share[mine],
                    color=f"C{number % 10}",
                    label=drawing.plain(name),
                )
            axes.set_title(drawing.plain(f"{layer}, {kind}"), fontsize=8)
            axes.set_xticks([])
            axes.set_yticks([])
    handles, names = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper", fontsize=7)
    figure.suptitle(drawing.plain(title, 80), fontsize="medium")
    return figure


def _points(found: Sequence[Row]) -> list[str]:
    """Points of whole defenses, without those of one concentration."""
    points = (reporting.variant(r) for r in found if r.attack in SETTINGS)
    return [p for p in dict.fromkeys(points) if "alpha=" not in p]


def _by_defense(found: Sequence[Row]) -> Figure:
    """Distance of every attack under every defense, beside the mean distribution."""
    known, points = reporting.estimates(found), _points(found)
    attacks = [a for a in (*_SHOWN, "mean_distribution") if _has(found, a)]
    figure = Figure(figsize=(6.8, 1.6 + 0.5 * len(points)), layout="constrained")
    axes = figure.subplots()
    for number, (attack, style) in enumerate(zip(attacks, drawing.styles())):
        chosen = [
            (at, known[point, attack, SETTINGS[attack], _LEAK])
            for at, point in enumerate(points)
            if (point, attack, SETTINGS[attack], _LEAK) in known
        ]
        base = attack == "mean_distribution"
        axes.errorbar(
            [e.mean for _, e in chosen],
            [at + 0.12 * (number - len(attacks) / 2) for at, _ in chosen],
            xerr=[_half(e) for _, e in chosen],
            fmt="x" if base else style["marker"],
            color="grey" if base else style["color"],
            ms=4,
            capsize=2,
            label=drawing.plain(attack),
        )
    axes.set_yticks(range(len(points)), [drawing.plain(p or "none") for p in points])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("total variation, predicted to true distribution (less leaks more)")
    axes.set_title(_title(found))
    drawing.name_lines(axes, beside=True)
    return figure


def _by_utility(found: Sequence[Row]) -> Figure | None:
    """Leakage x utility x epsilon: a number per defense; grey where nothing is promised."""
    known = reporting.estimates(found)
    points = [p for p in _points(found) if (p, FEDAVG, "final", ACCURACY) in known]
    attacks = [a for a in _SHOWN if _has(found, a)]
    if not points:
        return None
    promised = {at[0]: e for at, e in epsilons.stated(found).items()}
    scale = None
    if promised:
        values = [e.value for e in promised.values()]
        low, high = min(values), max(values)
        scale = ScalarMappable(LogNorm(low / 1.01, high * 1.01), "viridis")
    figure = Figure(figsize=(3.4 + 3.2 * len(attacks), 4.4), layout="constrained")
    grid = figure.subplots(1, len(attacks), sharey=True, squeeze=False)[0]
    for axes, attack in zip(grid, attacks, strict=True):
        for number, point in enumerate(points, 1):
            told = promised.get(point)
            known_colour = scale is not None and told is not None
            colour = scale.to_rgba(told.value) if known_colour else "grey"
            _mark(axes, number, known, point, attack, colour)
        base = known[points[0], "mean_distribution", "baseline", _LEAK].mean
        axes.axhline(base, color="grey", ls="--", lw=0.8)
        axes.set_title(drawing.plain(attack), fontsize=9)
    grid[0].set_yscale("log")
    grid[0].set_ylabel("total variation (less leaks more); dashed: mean distribution")
    figure.supxlabel("FedAvg test accuracy (%), 95 % over trials")
    figure.suptitle(_title(found), fontsize="large")
    lines = [
        f"{n}  {drawing.plain(p or 'none')}"
        + (f": $\\varepsilon$ = {promised[p].text}" if p in promised else "")
        for n, p in enumerate(points, 1)
    ]
    grid[-1].annotate(
        "\n".join(lines), (1.03, 1), xycoords="axes fraction", va="top", fontsize=8
    )
    if scale is not None:
        figure.colorbar(scale, ax=list(grid), label="epsilon", location="left")
    return figure


def _mark(axes: Axes, number: int, known, point: str, attack: str, colour) -> None:
    leak = known.get((point, attack, SETTINGS[attack], _LEAK))
    if leak is None:
        return
    accuracy = known[point, FEDAVG, "final", ACCURACY]
    at = accuracy.mean, leak.mean
    axes.errorbar(
        *at, xerr=_half(accuracy), yerr=_half(leak), fmt="o", color=colour, ms=5,
        elinewidth=0.6,
    )  # fmt: skip
    axes.annotate(str(number), at, (4, 3), textcoords="offset points", fontsize=8)


def _by_round(found: Sequence[Row]) -> Figure | None:
    """Figure 6, left: accuracy of the global model by round, 95 % bands over trials."""
    curves: dict[str, dict[int, object]] = {}
    for (point, attack, setting, _), e in reporting.estimates(found).items():
        if attack == FEDAVG and setting.startswith("round_"):
            done = int(setting.removeprefix("round_"))
            curves.setdefault(point or "none", {})[done] = e
    if not curves:
        return None
    figure = Figure(figsize=(7.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for (name, curve), style in zip(curves.items(), drawing.styles(), strict=False):
        done = sorted(curve)
        axes.plot(done, [curve[t].mean for t in done], label=drawing.plain(name),
                  **style)  # fmt: skip
        low, high = ([getattr(curve[t], end) for t in done] for end in ("low", "high"))
        axes.fill_between(done, low, high, color=style["color"], alpha=0.15, lw=0)
    axes.set_xlabel("rounds done")
    axes.set_ylabel("FedAvg test accuracy (%)")
    axes.set_title(_title(found))
    drawing.name_lines(axes, beside=True)
    return figure


def _title(found: Sequence[Row]) -> str:
    """Trials of FedAvg are no seeds."""
    return drawing.title([row for row in found if row.attack in SETTINGS])


def _has(found: Sequence[Row], attack: str) -> bool:
    return any(row.attack == attack for row in found)


def _half(e) -> float:
    half = e.high - e.mean
    return 0.0 if np.isnan(half) else half

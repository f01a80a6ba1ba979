"""Leakage, utility and epsilon of a grid of defenses in one figure."""

import math
from collections.abc import Sequence

from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from experiments.choose_defense.rule import POINTS, Candidate, Choice
from experiments.report.figures import drawing


def choice(found: Sequence[Candidate], chosen: Choice, title: str) -> Figure | None:
    """What the strongest attack has beyond imputation against what the model explains.

    A point per defense, coloured by its epsilon (grey without one), with the interval of
    its gain and a bar at what no adversary can be above; the recommended one is ringed.
    None where no defense has both numbers.

    Args:
      found: the grid.
      chosen: what the rule says of it.
      title: of the figure.
    """
    drawn = [e for e in found if math.isfinite(e.gain.mean + e.utility.mean)]
    known = [each.epsilon for each in drawn if math.isfinite(each.epsilon)]
    if not drawn:
        return None
    scale = None
    if known:
        scale = ScalarMappable(LogNorm(min(known) / 1.01, max(known) * 1.01), "viridis")
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.subplots()
    for each in drawn:
        promised = scale is not None and math.isfinite(each.epsilon)
        colour = scale.to_rgba(each.epsilon) if promised else "grey"
        x, gain = each.utility.mean, each.gain
        reach = None
        if math.isfinite(gain.high - gain.low):
            reach = [[gain.mean - gain.low], [gain.high - gain.mean]]
        axes.errorbar(
            x, gain.mean, yerr=reach, color=colour, fmt="o", ms=5, elinewidth=0.6
        )
        if math.isfinite(each.most):
            axes.plot(x, each.most, "_", color=colour, ms=12, mew=2)
        if each.defense == "none":
            axes.annotate(
                "none", (x, gain.mean), (5, 4), textcoords="offset points", fontsize=8
            )
    if chosen.chosen in drawn:
        best = chosen.chosen
        axes.plot(
            best.utility.mean, best.gain.mean, "o", ms=13, mfc="none", mec="C3", mew=1.5,
            ls="none", label=f"recommended: {drawing.plain(best.defense, 60)}",
        )  # fmt: skip
    axes.axhline(0, **drawing.IMPUTATION)
    axes.plot([], [], "_", color="grey", ms=12, mew=2, label="no adversary is above")
    axes.set_xlabel("held-out variation explained (%)")
    unit = "points" if drawn[0].gained == POINTS else "of its error"
    axes.set_ylabel(f"strongest attack beyond imputation ({unit})")
    axes.set_title(title)
    axes.legend(fontsize=8, loc="upper left")
    if scale is not None:
        figure.colorbar(scale, ax=axes, label="epsilon")
    return figure

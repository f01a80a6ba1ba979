"""What still leaks under each defense, what it costs, and what it promises."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from experiments import epsilons
from experiments.epsilons import Stated
from experiments.report.figures import drawing, selection
from fljax import verdicts
from fljax.metrics import Estimate
from fljax.results import Row, Summary, summarise

_ATTACKS = ("model", "grad", "trajectory")  # passive ones; a panel each
_MOST, _COLOURS = 40, "viridis"

_At = tuple[str, str]  # defense, point


class _Variant(NamedTuple):
    """A defense as it was measured.

    Attributes:
      label: with its epsilon.
      loss: of the last model sent, over that without defense where that is known.
      epsilon: None where nothing is promised.
      gains: attack -> accuracy minus that of imputation, or of the majority without.
      most: that any adversary can have, likewise; None where nothing is promised.
    """

    label: str
    loss: float
    epsilon: Stated | None
    gains: dict[str, Estimate]
    most: float | None


def leakage_by_utility(rows: Sequence[Row]) -> Figure | None:
    """Gain of each passive attack over imputation against the last loss, by defense.

    A panel per attack and a number per defense, coloured by the tightest epsilon that
    its rows state, of records if there is one, else of a client (a square), and grey
    where there is none. A bar above a number is the most that any adversary can have
    under that defense. Whom an epsilon is against is not in the rows. The loss
    is that on test rows if there are any, divided by that without defense. None without
    two variants (defense and point), of which one has a defense.
    """
    imputed = any(row.attack == verdicts.IMPUTATION for row in rows)
    reference = verdicts.IMPUTATION if imputed else verdicts.MAJORITY
    variants = _variants(rows, reference)
    attacks = [a for a in _ATTACKS if any(a in v.gains for v in variants.values())]
    defended = [at for at in variants if at[0] != "none"]
    if not attacks or not defended or not 2 <= len(variants) <= _MOST:
        return None
    known = [v.epsilon.value for v in variants.values() if v.epsilon]
    scale = None
    if known:
        scale = ScalarMappable(LogNorm(min(known) / 1.01, max(known) * 1.01), _COLOURS)
    size = (3.0 + 3.6 * len(attacks), max(4.0, 0.8 + 0.24 * len(variants)))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(1, len(attacks), sharey=True, sharex=True, squeeze=False)[0]
    for axes, attack in zip(grid, attacks, strict=True):
        for number, variant in enumerate(variants.values(), 1):
            if attack in variant.gains:
                _draw(axes, number, variant, variant.gains[attack], scale)
        axes.axhline(0, **drawing.REFERENCES[reference])
        axes.set_title(drawing.plain(attack))
        axes.margins(x=0.1)
    losses = [v.loss for v in variants.values()]
    if min(losses) > 0 and max(losses) > 5 * min(losses):
        grid[0].set_xscale("log")
    relative = any(at[0] == "none" for at in variants)
    figure.supxlabel(
        "loss of the last model sent" + (", over that without defense" * relative)
    )
    grid[0].set_ylabel(f"accuracy minus {reference} (points), 95 %")
    figure.suptitle(drawing.title(rows), fontsize="large")
    _name(grid[-1], variants)
    if scale is not None:
        figure.colorbar(scale, ax=list(grid), label="epsilon", location="left")
    return figure


def _variants(rows: Sequence[Row], reference: str) -> dict[_At, _Variant]:
    """All that have a loss and an attack, undefended first."""
    totals = [s for s in summarise(rows) if s.row.client == "all"]
    losses = {at: s.estimate.mean for at, s in selection.utility(rows).items()}
    bare = [loss for (defense, _), loss in losses.items() if defense == "none"]
    base = bare[0] if bare and bare[0] > 0 else 1.0
    gains, most = _gains(totals, reference)
    promised = epsilons.stated(rows)
    order = sorted(losses, key=lambda at: at[0] != "none")
    return {
        at: _Variant(
            _label(at, promised.get(at)),
            losses[at] / base,
            promised.get(at),
            gains[at],
            most.get(at),
        )
        for at in order
        if at in gains and abs(losses[at]) < 1e100
    }


def _gains(
    totals: Sequence[Summary], reference: str
) -> tuple[dict[_At, dict[str, Estimate]], dict[_At, float]]:
    """Of each attack, and the most that there can be."""
    scores = [s for s in totals if selection.is_total(s, selection.ACCURACY)]
    base = {
        (s.row.defense, s.row.point): s.estimate.mean
        for s in scores
        if s.row.attack == reference
    }
    found: dict[_At, dict[str, Estimate]] = {}
    for s in scores:
        at, e = (s.row.defense, s.row.point), s.estimate
        passive = s.row.setting == "passive" and s.row.attack in _ATTACKS
        if passive and math.isfinite(e.mean - base.get(at, math.nan)):
            gain = e._replace(
                mean=e.mean - base[at], low=e.low - base[at], high=e.high - base[at]
            )
            found.setdefault(at, {})[s.row.attack] = gain
    most = {}
    for s in totals:
        at = s.row.defense, s.row.point
        if s.row.metric == verdicts.CEILING and at in base:
            most[at] = s.estimate.mean - base[at]
    return found, most


def _label(at: _At, epsilon: Stated | None) -> str:
    label = drawing.plain(selection.defense_label(*at))
    if epsilon is None:
        return label
    return f"{label}: $\\varepsilon$ = {epsilon.text}"


def _draw(axes: Axes, number: int, variant: _Variant, gain: Estimate, scale) -> None:
    told = variant.epsilon
    colour = "grey" if scale is None or told is None else scale.to_rgba(told.value)
    half = 0.0 if math.isnan(gain.low) else gain.mean - gain.low
    axes.errorbar(
        variant.loss,
        gain.mean,
        yerr=half,
        color=colour,
        elinewidth=0.6,
        fmt="s" if told is not None and told.of_client else "o",
        ms=5,
    )
    if variant.most is not None:
        axes.plot(variant.loss, variant.most, "_", color=colour, ms=14, mew=2)
    axes.annotate(
        str(number), (variant.loss, gain.mean), (4, 3), textcoords="offset points",
        fontsize=8,
    )  # fmt: skip


def _name(axes: Axes, variants: Mapping[_At, _Variant]) -> None:
    """The list of numbers, beside the last panel."""
    lines = [f"{n}  {v.label}" for n, v in enumerate(variants.values(), 1)]
    if any(v.most is not None for v in variants.values()):
        lines += ["", "bar: no adversary can be above"]
    axes.annotate(
        "\n".join(lines), (1.03, 1), xycoords="axes fraction", va="top", fontsize=8,
    )  # fmt: skip

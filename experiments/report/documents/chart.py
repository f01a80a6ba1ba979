"""Lines with 95 % intervals as SVG, from a template: the same numbers, the same bytes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from experiments.report import rendering
from fljax.metrics import Estimate

_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 520, 60, 330  # of the plot, in pixels
_WIDTH, _HEIGHT = 760, 390
_APART = 17  # pixels between the names of two lines
_WIDE = 8  # pixels of a digit of an axis
_COLOURS = ("#c0504d", "#e08e45", "#8c6bb1", "#1d5f99", "#5b8c5a")
_GREY = "#777777"  # of what is there to compare with


class Line(NamedTuple):
    """One line of a chart.

    Attributes:
      name: shown at its right end.
      points: x -> the mean and its interval.
      dashed: whether it is there to compare with.
    """

    name: str
    points: Mapping[float, Estimate]
    dashed: bool = False


class Chart(NamedTuple):
    """What is drawn.

    Attributes:
      title: above it.
      across: name of the horizontal axis.
      lines: at most five that are not dashed.
      levels: name -> a number that does not depend on x.
      low, high: ends of the vertical axis.
      tick: between two numbers of it.
      logarithmic: whether the horizontal axis is, which takes positive numbers.
    """

    title: str
    across: str
    lines: Sequence[Line]
    levels: Mapping[str, float]
    low: float
    high: float
    tick: float
    logarithmic: bool = True


def svg(chart: Chart) -> str:
    """The picture.

    Raises:
      ValueError: there is nothing to draw, or more than there is room or an axis for.
    """
    numbers = sorted({x for line in chart.lines for x in line.points})
    if not all(line.points for line in chart.lines) or not numbers:
        raise ValueError(f"{chart.title}: expected points of every line")
    if sum(not line.dashed for line in chart.lines) > len(_COLOURS):
        raise ValueError(f"{chart.title}: expected {len(_COLOURS)} lines at most")
    if chart.logarithmic and numbers[0] <= 0:
        raise ValueError(f"{chart.title}: expected positive x, got {numbers[0]}")
    scale = math.log if chart.logarithmic else float

    def right(x: float) -> float:
        span = scale(numbers[-1]) - scale(numbers[0]) or 1.0
        share = (scale(x) - scale(numbers[0])) / span
        return round(_LEFT + 20 + share * (_RIGHT - _LEFT - 40), 1)

    def down(y: float) -> float:
        share = (y - chart.low) / (chart.high - chart.low)
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)

    count = round((chart.high - chart.low) / chart.tick)
    ticks = [chart.low + chart.tick * at for at in range(count + 1)]
    colours = iter(_COLOURS)
    lines = [
        _drawn(line, _GREY if line.dashed else next(colours), right, down)
        for line in chart.lines
    ]
    levels = [
        {"text": f"{name} {y:.0f}", "y": down(y), "fill": "#555555"}
        for name, y in chart.levels.items()
    ]
    _spread([*lines, *levels])
    return rendering.drawing(
        "chart.svg.j2",
        width=_WIDTH, height=_HEIGHT, left=_LEFT, end=_RIGHT, bottom=_BOTTOM,
        title=chart.title, across=chart.across, description=_described(chart),
        ticks=[{"y": down(y), "text": f"{y:g}"} for y in ticks],
        numbers=_legible([{"x": right(x), "text": f"{x:g}"} for x in numbers]),
        lines=lines, levels=levels,
    )  # fmt: skip


def _drawn(line: Line, colour: str, right, down) -> dict[str, Any]:
    marks = [
        {
            "x": right(x),
            "y": down(e.mean),
            "low": down(e.low if math.isfinite(e.low) else e.mean),
            "high": down(e.high if math.isfinite(e.high) else e.mean),
        }
        for x, e in sorted(line.points.items())
    ]
    return {
        "text": line.name,
        "fill": colour,
        "dashed": line.dashed,
        "marks": marks,
        "path": "M" + "L".join(f"{mark['x']} {mark['y']}" for mark in marks),
        "y": marks[-1]["y"],
    }


def _legible(numbers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of an axis that do not stand upon the one before."""
    shown: list[dict[str, Any]] = []
    for each in numbers:
        if not shown or each["x"] >= shown[-1]["x"] + _WIDE * len(each["text"]):
            shown.append(each)
    return shown


def _spread(named: Sequence[dict[str, Any]]) -> None:
    """Gives each a place of its name, none upon another's."""
    last = -math.inf
    for each in sorted(named, key=lambda each: each["y"]):
        last = max(each["y"], last + _APART)
        each["name_y"] = round(last + 4, 1)


def _described(chart: Chart) -> str:
    told = [
        f"{line.name}: "
        + ", ".join(f"{e.mean:.1f} at {x:g}" for x, e in sorted(line.points.items()))
        for line in chart.lines
    ]
    levels = [f"{name}: {value:.1f}" for name, value in chart.levels.items()]
    return "; ".join([*told, *levels])

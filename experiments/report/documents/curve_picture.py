"""A picture of curves: numbers of kept results, or printed ones, over what was varied."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from experiments.fed_cdp import published
from experiments.report import kept
from experiments.report import lines as lines_lib
from experiments.report.documents import chart
from experiments.report.documents.chart import Line
from fljax import metrics
from fljax.driver.config import ConfigError
from fljax.metrics import Estimate
from fljax.results import Row, summarise, within

Points = Mapping[float | None, Estimate]


class Curve(NamedTuple):
    """What a line, or a level, is of.

    Attributes:
      results: kept ones.
      pattern: of `attack setting point`, of all clients, with the defense where there is
        no point. x is the product of its groups.
      metric: which of their numbers.
      at: x of a pattern without groups; None of a level, which has no x.
      dashed: whether it is there to compare with.
    """

    results: tuple[str, ...]
    pattern: str
    metric: str = lines_lib.ACCURACY
    at: float | None = None
    dashed: bool = False

    def rows(self) -> Iterator[list[tuple[float | None, Row]]]:
        """x and a measured row, those of each result."""
        for name in self.results:
            yield [
                (_product(told) if told.groups() else self.at, row)
                for row in kept.read(name).rows
                if (told := self._matched(row)) is not None
            ]

    def points(self) -> Iterator[tuple[float | None, Estimate]]:
        """x and the mean over seeds, result by result."""
        for found in self.rows():
            places = {id(row): x for x, row in found}
            for each in summarise([row for _, row in found]):
                yield places[id(each.row)], within(each.estimate, each.row.metric)

    def _matched(self, row: Row) -> re.Match | None:
        if (row.metric, row.client) != (self.metric, "all"):
            return None
        text = f"{row.attack} {row.setting} {row.point or row.defense}"
        return re.fullmatch(self.pattern, text)


class Printed(NamedTuple):
    """A dashed line of what Wei et al. (2021) print of Fed-CDP on MNIST.

    Attributes:
      table: of the paper.
      pattern: of a point; x is the product of its groups.
      dashed: as in `Curve`.
    """

    table: str
    pattern: str
    dashed: bool = True

    def points(self) -> Iterator[tuple[float, Estimate]]:
        """x and the printed number, without an interval."""
        numbers = published.numbers(self.table, "mnist")
        for (point, method, metric), value in numbers.items():
            told = re.fullmatch(self.pattern, point)
            if told and (method, metric) == ("fed_cdp", published.ACCURACY):
                yield _product(told), metrics.interval([value])


class Picture(NamedTuple):
    """What is drawn.

    Attributes:
      title: above it.
      across: name of the horizontal axis.
      lines: name -> a line, or a level.
      low, high: ends of the vertical axis.
      tick: between two numbers of it.
      logarithmic: whether the horizontal axis is.
      unit: of the horizontal axis, as a factor.
      scale: of the vertical one, likewise.
    """

    title: str
    across: str
    lines: Mapping[str, Curve | Printed]
    low: float = 0
    high: float = 100
    tick: float = 20
    logarithmic: bool = True
    unit: float = 1.0
    scale: float = 1.0


def draw(picture: Picture) -> str:
    """The picture as SVG.

    Raises:
      ConfigError: the results have nothing of a line, or two numbers of equally many
        repetitions for one place.
    """
    lines, levels = [], {}
    for name, curve in picture.lines.items():
        found = _points(curve, picture)
        if None in found:
            levels[name] = found[None].mean
        else:
            lines.append(Line(name, found, curve.dashed))
    return chart.svg(
        chart.Chart(
            picture.title, picture.across, lines, levels, picture.low, picture.high,
            picture.tick, picture.logarithmic,
        )
    )  # fmt: skip


def _points(curve: Curve | Printed, picture: Picture) -> Points:
    """Of a place with several numbers that of the most repetitions."""
    found: dict[float | None, Estimate] = {}
    for place, e in curve.points():
        x = None if place is None else picture.unit * place
        before = found.setdefault(x, e)
        if before.repetitions < e.repetitions:
            found[x] = e
        elif before.repetitions == e.repetitions and before.mean != e.mean:
            raise ConfigError(f"picture: {curve} has two numbers at {x}")
    if not found:
        raise ConfigError(f"picture: {curve} has no number")
    return {x: _times(e, picture.scale) for x, e in found.items()}


def _product(told: re.Match) -> float:
    return math.prod(map(float, told.groups()))


def _times(e: Estimate, scale: float) -> Estimate:
    return e._replace(mean=scale * e.mean, low=scale * e.low, high=scale * e.high)

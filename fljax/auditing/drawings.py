"""Drawings of an audit's page: numbers become places in a picture 360 units wide.

Each drawing says in words what it shows: a title, and a description with its numbers.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fljax import verdicts
from fljax.auditing.lines import Line, Number, PerRecord

WIDTH = 340.0  # of the longest bar
_SIDE = 260.0  # of a calibration plot
_LEAK, _OTHER = ("#efc1bc", "#a8382f"), ("#c9d8e8", "#4a6d92")  # inside, edge
_TICKS = (verdicts.IMPUTATION, verdicts.STRANGERS)
_SMALL = verdicts.ERROR.metric, verdicts.DISTANCE.metric  # where there is a leak
_MOST, _LAST = 20, 5  # bars; of many, those who lose most and so many who lose least


class Bar(NamedTuple):
    """A bar with its interval, and what is reached without messages."""

    label: str
    value: float
    low: float
    high: float
    baseline: float
    ticks: list[float]
    fill: str
    edge: str


class Bars(NamedTuple):
    """Bars under each other.

    Attributes:
      title: what is drawn.
      description: the numbers in words.
      bars: from the first to the last.
      left_out: how many there is no room for.
    """

    title: str
    description: str
    bars: list[Bar]
    left_out: int = 0


class Dot(NamedTuple):
    """Records of which an attack is equally sure."""

    x: float
    y: float
    radius: float


class Calibration(NamedTuple):
    """How often an attack is right beside how sure it is.

    Attributes:
      title, description: as of bars.
      side: of the square.
      dots: from the least sure to the surest.
      ticks: place -> percent, of both axes.
      table: percent sure, percent right, records.
    """

    title: str
    description: str
    side: float
    dots: list[Dot]
    ticks: Mapping[float, str]
    table: list[tuple[str, str, str]]


def of_attacks(name: str, lines: Sequence[Line]) -> Bars:
    """All attacks with the same measure.

    Args:
      name: of the measure.
      lines: with numbers, at least one.
    """
    named = [(line.attack, line.total, line.verdict) for line in lines if line.total]
    return _bars(f"{name} of each attack", named)


def of_clients(name: str, line: Line, clients: Sequence[str]) -> Bars:
    """One attack on each client, who loses most first: of errors the smallest.

    Args:
      name: of the measure.
      line: of the attack.
      clients: names.
    """
    pairs = [*zip(clients, line.clients, strict=True)]
    sign = -1 if line.metric in _SMALL else 1
    pairs.sort(key=lambda pair: np.nan_to_num(-sign * pair[1].value, nan=np.inf))
    kept = pairs
    if len(pairs) > _MOST:
        kept = [*pairs[: _MOST - _LAST], *pairs[-_LAST:]]
    named = [
        (f"{each}, {number.n} rows", number, line.verdict) for each, number in kept
    ]
    drawn = _bars(f"{name} of {line.attack} on each client", named)
    return drawn._replace(left_out=len(pairs) - len(kept))


def _bars(title: str, named: Sequence[tuple[str, Number, str]]) -> Bars:
    finite = [(label, _finite(number), verdict) for label, number, verdict in named]
    top = max(max(n.value, n.high, *n.references.values()) for _, n, _ in finite)
    scale = WIDTH / (top or 1)
    bars = [_bar(label, n, verdict, scale) for label, n, verdict in finite]
    said = "; ".join(f"{label}: {_words(number)}" for label, number, _ in named)
    return Bars(title, said, bars)


def _words(number: Number) -> str:
    others = (f"{k} {v:.4g}" for k, v in number.references.items())
    return f"{number.value:.4g}, without messages {', '.join(others)}"


def _bar(label: str, n: Number, verdict: str, scale: float) -> Bar:
    places = (n.value, max(n.low, 0.0), n.high, n.baseline)
    value, low, high, baseline = (round(scale * place, 1) for place in places)
    ticks = [round(scale * n.references[t], 1) for t in _TICKS if t in n.references]
    colours = _LEAK if verdict == verdicts.LEAKS else _OTHER
    name = f"{label}: {n.value:.4g}"
    return Bar(name, value, low, high, baseline, ticks, *colours)


def _finite(n: Number) -> Number:
    """Without an interval, or a value, both ends are the value, or nothing."""
    value = n.value if np.isfinite(n.value) else 0.0
    ends = (n.low, n.high) if np.isfinite([n.low, n.high]).all() else (value, value)
    return Number(value, *ends, n.n, n.references)


def calibration(attack: str, records: PerRecord) -> Calibration:
    """Whether an attack that is 90 % sure is right nine times in ten."""
    plot = records.plot
    some = np.flatnonzero(plot.count)
    least = float(2 * plot.middle[0] - (plot.middle[0] + plot.middle[1]) / 2)
    reach = _SIDE / (1 - min(least, plot.accuracy[some].min()))

    def place(share: float) -> float:
        return round(float(_SIDE - reach * (1 - share)), 1)

    dots = [
        Dot(
            place(plot.confidence[at]),
            round(_SIDE - place(plot.accuracy[at]), 1),
            round(float(3 + 9 * np.sqrt(plot.count[at] / plot.count.sum())), 1),
        )
        for at in some
    ]
    table = [
        (
            f"{100 * plot.confidence[at]:.1f}",
            f"{100 * plot.accuracy[at]:.1f}",
            str(plot.count[at]),
        )
        for at in some
    ]
    said = "; ".join(
        f"{sure} % sure, {right} % right ({count})" for sure, right, count in table
    )
    places = {place(share): f"{100 * share:.0f}" for share in (0, 0.25, 0.5, 0.75, 1)}
    ticks = {at: text for at, text in places.items() if at >= 0}
    title = f"How often {attack} is right beside how sure it is"
    return Calibration(title, f"Records: {said}", _SIDE, dots, ticks, table)

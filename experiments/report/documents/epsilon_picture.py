"""The picture of epsilon from both sides: what each observer proves of what is accounted."""

from experiments.report import kept
from experiments.report.documents import chart
from experiments.report.documents.chart import Line
from fljax.metrics import Estimate
from fljax.results import Row

_RESULT = "epsilon_audit.diabetes"
_NAMES = {
    "messages": "who sees messages",
    "sum": "who sees sums of two clients",
    "final": "who sees the last model",
}


def draw() -> str:
    """The picture as SVG.

    Raises:
      ConfigError: what it shows is not kept.
    """
    rows = kept.read(_RESULT).rows
    both = [Line("accounted", _of(rows, "messages", "epsilon_accounted"), True)]
    most = Line("so many could prove", _of(rows, "messages", "epsilon_reachable"), True)
    shown = [
        Line(said, _of(rows, each, "epsilon_audited")) for each, said in _NAMES.items()
    ]
    title = "Epsilon audited, by the epsilon accounted (diabetes, DP-SGD)"
    across = "epsilon accounted for who sees messages"
    return chart.svg(
        chart.Chart(title, across, [*both, most, *shown], {}, low=0, high=4, tick=1)
    )


def _of(rows: list[Row], observer: str, metric: str) -> dict[float, Estimate]:
    nan = float("nan")
    return {
        float(row.point.partition("=")[2]): Estimate(row.value, nan, nan, row.value, 1)
        for row in rows
        if (row.attack, row.metric) == (observer, metric)
    }

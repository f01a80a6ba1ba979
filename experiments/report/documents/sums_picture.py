"""The picture of secure aggregation: what is read of sums, by how many are in them."""

from collections.abc import Iterator, Mapping

from experiments.report import kept
from experiments.report import lines as lines_lib
from experiments.report.documents import chart
from experiments.report.documents.chart import Line
from fljax import verdicts
from fljax.driver.config import ConfigError
from fljax.metrics import Estimate
from fljax.results import Summary, summarise, within

_RESULT = "aia.sums.diabetes.clients"
_OF = "sum_of_"
_SHARES = {"fraction=0.5": "half of them in a round", "fraction=0.2": "a fifth"}
_ATTACK = "trajectory"


def draw() -> str:
    """The picture as SVG.

    Raises:
      ConfigError: what it shows is not kept.
    """
    found = [
        s
        for s in summarise(kept.read(_RESULT).rows)
        if (s.row.metric, s.row.client) == (lines_lib.ACCURACY, "all")
    ]
    if not found:
        raise ConfigError(f"picture: {_RESULT} has no accuracies")
    return chart.svg(
        chart.Chart(
            "Patients whose sex is read from sums of ten clients' messages, %",
            "clients whose messages are summed (1: each client's own)",
            list(_lines(found)),
            _levels(found),
            low=40, high=100, tick=10,
        )
    )  # fmt: skip


def _lines(found: list[Summary]) -> Iterator[Line]:
    everybody = [s for s in found if not s.row.point.startswith("fraction")]
    yield Line("all take part in each round", _points(everybody, _ATTACK))
    for point, said in _SHARES.items():
        some = [s for s in found if s.row.point.startswith(point)]
        yield Line(said, _points(some, _ATTACK))
    strangers = f"{_ATTACK}_{verdicts.STRANGERS}"
    yield Line("people who took no part", _points(everybody, strangers), True)


def _points(found: list[Summary], attack: str) -> Mapping[float, Estimate]:
    return {
        float(s.row.setting.removeprefix(_OF)): within(s.estimate, s.row.metric)
        for s in found
        if s.row.attack == attack and s.row.setting.startswith(_OF)
    }


def _levels(found: list[Summary]) -> dict[str, float]:
    named = {"majority": "most frequent value", verdicts.IMPUTATION: "imputation"}
    return {
        named[s.row.attack]: s.estimate.mean
        for s in found
        if s.row.setting == "baseline" and s.row.attack in named
    }

"""Pictures of secure aggregation: what is read of sums, by how many are in them."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from experiments.report import kept
from experiments.report import lines as lines_lib
from experiments.report.documents import chart
from experiments.report.documents.chart import Line
from fljax import verdicts
from fljax.driver.config import ConfigError
from fljax.metrics import Estimate
from fljax.results import Summary, summarise, within

_OF = "sum_of_"
_ATTACK = "trajectory"


class Picture(NamedTuple):
    """What is drawn.

    Attributes:
      results: kept ones.
      title: above it.
      some: where not all take part in a round, the beginning of a point -> words, and
        how many take part, all of whom are in a sum that says no number.
      low: end of the vertical axis, in percent.
    """

    results: tuple[str, ...]
    title: str
    some: Mapping[str, tuple[str, int]]
    low: float = 40


DIABETES = Picture(
    ("aia.sums.diabetes.clients",),
    "Patients whose sex is read from sums of ten clients' messages, %",
    {
        "fraction=0.5": ("half of them in a round", 5),
        "fraction=0.2": ("a fifth", 2),
    },
)
MEDICAL = Picture(
    ("aia.sums.medical.clients",),
    "Smokers and others told from sums of thirty clients' messages, %",
    {
        "participation=uniform": ("half of them in a round", 15),
        "fraction=0.1": ("a tenth", 3),
    },
    low=70,
)
PUMS2016 = Picture(
    tuple(f"aia.sums.pums2016{each}" for each in ("", ".larger", ".participation")),
    "People whose sex is read from sums of ten clients' messages, PUMS 2016, %",
    {"fraction=0.5": ("half of them in a round", 5), "fraction=0.1": ("a tenth", 1)},
)
PICTURES = {"sums": DIABETES, "sums_medical": MEDICAL, "sums_pums2016": PUMS2016}


def draw(picture: Picture) -> str:
    """The picture as SVG.

    Raises:
      ConfigError: what it shows is not kept.
    """
    rows = [row for name in picture.results for row in kept.read(name).rows]
    found = [
        s
        for s in summarise(rows)
        if (s.row.metric, s.row.client) == (lines_lib.ACCURACY, "all")
    ]
    if not found:
        raise ConfigError(f"picture: {', '.join(picture.results)} has no accuracies")
    return chart.svg(
        chart.Chart(
            picture.title,
            "clients whose messages are summed (1: each client's own)",
            list(_lines(picture, found)),
            _levels(found),
            low=picture.low, high=100, tick=(100 - picture.low) / 6,
        )
    )  # fmt: skip


def _lines(picture: Picture, found: list[Summary]) -> Iterator[Line]:
    everybody = [s for s in found if not s.row.point.startswith(tuple(picture.some))]
    yield Line("all take part in each round", _points(everybody, _ATTACK))
    for point, (said, count) in picture.some.items():
        some = [s for s in found if s.row.point.startswith(point)]
        yield Line(said, _points(some, _ATTACK, count))
    strangers = f"{_ATTACK}_{verdicts.STRANGERS}"
    yield Line("people who took no part", _points(everybody, strangers), True)


def _points(
    found: list[Summary], attack: str, count: int | None = None
) -> Mapping[float, Estimate]:
    return {
        float(s.row.setting.removeprefix(_OF) if _OF in s.row.setting else count):
        within(s.estimate, s.row.metric)
        for s in found
        if s.row.attack == attack
    }  # fmt: skip


def _levels(found: list[Summary]) -> dict[str, float]:
    named = {"majority": "most frequent value", verdicts.IMPUTATION: "imputation"}
    return {
        named[s.row.attack]: s.estimate.mean
        for s in found
        if s.row.setting == "baseline" and s.row.attack in named
    }

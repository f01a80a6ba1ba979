"""Pictures of Fed-CDP on MNIST: its accuracy as printed and under each reading, its noise.

The readings are those of Wei et al. (2021): the algorithm as printed, at rates that are
tuned; the published code, its rate and its divisor among it; and its noise alone, divided
by the participants, at a rate that was tuned with ten of 100 clients. What noise hides is
the similarity of an image to what an inversion finds of it.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from experiments.fed_cdp import published
from experiments.fed_cdp.published import ACCURACY, FINAL, TUNED
from experiments.report import kept
from experiments.report.documents import chart
from experiments.report.documents.chart import Line
from fljax import metrics
from fljax.driver.config import ConfigError
from fljax.metrics import Estimate
from fljax.results import summarise, within

_PRINTED, _CODED = "fed_cdp", f"fed_cdp{published.AS_CODED}"


class Measured(NamedTuple):
    """What a line is of.

    Attributes:
      results: kept ones.
      method: name in their rows.
      pattern: of `setting point`, or the defense where there is no point; x is the
        product of its groups.
    """

    results: tuple[str, ...]
    method: str
    pattern: str


class Picture(NamedTuple):
    """What is drawn.

    Attributes:
      across: name of the horizontal axis.
      lines: name -> what was measured.
      table: of the paper, dashed; none where it has no numbers.
      printed: name of a dashed line -> pattern of its points.
      metric: of the lines.
      unit: of the horizontal axis, as a factor.
      scale: of the vertical one, likewise.
      level: name -> a baseline of the first line's results that has no x.
      title: above it.
    """

    across: str
    lines: Mapping[str, Measured]
    table: str | None = None
    printed: Mapping[str, str] = {}
    metric: str = ACCURACY
    unit: float = 1.0
    scale: float = 1.0
    level: Mapping[str, str] = {}
    title: str = "Accuracy of Fed-CDP on MNIST, %"


def _final(point: str) -> str:
    return f"{FINAL} {point}"


_SIGMA, _CLIP = r"clip=4;sigma=([\d.]+)", r"clip=([\d.]+);sigma=[\d.]+"
_OF_100 = r"clients=(100);participating_percent=([\d.]+)"
_OF_1000 = r"clients=(1000);participating_percent=([\d.]+)"
PICTURES = {
    "fed_cdp_sigma": Picture(
        "sigma, at clip 4",
        {
            "as coded, 100 of 1,000": Measured(
                (
                    "fed_cdp.committed.table5",
                    "fed_cdp.committed.table5.sigma4",
                    "fed_cdp.committed.table5.sigma6",
                ),
                _CODED,
                _final(_SIGMA),
            ),
            "as printed, tuned, 10 of 100": Measured(
                ("fed_cdp.table5.mnist",), _PRINTED, _final(_SIGMA)
            ),
        },
        "table5",
        {"the paper": _SIGMA},
    ),
    "fed_cdp_clip": Picture(
        "clip, at sigma 6 or the multiplier of the code",
        {
            "as coded, 100 of 1,000": Measured(
                (
                    "fed_cdp.committed.table4",
                    "fed_cdp.committed.table4.clip1",
                    "fed_cdp.committed.table4.clip6",
                    "fed_cdp.committed.table5",
                ),
                _CODED,
                _final(r"clip=([\d.]+);sigma=0.5"),
            ),
            "as printed, tuned, 10 of 100": Measured(
                ("fed_cdp.table4.mnist",), _PRINTED, _final(_CLIP)
            ),
        },
        "table4",
        {"the paper": _CLIP},
    ),
    "fed_cdp_participants": Picture(
        "clients in a round",
        {
            "as coded": Measured(
                ("fed_cdp.committed", "fed_cdp.committed.percent"),
                _CODED,
                _final(_OF_100),
            ),
            "its noise alone, tuned": Measured(
                ("fed_cdp.committed.tuned", "fed_cdp.committed.tuned_percent"),
                _CODED,
                _final(_OF_100),
            ),
            "as printed, tuned": Measured(
                ("fed_cdp.table2",), _PRINTED, _final(_OF_100)
            ),
        },
        "table2",
        {"the paper, of 100": _OF_100, "the paper, of 1,000": _OF_1000},
        unit=0.01,
    ),
    "fed_cdp_clip_by_rate": Picture(
        "clip times learning rate",
        {
            f"clip {clip}": Measured(
                ("fed_cdp.clip_by_rate",),
                _CODED,
                rf"rate_(\S+) clip=({clip});sigma=0.5",
            )
            for clip in ("0.5", "2", "8")
        },
        metric=TUNED,
        title="Accuracy of Fed-CDP on MNIST's validation rows, %",
    ),
    "noise_hides": Picture(
        "sigma of Fed-CDP, at clip 4",
        {
            name: Measured(
                (f"gradient_leakage.mnist.noise{variant}",),
                _PRINTED,
                r"leakage_type=2 fed_cdp\(clip=4, sigma=([\d.]+)\)",
            )
            for name, variant in (
                ("knows noise and images", ""),
                ("knows the clip alone", ".unaware"),
            )
        },
        metric="ssim",
        scale=100,
        level={"the mean image": "mean_image"},
        title="Similarity (SSIM) of MNIST images to what gradients tell, %",
    ),
}


def draw(picture: Picture) -> str:
    """The picture as SVG.

    Raises:
      ConfigError: the results have nothing of a line, or two numbers for one place.
    """
    theirs = published.numbers(picture.table, "mnist")
    lines = []
    for name, measured in picture.lines.items():
        pairs = list(_of(measured, picture.metric))
        found = {x * picture.unit: e for x, e in pairs}
        if not found or len(found) < len(pairs):
            named, what = ", ".join(measured.results), "two" if found else "nothing"
            raise ConfigError(f"picture: {named} have {what} of {measured.pattern!r}")
        lines.append(Line(name, found))
    for name, pattern in picture.printed.items():
        found = {
            x * picture.unit: metrics.interval([value])
            for (point, method, metric), value in theirs.items()
            if (method, metric) == (_PRINTED, ACCURACY)
            and (x := _product(pattern, point)) is not None
        }
        lines.append(Line(name, found, dashed=True))
    lines = [line._replace(points=_times(line.points, picture.scale)) for line in lines]
    levels = {
        name: picture.scale * _baseline(picture, attack)
        for name, attack in picture.level.items()
    }
    return chart.svg(
        chart.Chart(
            picture.title, picture.across, lines, levels, low=0, high=100, tick=20
        )
    )


def _times(points: Mapping[float, Estimate], scale: float) -> dict[float, Estimate]:
    return {
        x: e._replace(mean=scale * e.mean, low=scale * e.low, high=scale * e.high)
        for x, e in points.items()
    }


def _baseline(picture: Picture, attack: str) -> float:
    """Of the first line's first result."""
    first = next(iter(picture.lines.values())).results[0]
    (value,) = (
        row.value
        for row in kept.read(first).rows
        if (row.attack, row.setting, row.metric) == (attack, "baseline", picture.metric)
    )
    return value


def _of(measured: Measured, metric: str) -> Iterator[tuple[float, Estimate]]:
    for name in measured.results:
        for each in summarise(kept.read(name).rows):
            row = each.row
            if (row.attack, row.metric) == (measured.method, metric):
                where = f"{row.setting} {row.point or row.defense}"
                x = _product(measured.pattern, where)
                if x is not None:
                    yield x, within(each.estimate, metric)


def _product(pattern: str, text: str) -> float | None:
    told = re.fullmatch(pattern, text)
    return math.prod(map(float, told.groups())) if told else None

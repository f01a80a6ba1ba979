"""Pictures of curves that a paper prints: what is read, over what was varied."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from experiments.report import kept
from experiments.report import lines as lines_lib
from experiments.report.documents import chart
from experiments.report.documents.chart import Line
from fljax.driver.config import ConfigError
from fljax.results import Summary, summarise, within

_SEX = "People whose sex is read, PUMS 2016, %"
_MAJORITY, _IMPUTATION = "most frequent value", "imputation"


class Picture(NamedTuple):
    """What is drawn.

    Attributes:
      results: kept ones.
      title: above it.
      across: name of the horizontal axis.
      lines: name -> pattern of `attack setting point`, with x as its group; a pattern
        without a group names a level.
      logarithmic: whether the horizontal axis is.
      low: end of the vertical axis, in percent.
    """

    results: tuple[str, ...]
    title: str
    across: str
    lines: Mapping[str, str]
    logarithmic: bool = True
    low: float = 40


def _over(flag: str, *attacks: tuple[str, str]) -> dict[str, str]:
    """Lines over a flag of the points, those of references last."""
    named = dict(attacks) | {
        _IMPUTATION: "imputation baseline",
        _MAJORITY: "majority baseline",
    }
    return {name: rf"{key} {flag}=([\d.]+)\b.*" for name, key in named.items()}


_PASSIVE = "last message, model-based", "model passive"
_GRADIENTS = "gradients, best cosine", "grad passive"
_TEN = "active server, tenth of rounds", "model active_10"
_FIFTY = "active server, half of rounds", "model active_50"
_EPOCHS_TEN = _TEN[0], r"model active_(?:10(?=.*=1\b)|[2-5])"
_EPOCHS_FIFTY = _FIFTY[0], r"model active_(?:50|25|17|13|10(?=.*=5\b))"
_FEW = (
    _PASSIVE,
    _GRADIENTS,
    ("the client's optimum (oracle)", "model_oracle oracle"),
    ("all messages, trajectories", "trajectory passive"),
)
_FIG3 = "aia.fig3.gradients", "aia.fig3"  # of what both have the last counts
PICTURES = {
    "fig1": Picture(
        ("aia.fig1", "aia.fig1.oracle"), _SEX, "rows of each of four clients",
        _over("partition_rows", *_FEW),
    ),
    "fig1_classification": Picture(
        ("aia.fig1.classification", "aia.fig1.classification.oracle"),
        "People whose sex is read, PUMS 2016, of a classifier, %", "rows of each of four clients",
        _over("partition_rows", *_FEW),
    ),
    "fig3_heterogeneity": Picture(
        _FIG3, _SEX, "heterogeneity of ten clients",
        _over("partition_heterogeneity", _PASSIVE, _TEN, _FIFTY, _GRADIENTS),
        logarithmic=False,
    ),
    "fig3_batches": Picture(
        _FIG3, _SEX, "rows of a batch",
        _over("batch_size", _PASSIVE, _TEN, _FIFTY, _GRADIENTS),
    ),
    "fig3_epochs": Picture(
        _FIG3, _SEX, "local epochs, in fewer rounds",
        _over("local_epochs", _PASSIVE, _EPOCHS_TEN, _EPOCHS_FIFTY, _GRADIENTS),
        logarithmic=False,
    ),
    "fig5": Picture(
        ("aia.fig5.gradients", "aia.fig5"), _SEX, "round in which the active attack starts",
        _over(
            "active_start",
            ("active server, model-based", "model active_50"),
            ("active server, gradients", "grad active_50"),
        ),
        logarithmic=False,
    ),
    "fig6": Picture(
        ("aia.fig6.gradients", "aia.fig6"), _SEX, "rounds in which the server is active",
        {
            "active server, model-based": r"model active_(\d+) ",
            "active server, gradients": r"grad active_(\d+) ",
            "passive, last message": "model passive ",
            _IMPUTATION: "imputation baseline ",
            _MAJORITY: "majority baseline ",
        },
        logarithmic=False,
    ),
}  # fmt: skip


def draw(picture: Picture) -> str:
    """The picture as SVG.

    Raises:
      ConfigError: the results have nothing of a line.
    """
    accuracies = [
        s
        for name in picture.results
        for s in summarise(kept.read(name).rows)
        if (s.row.metric, s.row.client) == (lines_lib.ACCURACY, "all")
    ]
    lines, levels = [], {}
    for name, pattern in picture.lines.items():
        found = dict(_found(accuracies, pattern))
        if not found:
            named = ", ".join(picture.results)
            raise ConfigError(f"picture: {named} have nothing of {pattern!r}")
        if None in found:
            levels[name] = found[None].mean
        else:
            lines.append(Line(name, found, name in (_IMPUTATION, _MAJORITY)))
    return chart.svg(
        chart.Chart(
            picture.title, picture.across, lines, levels,
            low=picture.low, high=100, tick=10, logarithmic=picture.logarithmic,
        )
    )  # fmt: skip


def _found(accuracies: list[Summary], pattern: str) -> Iterator[tuple]:
    """x -> what was measured there; x is none of a level."""
    for each in accuracies:
        row = each.row
        told = re.fullmatch(pattern, f"{row.attack} {row.setting} {row.point}")
        if told:
            x = float(told[1]) if told.groups() else None
            yield x, within(each.estimate, row.metric)

"""Figures of a run, from its result rows alone; None where there is nothing to show."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from experiments.report.figures.calibration import calibration
from experiments.report.figures.drawing import svg
from experiments.report.figures.leakage import leakage_by_utility
from experiments.report.figures.overview import (
    accuracy_by_attack,
    accuracy_by_client,
    accuracy_by_size,
    error_by_attack,
    loss_by_round,
)
from experiments.report.figures.statements import alt_text
from experiments.report.figures.sums import accuracy_by_sum
from experiments.report.figures.sweeps import (
    accuracy_by_active_rounds,
    accuracy_by_loss,
    accuracy_by_value,
    loss_by_value,
)
from fljax.results import Row

__all__ = [
    "accuracy_by_active_rounds",
    "accuracy_by_attack",
    "accuracy_by_client",
    "accuracy_by_loss",
    "accuracy_by_size",
    "accuracy_by_sum",
    "accuracy_by_value",
    "all_figures",
    "alt_text",
    "calibration",
    "error_by_attack",
    "leakage_by_utility",
    "loss_by_round",
    "loss_by_value",
    "rendered",
    "svg",
]

_ALL = (
    accuracy_by_attack,
    error_by_attack,
    accuracy_by_value,
    accuracy_by_active_rounds,
    accuracy_by_client,
    accuracy_by_sum,
    accuracy_by_size,
    calibration,
    accuracy_by_loss,
    leakage_by_utility,
    loss_by_value,
    loss_by_round,
)


def all_figures(rows: Sequence[Row]) -> dict[str, Figure]:
    """Name -> figure, for every figure that the rows have something to show in."""
    drawn = {draw.__name__: draw(rows) for draw in _ALL}
    return {name: figure for name, figure in drawn.items() if figure is not None}


def rendered(drawn: Mapping[str, Figure]) -> dict[str, bytes]:
    """The same figures as SVG files."""
    return {name: svg(figure) for name, figure in drawn.items()}

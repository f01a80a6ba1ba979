"""Measured errors against the rate of a bound: slopes, their table, and a figure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from experiments.theory.theorem1 import Measured
from fljax import metrics
from fljax.driver import screen_tables

_COLOURS = {"shuffled": "C0", "independent": "C1"}
_HEADERS = ("eq. (6)", "eq. (18)", "Algorithm 2", "forward")


class Sweep(NamedTuple):
    """One parameter's sweep.

    Attributes:
      symbol: what the table calls the parameter.
      label: what the figure calls it.
      values: the parameter's values.
      found: sampling -> numbers `[values, seeds]`.
    """

    symbol: str
    label: str
    values: Sequence[float]
    found: Mapping[str, Measured]


def slopes(values: Sequence[float], numbers: np.ndarray) -> np.ndarray:
    """Slope `[seeds]` of the logarithm of `numbers [values, seeds]`."""
    return np.polyfit(np.log(values), np.log(numbers), 1)[0]


def table(sweeps: Mapping[str, Sweep]) -> Table:
    """Slopes of both equations and both estimates; the error's largest share."""
    shown = screen_tables.empty(
        "Theorem 1: slopes on logarithmic scales, mean [95 % interval]"
    )
    screen_tables.add_texts(shown, "", "batches")
    screen_tables.add_numbers(shown, *_HEADERS, "error/bound\nat most")
    for sweep in sweeps.values():
        for sampling, each in sweep.found.items():
            columns = (each.rate, each.bound, each.reconstruct, each.forward)
            found = [metrics.interval(slopes(sweep.values, n)) for n in columns]
            cells = [screen_tables.interval(slope, "+.2f") for slope in found]
            worst = (each.reconstruct / each.bound).max()
            shown.add_row(sweep.symbol, sampling, *cells, f"{worst:.1e}")
    return shown


def differences(sweeps: Mapping[str, Sweep]) -> list[str]:
    """One line a sweep: how far the error's slope is from that of eq. (6).

    Differences are paired, seed by seed; an interval without zero is a disagreement.
    """
    lines = []
    for sweep in sweeps.values():
        texts = []
        for sampling, each in sweep.found.items():
            ours, theirs = (
                slopes(sweep.values, numbers)
                for numbers in (each.reconstruct, each.rate)
            )
            gap = screen_tables.interval(metrics.interval(ours - theirs), "+.2f")
            texts.append(f"{gap} with {sampling} batches")
        lines.append(
            f"{sweep.symbol}: slope of Algorithm 2 less that of eq. (6): "
            f"{', '.join(texts)}"
        )
    return lines


def figure(sweeps: Mapping[str, Sweep]) -> Figure:
    """Four panels; rates pass through the measured error at the first value."""
    drawn = Figure(figsize=(10, 8), layout="constrained")
    panels = list(drawn.subplots(2, 2).flat)
    for axes, sweep in zip(panels, sweeps.values(), strict=True):
        for sampling, each in sweep.found.items():
            _draw(axes, sweep.values, sampling, each)
        axes.set(xscale="log", yscale="log", xlabel=sweep.label)
        axes.set_ylabel("distance from the optimum")
        axes.set_xticks(sweep.values, [f"{value:g}" for value in sweep.values])
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    handles, labels = panels[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncol=4, fontsize=8)
    drawn.suptitle("Theorem 1: geometric means over seeds with 95 % intervals")
    return drawn


def _draw(axes: Axes, values, sampling: str, each: Measured) -> None:
    colour = _COLOURS[sampling]
    mean, low, high = _on_log_scale(each.reconstruct)
    axes.errorbar(
        values,
        mean,
        [mean - low, high - mean],
        fmt="o",
        capsize=3,
        color=colour,
        label=f"Algorithm 2, {sampling}",
    )
    forward = _on_log_scale(each.forward)[0]
    axes.plot(values, forward, "x", color=colour, label=f"forward, {sampling}")
    for style, name, numbers in zip("-:", _HEADERS, (each.rate, each.bound)):
        rate = _on_log_scale(numbers)[0]
        scaled = rate * mean[0] / rate[0]
        axes.plot(values, scaled, style, color=colour, label=f"{name}, {sampling}")


def _on_log_scale(numbers: np.ndarray) -> np.ndarray:
    """Geometric mean and ends of its interval, `[3, values]`, of `[values, seeds]`."""
    estimates = (metrics.interval(np.log(each)) for each in numbers)
    logs = np.array([(e.mean, e.low, e.high) for e in estimates])
    # A single seed has no interval: a bar of no length.
    return np.exp(np.where(np.isnan(logs), logs[:, :1], logs)).T

"""What a person sees: progress bars on standard error, tables on standard output."""

import csv
import math
import pathlib
from collections.abc import Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from fljax.results import Row, Summary, summarise

_PUBLISHED = pathlib.Path(__file__).with_name("published.csv")
_HIDDEN = ("train_loss", "test_loss")
_SHORT = {
    "aia_accuracy_percent": "accuracy %",
    "aia_accuracy_bound_percent": "Prop. 1 bound %",
    "aia_mean_absolute_error": "mean abs. error",
}


class _Rate(ProgressColumn):
    """Units per second."""

    def render(self, task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "-/s")


def progress() -> Progress:
    """A bar with count, rate and remaining time."""
    return Progress(
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def published(table: str | None) -> dict[tuple[str, str, str, str], str]:
    """`(data, setting or point, attack, metric) -> "value ± std"` of one paper table."""
    with _PUBLISHED.open() as file:
        lines = [line for line in csv.DictReader(file) if line["table"] == table]
    return {
        (line["dataset"], line["setting"], line["method"], line["metric"]): " ± ".join(
            filter(None, [line["value"], line["std"]])
        )
        for line in lines
    }


def results_table(rows: Sequence[Row], paper_table: str | None) -> Table:
    """Mean over clients and seeds of every number, beside baseline and paper."""
    beside = published(paper_table)
    totals = [
        s
        for s in summarise(rows)
        if s.row.client == "all" and s.row.metric not in _HIDDEN
    ]
    base = {
        (s.row.point, s.row.metric): s.estimate.mean
        for s in totals
        if s.row.attack == "majority"
    }
    first = rows[0]
    table = Table(title=f"{first.experiment}: {first.data}, {first.model}")
    for name in ("attack", "setting", "metric"):
        table.add_column(name, no_wrap=True)
    for name in ("mean [95 % interval]", "median", "seeds x rows", "baseline", "paper"):
        table.add_column(name, justify="right", no_wrap=True)
    for s in totals:
        table.add_row(*_cells(s, base, beside))
    return table


def screen() -> Console:
    """Standard output, wide enough for a results table also when it is no terminal."""
    out = Console()
    return out if out.is_terminal else Console(width=120)


def _cells(s: Summary, base, beside) -> list[str]:
    row, e = s.row, s.estimate
    mean = f"{e.mean:.2f}"
    if not math.isnan(e.low):
        mean += f" [{e.low:.2f}, {e.high:.2f}]"
    baseline = base.get((row.point, row.metric))
    paper = beside.get(
        (row.data, row.setting, row.attack, row.metric),
        beside.get((row.data, row.point, row.attack, row.metric), ""),
    )
    return [
        row.attack,
        " ".join(filter(None, [row.setting, row.point])),
        _SHORT.get(row.metric, row.metric.replace("_", " ")),
        mean,
        f"{e.median:.2f}",
        f"{e.repetitions} x {row.n}",
        "" if baseline is None or row.attack == "majority" else f"{baseline:.2f}",
        paper,
    ]

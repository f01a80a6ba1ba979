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
_ACCURACY = "aia_accuracy_percent"
_BOUND = "aia_accuracy_bound_percent"
_HIDDEN = ("train_loss", "test_loss", "rank", "determined", _BOUND)
_SHORT = {
    _ACCURACY: "accuracy %",
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


def results_tables(rows: Sequence[Row], paper_table: str | None) -> list[Table]:
    """Means over clients and seeds beside baseline and paper; one table per point.

    Curves and diagnostics stay in `rows.jsonl`; Proposition 1's bound, where there is
    one, stands beside the accuracy that it bounds.
    """
    beside = published(paper_table)
    labels = list(dict.fromkeys(row.point for row in rows))
    return [_table([r for r in rows if r.point == p], beside) for p in labels]


def _table(rows: Sequence[Row], beside) -> Table:
    first = rows[0]
    totals = [s for s in summarise(rows) if s.row.client == "all"]
    baselines = {
        s.row.metric: f"{s.estimate.mean:.2f}"
        for s in totals
        if s.row.attack == "majority"
    }
    bounds = {
        s.row.attack: f"{s.estimate.mean:.2f}" for s in totals if s.row.metric == _BOUND
    }
    title = " ".join(filter(None, [first.data, first.model, first.point]))
    table = Table(title=f"{first.experiment}: {title}")
    for name in ("attack", "setting", "metric"):
        table.add_column(name, overflow="fold", min_width=8)
    numbers = ["mean [95 % interval]", "median", "seeds x rows", "baseline"]
    for name in (*numbers, *(["bound"] if bounds else []), "paper"):
        table.add_column(name, justify="right", no_wrap=True)
    for s in totals:
        row = s.row
        if row.metric in _HIDDEN:
            continue
        base = "" if row.attack == "majority" else baselines.get(row.metric, "")
        bound = bounds.get(row.attack, "") if row.metric == _ACCURACY else ""
        table.add_row(
            *(
                row.attack,
                row.setting,
                _SHORT.get(row.metric, row.metric.replace("_", " ")),
            ),
            *_numbers(s),
            *(base, *([bound] if bounds else []), _paper(row, beside)),
        )
    return table


def screen() -> Console:
    """Standard output, wide enough for a results table also when it is no terminal."""
    out = Console()
    return out if out.is_terminal else Console(width=120)


def _numbers(s: Summary) -> list[str]:
    e = s.estimate
    mean = f"{e.mean:.2f}"
    if not math.isnan(e.low):
        mean += f" [{e.low:.2f}, {e.high:.2f}]"
    return [mean, f"{e.median:.2f}", f"{e.repetitions} x {s.row.n}"]


def _paper(row: Row, beside) -> str:
    return next(
        (
            beside[row.data, where, row.attack, row.metric]
            for where in (row.setting, row.point)
            if (row.data, where, row.attack, row.metric) in beside
        ),
        "",
    )

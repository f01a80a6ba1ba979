"""What a person sees: progress bars on standard error, tables on standard output."""

import csv
import math
import pathlib
from collections.abc import Sequence

from rich import box
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

from experiments.config import ConfigError
from fljax.results import Row, Summary, summarise

_PUBLISHED = pathlib.Path(__file__).with_name("published.csv")
_PAPER = "diana2024"
_ACCURACY = "aia_accuracy_percent"
_BOUND = "aia_accuracy_bound_percent"
_DETERMINED = "determined"
_HIDDEN = ("train_loss", "test_loss", "rank", _DETERMINED, _BOUND)
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


def check_table(table: str | None) -> None:
    """Refuses a table of Diana et al. of which no number is stored; None is no table.

    Raises:
      ConfigError: naming the tables that there are.
    """
    tables = sorted({line["table"] for line in _lines()})
    if table is not None and table not in tables:
        expected = f"--paper_table: expected one of {', '.join(tables)}"
        raise ConfigError(f"{expected}, got {table!r}")


def published(table: str | None) -> dict[tuple[str, str, str, str], str]:
    """`(data, setting or point, attack, metric) -> "value ± std"` of one paper table.

    Methods have the names of our attacks. "Ours" in the passive setting of Table 2 is
    Algorithm 2 as the authors run it, on the messages of a square system, so it is
    `reconstruct_subset` here; in the active settings it is `model`.

    Raises:
      ConfigError: as `check_table`.
    """
    check_table(table)
    return {
        (line["dataset"], line["setting"], line["method"], line["metric"]): " ± ".join(
            filter(None, [line["value"], line["std"]])
        )
        for line in _lines()
        if line["table"] == table
    }


def results_tables(rows: Sequence[Row], paper_table: str | None) -> list[Table]:
    """Means over clients and seeds beside baseline and paper; one table per point.

    Curves and diagnostics stay in `rows.jsonl`; Proposition 1's bound, where there is
    one, stands beside the accuracy that it bounds, and the score of a reconstruction
    that the messages of some client do not determine says so.
    """
    beside = published(paper_table)
    labels = list(dict.fromkeys(row.point for row in rows))
    return [_table([r for r in rows if r.point == p], beside) for p in labels]


def _table(rows: Sequence[Row], beside) -> Table:
    totals = [s for s in summarise(rows) if s.row.client == "all"]
    baselines = {
        s.row.metric: f"{s.estimate.mean:.2f}"
        for s in totals
        if s.row.attack == "majority"
    }
    bounds, determined = _means(totals, _BOUND), _means(totals, _DETERMINED)
    table = _empty(rows[0], bounded=bool(bounds))
    for s in totals:
        row = s.row
        if row.metric in _HIDDEN:
            continue
        metric = _SHORT.get(row.metric, row.metric.replace("_", " "))
        if row.metric in _SHORT and determined.get(row.attack, 1) < 1:
            metric += " (not determined)"
        base = "" if row.attack == "majority" else baselines.get(row.metric, "")
        cells = [row.attack, row.setting, metric, *_numbers(s), base]
        if bounds:
            bounded = row.metric == _ACCURACY and row.attack in bounds
            cells.append(f"{bounds[row.attack]:.2f}" if bounded else "")
        table.add_row(*cells, _paper(row, beside))
    return table


def _empty(first: Row, *, bounded: bool) -> Table:
    """Title and columns; narrow enough for a terminal of 120 characters."""
    title = " ".join(filter(None, [first.data, first.model, first.point]))
    table = Table(
        title=f"{first.experiment}: {title}",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    table.add_column("attack", no_wrap=True)
    table.add_column("setting", overflow="fold", min_width=8)
    table.add_column("metric", overflow="fold", min_width=len("optimum distance"))
    numbers = ["mean [95 % interval]", "median", "seeds\nx rows", "baseline"]
    for name in (*numbers, *(["bound"] if bounded else []), "paper"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def screen() -> Console:
    """Standard output, wide enough for a results table also when it is no terminal."""
    out = Console()
    return out if out.is_terminal else Console(width=120)


def _lines() -> list[dict[str, str]]:
    with _PUBLISHED.open() as file:
        return [line for line in csv.DictReader(file) if line["paper"] == _PAPER]


def _means(totals: Sequence[Summary], metric: str) -> dict[str, float]:
    """Attack -> mean of one metric."""
    return {s.row.attack: s.estimate.mean for s in totals if s.row.metric == metric}


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

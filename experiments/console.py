"""What a person sees: progress bars on standard error, tables on standard output."""

import math
import time
import types
from collections.abc import Mapping, Sequence
from typing import Any

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

from experiments import processes, published
from fljax import report
from fljax.metrics import Estimate
from fljax.results import Row

_SECONDS = 60  # between two lines of progress


class _Rate(ProgressColumn):
    """Units per second."""

    def render(self, task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "-/s")


class _Lines(Progress):
    """For files and pipes: a line when a task is done, and one a minute until then."""

    def __init__(self, console: Console):
        super().__init__(console=console, disable=True)
        self._said = time.monotonic()

    def advance(self, task_id, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._say(task_id)

    def update(self, task_id, **fields) -> None:
        super().update(task_id, **fields)
        self._say(task_id)

    def _say(self, task_id) -> None:
        (task,) = (task for task in self.tasks if task.id == task_id)
        late = time.monotonic() > self._said + _SECONDS
        if task.visible and (late or task.finished):
            self._said = time.monotonic()
            done = f"{task.completed:g} of {task.total:g}, {task.elapsed:.0f} s"
            self.console.print(f"{task.description.strip()}: {done}", highlight=False)


def progress() -> Progress:
    """A bar with count, rate and remaining time; lines where nobody sees a bar."""
    console = Console(stderr=True, quiet=not processes.is_first())
    if not console.is_terminal:
        return _Lines(console)
    return Progress(
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        console=console,
    )


def results_tables(
    rows: Sequence[Row],
    paper_table: str | None,
    flags: Mapping[str, Any] = types.MappingProxyType({}),
) -> list[Table]:
    """Means over clients and seeds beside baseline and paper; one table per point.

    Curves and diagnostics stay in `rows.jsonl`; Proposition 1's bound, where there is
    one, stands beside the accuracy that it bounds, and the score of a reconstruction
    that the messages of some client do not determine says so. Published numbers of
    other data, another model or another defense are not shown.

    Args:
      rows: of one run.
      paper_table: as `published.check_table`.
      flags: what the run was told.
    """
    if not rows:
        return []
    card = report.card(
        "", rows, {}, published.reference(paper_table, rows[0].data, flags)
    )
    labels = list(dict.fromkeys(row.point for row in rows))
    first = {row.point: row for row in reversed(rows)}
    return [
        _table(first[p], [each for each in card.judged if each.line.row.point == p])
        for p in labels
    ]


def _table(first: Row, judged: Sequence[report.Judged]) -> Table:
    bounded = any(each.line.bound is not None for each in judged)
    table = _empty(first, bounded=bounded)
    for line, number, verdict in judged:
        row, e = line.row, line.estimate
        cells = [
            row.attack, row.setting, line.metric, _interval(line.shown),
            f"{e.median:.2f}", f"{e.repetitions} x {row.n}", _number(line.baseline),
        ]  # fmt: skip
        bound = [_number(line.bound)] if bounded else []
        known = number is not None and verdict.kind != report.NOT_COMPARABLE
        table.add_row(*cells, *bound, str(number) if known else "")
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
    quiet = not processes.is_first()
    out = Console(quiet=quiet)
    return out if out.is_terminal else Console(width=120, quiet=quiet)


def _interval(e: Estimate) -> str:
    mean = f"{e.mean:.2f}"
    return mean if math.isnan(e.low) else f"{mean} [{e.low:.2f}, {e.high:.2f}]"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"

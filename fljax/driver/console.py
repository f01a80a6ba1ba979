"""What a person looks at: progress on standard error, results on standard output."""

import contextlib
import threading
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from fljax.driver import processes

_SECONDS = 60  # between two lines of progress
_REMEMBERED = 3600  # seconds of progress that a forecast rests on
_PATIENCE = 5  # seconds until a wait is explained


class _Rate(ProgressColumn):
    """Units per second."""

    def render(self, task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "-/s")


class _Lines(Progress):
    """For files and pipes: a line when a task is done, and one a minute until then.

    A forecast needs two steps in this process: what an earlier one did has no time here.
    """

    def __init__(self, console: Console):
        super().__init__(
            console=console,
            disable=True,
            get_time=time.monotonic,
            speed_estimate_period=_REMEMBERED,
        )
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
            if task.time_remaining:
                done += f", about {task.time_remaining:.0f} s left"
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


@contextlib.contextmanager
def waiting(name: str) -> Iterator[None]:
    """Says what a block is busy with, once it has taken a while."""
    console = Console(stderr=True, quiet=not processes.is_first())
    said = f"{name}: still at work after {_PATIENCE} s"
    timer = threading.Timer(_PATIENCE, console.print, [said], {"highlight": False})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def command(text: str) -> Text:
    """A line to copy, which is never broken."""
    return Text(text, no_wrap=True)


def is_command(shown: object) -> bool:
    """Whether it is from `command`."""
    return isinstance(shown, Text) and bool(shown.no_wrap)


def screen() -> Console:
    """Standard output, wide enough for a results table also when it is no terminal."""
    quiet = not processes.is_first()
    out = Console(quiet=quiet)
    return out if out.is_terminal else Console(width=120, quiet=quiet)

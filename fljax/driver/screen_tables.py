"""Tables on a screen, all in one style, and how a mean with its interval is written."""

import math

from rich import box
from rich.table import Table
from rich.text import Text

from fljax.metrics import Estimate


def empty(title: str | Text | None = None) -> Table:
    """A table without columns."""
    return Table(
        title=title,
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )


def add_texts(table: Table, *names: str) -> None:
    """Columns of words that stay on one line."""
    for name in names:
        table.add_column(name, no_wrap=True)


def add_numbers(table: Table, *names: str) -> None:
    """Columns of numbers, flush right."""
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)


def interval(e: Estimate, form: str) -> str:
    """`mean [low, high]`, each in the format `form`; a single value has no interval."""
    mean = f"{e.mean:{form}}"
    return mean if math.isnan(e.low) else f"{mean} [{e.low:{form}}, {e.high:{form}}]"

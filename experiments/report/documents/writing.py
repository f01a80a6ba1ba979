"""Tables, commands and numbers as a page of Markdown has them."""

import math
from collections.abc import Collection, Sequence

from experiments.report import markdown
from experiments.report.tables import Cell
from fljax import metrics
from fljax.metrics import Estimate

_SEEN = 24  # lines of a table that stands open


def table(
    header: Sequence[str], body: Sequence[Sequence[Cell]], numbers: Collection[str] = ()
) -> str:
    """A table; columns named in `numbers` stand to the right, empty ones are left out."""
    kept = [i for i in range(len(header)) if any(_cell(line[i]) for line in body)]
    lines = [
        [header[i] for i in kept],
        ["---:" if header[i] in numbers else "---" for i in kept],
        *([_cell(line[i]) for i in kept] for line in body),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def folded(text: str, what: str) -> str:
    """A table that is longer than a look at it, which a reader opens.

    Args:
      text: of `table`.
      what: its lines are, in words.
    """
    count = len(text.splitlines()) - 2
    if count <= _SEEN:
        return text
    return f"<details><summary>{count} {what}</summary>\n\n{text}\n\n</details>"


def command(line: str) -> str:
    """A command to be copied."""
    return f"```bash\n{line}\n```"


def plain(estimate: Estimate, digits: int = 1) -> str:
    """`mean [low, high]` with so many decimals; the mean alone of a single seed."""
    e, form = estimate, f".{digits}f"
    if not math.isfinite(e.mean):
        return "not finite"
    if not math.isfinite(e.high - e.low):
        return f"{e.mean:{form}}"
    return f"{e.mean:{form}} [{e.low:{form}}, {e.high:{form}}]"


def share(estimate: Estimate, count: int, digits: int = 1) -> str:
    """`plain` of a percentage; the same with every seed, it has Wilson's interval.

    Args:
      estimate: over the seeds.
      count: what it is a share of, where that is whole or nothing of each.
      digits: decimals.
    """
    return plain(metrics.as_rows(estimate, count), digits)


def _cell(cell: Cell) -> str:
    return markdown.escape(cell if isinstance(cell, str) else cell.text)

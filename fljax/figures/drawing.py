"""What all figures share: labels, styles, titles, and the file format."""

import io
import itertools
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fljax import files
from fljax.results import Row

MAJORITY: dict[str, Any] = {"color": "grey", "ls": "--", "label": "majority"}
_LONGEST = 40
_COLOURS = 10  # the colours C0 to C9 of matplotlib
_MARKS = (("o", "-"), ("s", ":"), ("v", "-."), ("^", "--"))


def png(figure: Figure) -> bytes:
    """The figure as a PNG file; equal figures give equal bytes."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        # A name in letters that the font lacks, or too long to fit, is no defect.
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
    return file.getvalue()


def save(figure: Figure, path: str | os.PathLike) -> None:
    """Writes a PNG atomically."""
    with files.replacing(path) as file:
        file.write(png(figure))


def plain(text: str, longest: int = _LONGEST) -> str:
    """Text from rows as matplotlib shows it letter by letter, cut where too long.

    A dollar sign would begin a formula, and what is not printable has no glyph.
    """
    shown = "".join(c if c.isprintable() else " " for c in text)
    if len(shown) > longest:
        shown = shown[: longest - 3] + "..."
    return shown.replace("$", r"\$")


def label(row: Row, *, point: bool = True) -> str:
    """Attack and setting of a row, and its point."""
    parts = [row.attack, f"({row.setting})", row.point if point else ""]
    return plain(" ".join(filter(None, parts)), 2 * _LONGEST)


def title(rows: Sequence[Row]) -> str:
    """Data, model and number of seeds."""
    row = rows[0]
    seeds = len({r.seed for r in rows})
    return plain(f"{row.data}, {row.model}, {seeds} seed{'s' if seeds > 1 else ''}")


def styles() -> Iterator[dict[str, Any]]:
    """Distinct lines: ten colours, then the same with other marks and dashes."""
    for marker, dash in itertools.cycle(_MARKS):
        for index in range(_COLOURS):
            yield {"color": f"C{index}", "ls": dash, "marker": marker, "ms": 4}


def name_lines(axes: Axes, *, beside: bool = False) -> None:
    """A legend in the axes, or beside them where it would hide them."""
    count = len(axes.get_legend_handles_labels()[1])
    if count > 6 or beside:
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    elif count:
        axes.legend(fontsize=8)

"""What all figures share: labels, styles, titles, and the file format."""

import io
import itertools
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.report.figures import statements
from fljax.metrics import Estimate
from fljax.results import Row

MAJORITY: dict[str, Any] = {"color": "grey", "ls": "--", "label": "majority"}
IMPUTATION: dict[str, Any] = {"color": "grey", "ls": ":", "label": "imputation"}
REFERENCES = {look["label"]: look for look in (MAJORITY, IMPUTATION)}
_FORMAT: dict[Any, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "fljax",
    "svg.image_inline": True,
}
_UNSAID = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # would vary
_MOST_POINTS = 2000  # of a line or a cloud that is drawn point by point
_LONGEST = 40
_COLOURS = 10  # the colours C0 to C9 of matplotlib
_MARKS = (("o", "-"), ("s", ":"), ("v", "-."), ("^", "--"))


def svg(figure: Figure) -> bytes:
    """The figure as an SVG file; equal figures give equal bytes.

    Its `<title>` says in words what it shows. Letters are drawn as paths, so that they
    look the same where their font is missing, and many points as one picture of them.
    """
    for artist in figure.findobj(_has_many_points):
        artist.set_rasterized(True)
    file = io.BytesIO()
    title = statements.title_of(figure)
    with warnings.catch_warnings(), matplotlib.rc_context(_FORMAT):
        # A name in letters that the font lacks, or too long to fit, is no defect.
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(file, format="svg", dpi=150, metadata=_UNSAID)
    drawn = file.getvalue()
    head, rest = drawn[drawn.index(b"<svg ") :].split(b">", 1)
    return head + b">\n" + title + rest


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


def draw_bands(
    axes: Axes,
    lines: Mapping[str, Sequence[tuple[float, Estimate]]],
    looks: Mapping[str, Mapping[str, Any]] = types.MappingProxyType({}),
) -> None:
    """Lines of means with their intervals as bands; `looks` of lines that need one."""
    for (name, line), style in zip(lines.items(), styles(), strict=False):
        look = looks.get(name, style)
        x, estimates = zip(*sorted(line, key=lambda pair: pair[0]), strict=True)
        axes.plot(x, [e.mean for e in estimates], label=name, **look)
        low, high = [e.low for e in estimates], [e.high for e in estimates]
        axes.fill_between(x, low, high, color=look["color"], alpha=0.15, lw=0)


def name_lines(axes: Axes, *, beside: bool = False) -> None:
    """A legend in the axes, or beside them where it would hide them."""
    count = len(axes.get_legend_handles_labels()[1])
    if count > 6 or beside:
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    elif count:
        axes.legend(fontsize=8)


def _has_many_points(artist: Artist) -> bool:
    if isinstance(artist, Line2D):
        return len(np.ravel(artist.get_xdata())) > _MOST_POINTS
    if isinstance(artist, PathCollection):
        return len(np.asarray(artist.get_offsets())) > _MOST_POINTS
    return False

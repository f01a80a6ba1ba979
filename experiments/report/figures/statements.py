"""What a figure shows, in words: for whoever cannot see it.

The words stand in the figure's SVG file as its `<title>`, and are read from there.
"""

import html
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import FixedLocator

_LONGEST, _MOST_SERIES, _MOST_POINTS = 1200, 24, 6
_BEGIN = 2**16  # bytes of a file that are searched
_FORMULA = re.compile(r"(?<!\\)\$\\?(\w+)\$")  # one letter or name
_TITLE = re.compile(rb"<title>([^<]*)</title>")


def statements(figure: Figure) -> str:
    """Title, axes and series of a figure with their values, as one line."""
    said = [figure.get_suptitle(), *_pictures(figure)]
    said += _labels(figure.get_supxlabel(), figure.get_supylabel())
    for axes in figure.axes:
        if axes.get_label() != "<colorbar>" and not _is_picture(axes):
            said += _of_axes(axes)
    line = ". ".join(_letters(each) for each in said if each)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def title_of(figure: Figure) -> bytes:
    """The statements as the element that an SVG file has for them."""
    return f"<title>{html.escape(statements(figure), quote=False)}</title>".encode()


def alt_text(content: bytes) -> str:
    """What an SVG file says that it shows, empty without; it may come from anyone."""
    found = _TITLE.search(content[:_BEGIN])
    if found is None:
        return ""
    text = html.unescape(found[1].decode(errors="replace"))
    return "".join(c if c.isprintable() else " " for c in text)[:_LONGEST]


def _letters(text: str) -> str:
    """Without the signs by which matplotlib tells formulas."""
    text = _FORMULA.sub(r"\1", text.replace("$\\varepsilon$", "epsilon"))
    return " ".join(text.replace(r"\$", "$").split())


def _of_axes(axes: Axes) -> Iterator[str]:
    if not (axes.lines or axes.collections or axes.images):
        return
    yield axes.get_title()
    yield from _labels(axes.get_xlabel(), axes.get_ylabel())
    series = list(_series(axes))
    yield from series[:_MOST_SERIES]
    if len(series) > _MOST_SERIES:
        yield f"{len(series) - _MOST_SERIES} more"
    for text in axes.texts:
        if "\n" in text.get_text():  # names of numbered points
            yield "; ".join(text.get_text().splitlines())


def _labels(horizontal: str, vertical: str) -> Iterator[str]:
    if horizontal:
        yield f"Horizontal: {horizontal}"
    if vertical:
        yield f"Vertical: {vertical}"


def _series(axes: Axes) -> Iterator[str]:
    """Name and values of everything that is drawn."""
    ticks = _names(axes.xaxis), _names(axes.yaxis)
    notes = {t.xy: t.get_text() for t in axes.texts if isinstance(t, Annotation)}
    for bars in axes.containers:
        if isinstance(bars, ErrorbarContainer) and bars.lines[0] is not None:
            name, points = bars.get_label(), np.asarray(bars.lines[0].get_xydata())
            if _is_name(name):
                yield f"{name}: {_points(points, *ticks)}"
            else:
                yield "; ".join(_noted(point, ticks[1], notes) for point in points)
    for line in axes.lines:
        if _is_name(line.get_label()):
            yield f"{line.get_label()}: {_points(line.get_xydata(), *ticks)}"
    for cloud in axes.collections:
        if isinstance(cloud, PathCollection) and _is_name(cloud.get_label()):
            yield f"{cloud.get_label()}: {_ranges(np.asarray(cloud.get_offsets()))}"
    for image in axes.images:
        cells = np.asarray(image.get_array(), np.float64)
        size = " x ".join(map(str, cells.shape))
        yield f"{size} cells {_range(np.ravel(cells))}"


def _is_picture(axes: Axes) -> bool:
    """One of a grid, of which `pictures` draws no frame, and no matrix of numbers."""
    return bool(axes.images) and not axes.get_frame_on()


def _is_name(label: Any) -> bool:
    return bool(label) and not str(label).startswith("_")


def _names(axis: Axis) -> dict[float, str]:
    """Place -> text of an axis that has names for numbers."""
    if not isinstance(axis.get_major_locator(), FixedLocator):
        return {}
    texts = (label.get_text() for label in axis.get_majorticklabels())
    places = map(float, axis.get_majorticklocs())
    return {place: text for place, text in zip(places, texts) if text}


def _points(points: Any, xs: Mapping[float, str], ys: Mapping[float, str]) -> str:
    """Few points one by one, of many the ends and the range; a level as its number."""
    points = np.asarray(points, np.float64)
    if len(points) == 2 and points[0, 1] == points[1, 1] and _is_span(points[:, 0]):
        return _number(points[0, 1], ys)
    if len(points) == 2 and points[0, 0] == points[1, 0] and _is_span(points[:, 1]):
        return _number(points[0, 0], xs)
    few = len(points) <= _MOST_POINTS
    ends = points if few else points[[0, -1]]
    said = [f"{_number(y, ys)} at {_number(x, xs)}" for x, y in ends]
    if few:
        return ", ".join(said)
    return f"from {said[0]} to {said[1]}, {_range(points[:, 1])}"


def _is_span(values: np.ndarray) -> bool:
    """Whether a line goes from end to end of its axes."""
    return tuple(values) == (0, 1)


def _noted(point: Any, names: Mapping[float, str], notes: Mapping[tuple, str]) -> str:
    """A point without a series, by its name on the axis or the number beside it."""
    x, y = map(float, point)
    if y in names:
        return f"{names[y]}: {_number(x)}"
    place = f"{_number(y)} at {_number(x)}"
    return f"{notes[x, y]}: {place}" if (x, y) in notes else place


def _ranges(points: np.ndarray) -> str:
    if not len(points):
        return "no points"
    x, y = (_range(points[:, axis]) for axis in (0, 1))
    return f"{len(points)} points, horizontally {x}, vertically {y}"


def _range(values: np.ndarray) -> str:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "not finite"
    low, high = _number(finite.min()), _number(finite.max())
    return f"between {low} and {high}" if low != high else f"always {low}"


def _number(value: float, names: Mapping[float, str] | None = None) -> str:
    """Four digits, or the name that the place, or the next whole one, has."""
    value = float(value)
    if not math.isfinite(value):
        return "not finite"
    place = value if value in (names or {}) else float(round(value))
    return (names or {}).get(place, f"{value:.4g}")


def _pictures(figure: Figure) -> Iterator[str]:
    """Rows of a grid of pictures, with what is written under each."""
    rows: dict[str, list[str]] = {}
    name = ""
    for axes in figure.axes:
        name = axes.get_ylabel() or name
        if _is_picture(axes):
            rows.setdefault(name or axes.get_title(), []).append(axes.get_xlabel())
    for row, captions in rows.items():
        under = _listed([each for each in captions if each])
        count = f"{len(captions)} picture{'s' if len(captions) > 1 else ''}"
        yield f"{row}: {count}{under}" if row else f"{count}{under}"


def _listed(texts: Sequence[str]) -> str:
    return f" ({', '.join(texts)})" if texts else ""

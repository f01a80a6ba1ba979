"""All combinations of categories that lie in the span of a batch's rows.

Group by group, the largest first; a combination that the groups so far rule out is not
gone on with.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fljax.attacks.rows import span as span_lib
from fljax.attacks.rows.schema import Group, Schema
from fljax.attacks.rows.span import Sent, Span

_LEAST, _ERRORS = 1e-3, 30  # of a singular value, at least so many errors
_CLOSE = 3  # times that, how far from the span a combination may be
_ROUNDING = 3e-6  # of a gradient's entry, below which no row has the category
_MOST_NUMBERS = 4e7  # that are held at once


class TooMany(Exception):
    """There are more combinations than can be looked at."""


class Rows(NamedTuple):
    """Rows of the span with one category of each group; `f` of their numbers are free.

    Attributes:
      x: `[n, D]` encoded, the numbers being those of one point.
      ways: `[Dn, f]` how numbers may change together.
    """

    x: np.ndarray
    ways: np.ndarray


def tolerance(span: Span) -> float:
    """Least singular value that is not taken for 0."""
    return max(_LEAST, _ERRORS * span.error)


def present(schema: Schema, gradient: np.ndarray) -> np.ndarray:
    """Which inputs `[D]` are not 0 in every row of a gradient `[1 + D, H]`."""
    bias, kernel = gradient[:1], gradient[1:]
    mean, scale = schema.mean[:, None], schema.scale[:, None]
    raw = np.abs(kernel * scale + mean * bias).max(axis=1)
    sizes = np.abs(kernel).max(axis=1) * schema.scale
    return raw > _ROUNDING * (sizes + np.abs(schema.mean) * np.abs(bias).max())


def consistent(
    schema: Schema, span: Span, sent: Sent, most: int, part: int = 0
) -> tuple[Rows, int]:
    """Rows in a span, and how many parts of them there are.

    Args:
      schema: of the table.
      span: where the rows lie.
      sent: the gradient that came, whose rounding counts.
      most: rows of a part, the first of which has those that fit best.
      part: which one is given, modulo how many there are.

    Raises:
      TooMany: more combinations than memory should hold.
    """
    there = present(schema, span.remaining) & present(schema, sent.gradient)
    groups = [
        Group(tuple(c for c in group.columns if there[c]), group.reference)
        for group in schema.groups
    ]
    groups.sort(key=lambda group: -len(group.columns))
    least = tolerance(span)
    options, off = np.zeros((1, 0), np.int64), np.zeros(1)
    for count, group in enumerate(groups, 1):
        options = _extended(options, len(group.columns), group.reference)
        options, off = _kept(schema, span, groups[:count], options, least)
    parts = max(1, -(-len(options) // most))
    if parts > 1:
        start = part % parts * most
        options = options[np.argsort(off, kind="stable")[start : start + most]]
    x = np.tile(schema.off, (len(options), 1))
    for chosen, group in zip(options.T, groups, strict=True):
        on = chosen < len(group.columns)
        places = np.asarray(group.columns, int)[chosen[on]]
        x[np.flatnonzero(on), places] = schema.on[places]
    return _with_numbers(schema, span, _places(groups), x, least), parts


def _places(groups: Sequence[Group]) -> np.ndarray:
    return np.asarray([column for group in groups for column in group.columns], int)


def _extended(options: np.ndarray, count: int, reference: bool) -> np.ndarray:
    """Options `[n, g + 1]`: each with each of one more group; the last is for none."""
    new = count + (reference or not count)
    last = np.tile(np.arange(new), len(options))
    return np.concatenate([np.repeat(options, new, axis=0), last[:, None]], axis=1)


def _kept(schema: Schema, span: Span, groups, options, least: float):
    """Options that the groups so far do not rule out, and how far `[n]` they are off."""
    places = _places(groups)
    left = span_lib.left_null_space(span.basis[[0, *(1 + places)]], least)
    if len(options) * max(1, left.shape[1]) > _MOST_NUMBERS:
        raise TooMany(f"{len(options)} combinations of categories")
    step = (schema.on - schema.off)[places, None] * left[1:]
    total = np.tile(left[0] + schema.off[places] @ left[1:], (len(options), 1))
    start = 0
    for chosen, group in zip(options.T, groups, strict=True):
        end = start + len(group.columns)
        none = np.zeros((1, left.shape[1]))
        total += np.concatenate([step[start:end], none])[chosen]
        start = end
    off = np.abs(total).max(axis=1, initial=0)
    kept = off < _CLOSE * least
    return options[kept], off[kept]


def _with_numbers(schema: Schema, span: Span, places, x, least: float) -> Rows:
    """Fills in the numbers of the point with the shortest coordinates."""
    inverse, free = span_lib.null_space(span.basis[[0, *(1 + places)]], least)
    told = span_lib.with_ones(x[:, places])
    numbers = span.basis[1 + schema.numbers]
    x[:, schema.numbers] = (told @ inverse.T) @ numbers.T
    # Where rounding counts as a row, more ways are left than there are numbers.
    turned, lengths, _ = np.linalg.svd(numbers @ free, full_matrices=False)
    return Rows(x, turned * lengths)

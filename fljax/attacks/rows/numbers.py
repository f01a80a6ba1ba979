"""Numbers of rows whose categories are known and leave some ways open.

Numbers that may be 0, as most capital gains are, are taken to be 0 first. What is still
open is drawn from the range and improved by small changes: the nearer a row is, the
fewer neurons it switches wrongly, and the nearer is its delta to the span.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fljax.attacks.rows.categories import Rows
from fljax.attacks.rows.schema import Schema

_LEAST = 1e-3  # of a way's length, below which it does not change a number
_SLACK, _WIDE = 0.05, 0.25  # deviations beyond the range: of a guess, of a draw
_SPREAD = 2.5  # deviations around the mean that are drawn from
_PER_ROW, _REFINED = 400, 400
_ALONE = 4_000  # of a table without categories
_STARTS = 20_000  # of all rows
_FIRST, _SHRINK, _TRIES, _STEPS = 0.5, 0.7, 8, 12  # of the improvement

Distance = Callable[[np.ndarray], np.ndarray]
# encoded rows `[n, D]` -> distance `[n]` of their deltas from the span


class Scored(NamedTuple):
    """Rows `[n, D]` and the distances `[n]` of their deltas."""

    x: np.ndarray
    distance: np.ndarray


def filled(
    rows: Rows,
    schema: Schema,
    distance: Distance,
    draws: np.random.Generator,
    most: int,
) -> Scored:
    """The best row found for each combination of categories.

    Args:
      rows: combinations, and the ways that their numbers may go.
      schema: of the table.
      distance: from the span of the deltas.
      draws: what points are drawn from.
      most: rows that are looked at before the improvement.
    """
    x, ways = _at_zero(rows, schema)
    if ways.shape[1]:
        x, owner = _drawn(x, ways, schema, draws, most)
    else:
        owner = np.arange(len(x))
    inside = _inside(x, schema, _WIDE if ways.shape[1] else _SLACK)
    x, owner = x[inside], owner[inside]
    found = _best_of_each(Scored(x, distance(x)), owner)
    if rows.ways.shape[1] and len(found.x):
        nearest = np.argsort(found.distance)[:_REFINED]
        best = Scored(found.x[nearest], found.distance[nearest])
        width = _FIRST if ways.shape[1] else _FIRST / 10
        found = _improved(best, rows.ways, schema, distance, draws, width)
    return found


def begun(rows: Rows, schema: Schema, draws: np.random.Generator | None) -> Rows:
    """Points to solve for the numbers from.

    Args:
      rows: combinations of categories.
      schema: of the table.
      draws: what several points of each row in the range are drawn from; None for one
        point, of zeros and means.
    """
    if draws is None:
        x, ways = _at_zero(rows, schema)
        targets = np.zeros((1, len(schema.numbers)))
    else:
        most = _PER_ROW if schema.groups else _ALONE
        count = max(1, min(most, _STARTS // max(1, len(rows.x))))
        x, ways = np.repeat(rows.x, count, axis=0), rows.ways
        ranges = np.stack([_usual(schema), schema.range(0)])
        which = draws.integers(0, 2, (len(x), len(schema.numbers)))
        low, high = ranges[which, :, np.arange(len(schema.numbers))].transpose(2, 0, 1)
        targets = draws.uniform(low, high)
    every = np.arange(len(schema.numbers))
    x, _ = _pinned(Rows(x, ways), schema, every, targets)
    return Rows(x, rows.ways)


def _usual(schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest number `[Dn]` that is drawn, encoded.

    Of one that is far from 0 throughout, as of a column that is not standardised, all.
    """
    low, high = schema.range(0)
    least, most = np.maximum(low, -_SPREAD), np.minimum(high, _SPREAD)
    far = least > most
    return np.where(far, low, least), np.where(far, high, most)


def _at_zero(rows: Rows, schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a 0 in every number that may be 0, and the ways that are left."""
    may = np.flatnonzero((schema.low <= 0) & (schema.high >= 0))
    return _pinned(rows, schema, may, schema.off[schema.numbers][None])


def _pinned(rows: Rows, schema: Schema, numbers, targets):
    """Rows with some numbers at their target `[n, Dn]`, as far as the ways allow."""
    chosen = _independent(rows.ways, numbers)
    if not chosen:
        return rows.x, rows.ways
    held = rows.ways[chosen]
    at = schema.numbers
    gap = targets[:, chosen] - rows.x[:, at[chosen]]
    x = rows.x.copy()
    x[:, at] += (gap @ np.linalg.pinv(held).T) @ rows.ways.T
    free = np.linalg.svd(held, full_matrices=True)[2][len(chosen) :].T
    return x, rows.ways @ free


def _independent(ways: np.ndarray, numbers: np.ndarray) -> list[int]:
    """Of these numbers those that the ways `[Dn, f]` change each for itself."""
    left, chosen = ways.copy(), []
    least = _LEAST * np.linalg.norm(ways, axis=1).max(initial=0)
    for _ in range(min(ways.shape[1], len(numbers))):
        lengths = np.linalg.norm(left[numbers], axis=1)
        if lengths.max() <= max(least, _LEAST):
            break
        chosen.append(int(numbers[lengths.argmax()]))
        along = left[chosen[-1]] / lengths.max()
        left = left - np.outer(left @ along, along)
    return chosen


def _drawn(x, ways, schema: Schema, draws, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in the range of the numbers, several of each row, and whose they are."""
    count = max(1, min(_PER_ROW, most // max(1, len(x))))
    low, high = _usual(schema)
    owner = np.repeat(np.arange(len(x)), count)
    targets = draws.uniform(low, high, (len(owner), len(low)))
    every = np.arange(len(low))
    pinned, _ = _pinned(Rows(x[owner], ways), schema, every, targets)
    return pinned, owner


def _inside(x: np.ndarray, schema: Schema, slack: float) -> np.ndarray:
    """Which rows have all numbers in their range."""
    low, high = schema.range(slack)
    numbers = x[:, schema.numbers]
    return np.all((numbers >= low) & (numbers <= high), axis=1)


def _best_of_each(scored: Scored, owner: np.ndarray) -> Scored:
    order = np.argsort(scored.distance, kind="stable")
    _, first = np.unique(owner[order], return_index=True)
    chosen = order[first]
    return Scored(scored.x[chosen], scored.distance[chosen])


def _improved(best: Scored, ways, schema: Schema, distance, draws, width) -> Scored:
    """Several random changes of every row, ever smaller ones, the best of which stay."""
    x, near = best.x.copy(), best.distance.copy()
    unit = ways / np.maximum(np.linalg.norm(ways, axis=0), _LEAST)
    for _ in range(_STEPS):
        tried = np.repeat(x, _TRIES, axis=0)
        tried[:, schema.numbers] += (
            width * draws.normal(size=(len(tried), unit.shape[1])) @ (unit.T)
        )
        found = distance(tried)
        found = np.where(_inside(tried, schema, _WIDE), found, np.inf)
        found = found.reshape(len(x), _TRIES)
        which = found.argmin(axis=1)
        better = found.min(axis=1) < near
        x[better] = tried.reshape(len(x), _TRIES, -1)[better, which[better]]
        near[better] = found.min(axis=1)[better]
        width *= _SHRINK
    return Scored(x, near)

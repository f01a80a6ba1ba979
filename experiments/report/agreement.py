"""Is this the kept result? A fresh run beside it, number by number.

Two numbers are equal if seven digits are. They agree within `POINTS` if they are
percentages, else within `SHARE` of the kept one: what other processors and other versions
of the packages may make of one training.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from fljax import certainty
from fljax.results import Row

POINTS, SHARE = 1.0, 0.02
EQUAL, AGREES, DIFFERS = "equal", "agrees", "differs"
_EXACT = 1e-7
_MOST = 10  # differences that are spelled out


class Agreement(NamedTuple):
    """What a comparison found.

    Attributes:
      verdict: `equal`, `agrees` or `differs`.
      lines: the same in words.
    """

    verdict: str
    lines: list[str]


def compare(fresh: Sequence[Row], kept: Sequence[Row]) -> Agreement:
    """A run beside a result, on the seeds that both have.

    What only the run has counts for nothing; what only the result has is a difference.

    Args:
      fresh: rows of the run, as they would be kept.
      kept: rows of the result.
    """
    seeds = {row.seed for row in fresh} & {row.seed for row in kept}
    ours, theirs = (
        {_key(row): row for row in rows if row.seed in seeds} for rows in (fresh, kept)
    )
    if not seeds:
        return Agreement(DIFFERS, [f"{DIFFERS}: no seed in common"])
    kinds = {key: _kind(ours.get(key), row) for key, row in theirs.items()}
    counts = Counter(kinds.values())
    verdict = next(kind for kind in (DIFFERS, AGREES, EQUAL) if counts[kind])
    said = (
        f"{verdict}: of {len(kinds)} numbers of seeds {_listed(seeds)} "
        f"{counts[EQUAL]} are equal to seven digits, {counts[AGREES]} agree within "
        f"{POINTS:g} point or {100 * SHARE:g} %, {counts[DIFFERS]} differ"
    )
    wrong = [key for key, kind in kinds.items() if kind == DIFFERS]
    shown = (_difference(theirs[key], ours.get(key)) for key in wrong[:_MOST])
    lines = [said, *shown]
    if len(wrong) > _MOST:
        lines.append(f"  and {len(wrong) - _MOST} more")
    if more := len(ours.keys() - theirs.keys()):
        lines.append(f"{more} numbers of the run are not in the result")
    return Agreement(verdict, lines)


def _difference(kept: Row, fresh: Row | None) -> str:
    parts = (
        kept.defense, kept.model, kept.point, kept.attack, kept.setting,
        f"seed {kept.seed}", f"client {kept.client}", kept.metric,
    )  # fmt: skip
    now = "not in the run"
    if fresh is not None:
        now = f"{fresh.value:.6g} of {fresh.n} in the run"
    what = ", ".join(part for part in parts if part)
    return f"  {what}: {kept.value:.6g} of {kept.n} kept, {now}"


def _kind(fresh: Row | None, kept: Row) -> str:
    if fresh is None or fresh.n != kept.n:
        return DIFFERS
    if fresh.value == kept.value or math.isnan(fresh.value) and math.isnan(kept.value):
        return EQUAL
    if not (math.isfinite(fresh.value) and math.isfinite(kept.value)):
        return DIFFERS
    apart = abs(fresh.value - kept.value)
    if apart <= _EXACT * max(abs(kept.value), _EXACT):
        return EQUAL
    allowed = SHARE * abs(kept.value)
    if kept.metric.endswith("_percent"):
        allowed = POINTS
    elif kept.metric in certainty.WORDS:  # a share, not in percent
        allowed = POINTS / 100
    return AGREES if apart <= allowed else DIFFERS


def _key(row: Row) -> Row:
    return row._replace(value=0.0, n=0)


def _listed(seeds: set[int]) -> str:
    return ", ".join(map(str, sorted(seeds)))

"""Fed-CDP in each reading of Wei et al. (2021), beside what their tables print of it.

The algorithm as printed draws for every example, the published code once for a batch and
divides the sum of returned models by one less than there are; the same noise is also
divided by the participants, at rates that were chosen so or at the code's. A line is a table, its data, the clients in a round and a
reading; it says how far all of its cells are from the print.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.report import kept, reproduction
from experiments.report.cards import Card, Judged, of_most_seeds
from experiments.report.documents import writing

_AS_PRINTED = "as printed"
_DIVIDED = "its noise, divided by the participants"
_AT_THEIR_RATE = f"{_DIVIDED}, at its rate"
_BY_DIVISOR = {"one_less": "the published code", "participants": _DIVIDED}
_THEIRS = [0.05]  # the published code's
_TABLES = ("Table II", "Table IV", "Table V")
_PERCENT = "participating_percent"
_ONE_DRAW = "mode=per_batch"  # of a batch
_COLUMNS = (
    "table", "data", "clients", "reading", "cells", "seeds",
    "ours less printed, mean", "lowest", "highest", "verdicts",
)  # fmt: skip
_NUMBERS = _COLUMNS[4:9]


class _Group(NamedTuple):
    """What a line is of."""

    table: str
    data: str
    clients: str
    reading: str


def text() -> str:
    """A line for each group."""
    found: dict[_Group, list[Judged]] = {}
    names = [name for name in kept.names() if name.startswith("fed_cdp.")]
    for card, judged in of_most_seeds(map(kept.shown, names)):
        if (group := _group(card, judged)) is not None:
            found.setdefault(group, []).append(judged)
    order = [_AS_PRINTED, *_BY_DIVISOR.values(), _AT_THEIR_RATE]
    groups = sorted(
        found, key=lambda g: (*g[:2], len(g.clients), g.clients, order.index(g.reading))
    )
    body = [
        [
            *group._replace(clients=_all_clients(group, found[group])),
            *_said(found[group]),
        ]
        for group in groups
    ]
    return writing.table(_COLUMNS, body, _NUMBERS)


def _group(card: Card, each: Judged) -> _Group | None:
    """Of Fed-CDP with a clip that stays, beside which a number is printed; else none."""
    flags, row, number = card.manifest["flags"], each.line.row, each.number
    if card.reference is None or card.reference.table not in _TABLES:
        return None
    plain = row.attack.startswith("fed_cdp") and "decay" not in row.attack
    if not plain or number is None or not number.is_printed:
        return None
    reading = _AS_PRINTED
    if _ONE_DRAW in row.defense:
        reading = _BY_DIVISOR[flags.get("divisor", "participants")]
        if reading == _DIVIDED and flags["learning_rates"] == _THEIRS:
            reading = _AT_THEIR_RATE
    elif "mode=" in row.defense:  # the theorem's, which is no reading of theirs
        return None
    table = card.reference.table
    return _Group(table, row.data, _clients(table, row.point, flags), reading)


def _told(point: str) -> dict[str, str]:
    return dict(part.split("=") for part in point.split(";") if "=" in part)


def _clients(table: str, point: str, flags: dict[str, Any]) -> str:
    """How many are in a round, which Table II varies, and of how many."""
    total = int(_told(point).get("clients", flags["clients"][0]))
    if table == "Table II":
        return f"{total:,}"
    return f"{round(total * flags['percent'][0] / 100):,} of {total:,}"


def _all_clients(group: _Group, cells: Sequence[Judged]) -> str:
    """In a round, of how many: of Table II with the percentages that were run."""
    if group.table != "Table II":
        return group.clients
    percents = [float(_told(c.line.row.point)[_PERCENT]) for c in cells]
    ends = sorted({min(percents), max(percents)})
    return f"{' to '.join(f'{end:g}' for end in ends)} % of {group.clients}"


def _said(cells: Sequence[Judged]) -> list[str]:
    apart = np.array([c.line.estimate.mean - c.number.mean for c in cells if c.number])
    kinds = Counter(each.verdict.kind for each in cells)
    seeds = {each.line.estimate.repetitions for each in cells}
    said = ", ".join(f"{kinds[k]} {k}" for k in reproduction.KINDS if kinds[k])
    ends = f"{apart.min():+.1f}", f"{apart.max():+.1f}"
    return [
        str(len(cells)), "-".join(map(str, sorted({min(seeds), max(seeds)}))),
        f"{apart.mean():+.1f}", *ends, said,
    ]  # fmt: skip

"""Tables of a report: every published number, the results and the utility of a run."""

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from experiments.report import lines as lines_lib
from experiments.report import reproduction
from experiments.report.cards import Card, Judged
from experiments.report.figures import selection
from experiments.report.lines import Line
from experiments.report.reproduction import Number


class Mark(NamedTuple):
    """A cell that says of which kind it is, for its colour."""

    text: str
    kind: str


Cell = str | Mark


class Table(NamedTuple):
    """A table; `numbers` are the names of the columns that hold numbers."""

    caption: str
    header: Sequence[str]
    body: Sequence[Sequence[Cell]]
    numbers: Collection[str] = ()


def table(
    caption: str,
    header: Sequence[str],
    body: Sequence[Sequence[Cell]],
    numbers: Collection[str] = (),
) -> Table:
    """A table without those columns that are empty in every row."""

    def text(cell: Cell) -> str:
        return cell.text if isinstance(cell, Mark) else cell

    kept = [i for i in range(len(header)) if any(text(line[i]) for line in body)]
    names = [header[i] for i in kept]
    return Table(caption, names, [[line[i] for i in kept] for line in body], numbers)


_COLOURS = {
    reproduction.REPRODUCED: "good",
    reproduction.ABOVE: "bad",
    reproduction.BELOW: "bad",
}
_EPSILON = "epsilon"  # a column: of the noise of a training
_OURS, _OTHER = "ours, mean [95 %]", "in the paper, not comparable"
_REFERENCES = [name.replace("_", " ") for name in lines_lib.REFERENCES]
AT_MOST = "no adversary above"  # a column: under the defense
_DEFENSE = "defense"  # setting of the rows that describe one
LONG = 60  # lines, beyond which a table is folded away
_NUMBERS = (
    _OURS, _EPSILON, "median", "seeds x rows", *_REFERENCES, "bound", AT_MOST, "published",
    _OTHER, "difference", "test loss", "training loss",
)  # fmt: skip


def summary(cards: Sequence[Card]) -> Table:
    """One line per published number that there is a result for."""
    header = [
        "table", "run", "data", "attack", "setting", "point", "metric", _OURS,
        "published", _OTHER, "difference", "verdict",
    ]  # fmt: skip
    body = [
        [card.reference.table if card.reference else "", card.name, each.line.row.data,
         *_what(each), lines_lib.interval(each.line.shown), *_published(card, each)]
        for card in cards
        for each in card.compared
    ]  # fmt: skip
    caption = "Every published number that there is a result for"
    return table(caption, header, body, _NUMBERS)


def results(card: Card) -> tuple[Table | None, Table | None]:
    """Scores of a run, and its other numbers; None for what it has none of."""
    scores = [each for each in card.judged if _is_score(each)]
    others = [
        each
        for each in card.judged
        if not _is_score(each) and each.line.row.setting != _DEFENSE
    ]
    return (
        _results(card, scores, f"Results of {card.name}") if scores else None,
        _results(card, others, f"Other measurements of {card.name}")
        if others
        else None,
    )


def defense(card: Card) -> Table | None:
    """What the rows say of a defense: epsilons, noise, clip; None without."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for each in card.judged:
        row = each.line.row
        if row.setting == _DEFENSE:
            shown = lines_lib.interval(each.line.estimate, constant_alone=True)
            found.setdefault((row.defense, row.point), {})[each.line.metric] = shown
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    body = [[*at, *(each.get(n, "") for n in names)] for at, each in found.items()]
    caption = (
        f"Defense of {card.name}: largest over the clients, percentages their mean "
        "[95 %]"
    )
    header = ["defense", "point", *names]
    return table(caption, header, body, names) if body else None


def _results(card: Card, judged: Sequence[Judged], caption: str) -> Table:
    rows = [each.line.row for each in judged]
    models, defenses = {row.model for row in rows}, {row.defense for row in rows}
    header = [
        "attack", "setting", "point", "metric", "model", "defense", _OURS, _EPSILON,
        "median", "seeds x rows", *_REFERENCES, "bound", AT_MOST, "published", _OTHER, "difference",
        "verdict",
    ]  # fmt: skip
    body = [
        [*_what(each),
         each.line.row.model if len(models) > 1 else "",
         each.line.row.defense if len(defenses) > 1 else "",
         *_measured(each), *_published(card, each)]
        for each in judged
    ]  # fmt: skip
    return table(caption, header, body, _NUMBERS)


def utility(card: Card) -> Table | None:
    """Losses of the last model that was sent; None without."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for metric in selection.LOSSES:
        for s in selection.last_losses(card.rows, metric):
            row = s.row
            at = row.model, row.defense, row.point, row.setting.replace("_", " ")
            found.setdefault(at, {})[metric] = lines_lib.interval(s.shown)
    body = [
        [*at, *(each.get(m, "") for m in selection.LOSSES)]
        for at, each in found.items()
    ]
    header = ["model", "defense", "point", "sent in", "test loss", "training loss"]
    caption = f"Utility of {card.name}: loss of the last model sent, mean [95 %]"
    return table(caption, header, body, _NUMBERS) if body else None


def _is_score(each: Judged) -> bool:
    metric = each.line.row.metric
    known = metric in lines_lib.SCORES or metric.endswith("_slope")
    return known or each.number is not None


def _what(each: Judged) -> tuple[str, str, str, str]:
    row = each.line.row
    return row.attack, row.setting, row.point, each.line.metric


def _measured(each: Judged) -> tuple[Cell, ...]:
    line = each.line
    return (
        lines_lib.interval(line.shown),
        line.epsilon.text if line.epsilon else "",
        number(line.skewed_median),
        f"{line.estimate.repetitions} x {line.row.n}",
        *(number(line.references.get(name)) for name in lines_lib.REFERENCES),
        number(line.bound),
        at_most(line),
    )


def at_most(line: Line) -> Cell:
    """The most that any adversary can have under the defense; marked where one has more."""
    shown = number(line.ceiling)
    return Mark(f"{shown}: BROKEN", "bad") if line.is_impossible else shown


def _published(card: Card, each: Judged) -> tuple[Cell, ...]:
    """The published number, one that is not comparable, difference and verdict."""
    if card.reference is None or each.line.row.attack == "majority":
        return "", "", "", ""
    if each.number is None:
        is_told = card.compared and _is_score(each)  # where others have a number
        return "", "", "", str(each.verdict) if is_told else ""
    kind = each.verdict.kind
    mark = Mark(str(each.verdict), _COLOURS.get(kind, "open"))
    if kind == reproduction.NOT_COMPARABLE:
        return "", f"{card.reference.data} {each.number}", "", mark
    return str(each.number), "", _difference(each.line.estimate.mean, each.number), mark


def _difference(mean: float, number: Number) -> str:
    if number.unit is None:
        return f"{round(mean - number.mean, 2) + 0.0:+.2f}"  # no -0.00
    if not math.isfinite(mean):
        return ""
    return f"{reproduction.last_digits(mean, number):+d} in the last digit"


def number(value: float | None) -> str:
    """As means are written; nothing where there is none."""
    return "" if value is None else f"{value:{lines_lib.digits(value)}}"


def bounded(card: Card) -> tuple[int, int]:
    """How many accuracies reach Proposition 1's bound, of how many that have one."""
    lines = [each.line for each in card.judged]
    held = [e.estimate.mean >= e.bound for e in lines if e.bound is not None]
    return sum(held), len(held)

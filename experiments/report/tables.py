"""Tables of a report: every published number, the results and the utility of a run."""

import math
from collections.abc import Sequence

from experiments.report import document, verdict
from experiments.report import lines as lines_lib
from experiments.report.cards import Card, Judged
from experiments.report.document import Block, Cell, Details, Mark, Paragraph
from experiments.report.figures import selection
from experiments.report.verdict import Number

_COLOURS = {verdict.REPRODUCED: "good", verdict.ABOVE: "bad", verdict.BELOW: "bad"}
_OURS, _OTHER = "ours, mean [95 %]", "in the paper, not comparable"
_DEFENSE = "defense"  # setting of the rows that describe one
_LONG = 60  # lines, beyond which a table is folded away
_NUMBERS = (
    _OURS, "median", "seeds x rows", "baseline", "bound", "published", _OTHER,
    "difference", "test loss", "training loss",
)  # fmt: skip


def summary(cards: Sequence[Card]) -> document.Table:
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
    return document.table(caption, header, body, _NUMBERS)


def results(card: Card) -> list[Block]:
    """Scores of a run, what there is to say about them, and its other numbers."""
    scores = [each for each in card.judged if _is_score(each)]
    others = [
        each
        for each in card.judged
        if not _is_score(each) and each.line.row.setting != _DEFENSE
    ]
    found: list[Block] = []
    if scores:
        caption = f"Results of {card.name}"
        table = _results(card, scores, caption)
        found = [Details(caption, [table]) if len(scores) > _LONG else table]
        found += [Paragraph(note) for note in _notes(card)]
    elif all(each.line.row.attack == "none" for each in others):
        found = [Paragraph("No attack was run.")]
    if others:
        caption = f"Other measurements of {card.name}"
        table = _results(card, others, caption)
        alone = not found and len(others) <= _LONG
        found.append(table if alone else Details(caption, [table]))
    return found


def defense(card: Card) -> list[Block]:
    """What the rows say of a defense: epsilons, noise, clip; nothing without."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for each in card.judged:
        row = each.line.row
        if row.setting == _DEFENSE:
            shown = lines_lib.interval(each.line.estimate, constant_alone=True)
            found.setdefault((row.defense, row.point), {})[each.line.metric] = shown
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    body = [[*at, *(each.get(n, "") for n in names)] for at, each in found.items()]
    caption = f"Defense of {card.name}: largest over the clients, mean [95 %]"
    header = ["defense", "point", *names]
    return [document.table(caption, header, body, names)] if body else []


def _results(card: Card, judged: Sequence[Judged], caption: str) -> document.Table:
    rows = [each.line.row for each in judged]
    models, defenses = {row.model for row in rows}, {row.defense for row in rows}
    header = [
        "attack", "setting", "point", "metric", "model", "defense", _OURS, "median",
        "seeds x rows", "baseline", "bound", "published", _OTHER, "difference",
        "verdict",
    ]  # fmt: skip
    body = [
        [*_what(each),
         each.line.row.model if len(models) > 1 else "",
         each.line.row.defense if len(defenses) > 1 else "",
         *_measured(each), *_published(card, each)]
        for each in judged
    ]  # fmt: skip
    return document.table(caption, header, body, _NUMBERS)


def utility(card: Card) -> list[Block]:
    """Losses of the last model that was sent; nothing without."""
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
    return [document.table(caption, header, body, _NUMBERS)] if body else []


def _is_score(each: Judged) -> bool:
    return each.line.row.metric in lines_lib.SCORES or each.number is not None


def _what(each: Judged) -> tuple[str, str, str, str]:
    row = each.line.row
    return row.attack, row.setting, row.point, each.line.metric


def _measured(each: Judged) -> tuple[str, ...]:
    line = each.line
    return (
        lines_lib.interval(line.shown),
        _number(line.skewed_median),
        f"{line.estimate.repetitions} x {line.row.n}",
        _number(line.baseline),
        _number(line.bound),
    )


def _published(card: Card, each: Judged) -> tuple[Cell, ...]:
    """The published number, one that is not comparable, difference and verdict."""
    if card.reference is None or each.line.row.attack == "majority":
        return "", "", "", ""
    if each.number is None:
        return "", "", "", str(each.verdict) if _is_score(each) else ""
    kind = each.verdict.kind
    mark = Mark(str(each.verdict), _COLOURS.get(kind, "open"))
    if kind == verdict.NOT_COMPARABLE:
        return "", f"{card.reference.data} {each.number}", "", mark
    return str(each.number), "", _difference(each.line.estimate.mean, each.number), mark


def _difference(mean: float, number: Number) -> str:
    if number.unit is None:
        return f"{round(mean - number.mean, 2) + 0.0:+.2f}"  # no -0.00
    if not math.isfinite(mean):
        return ""
    return f"{verdict.last_digits(mean, number):+d} in the last digit"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _notes(card: Card) -> list[str]:
    """Explains what only some cards have."""
    lines, found = [each.line for each in card.judged], []
    if any(line.skewed_median is not None for line in lines):
        found.append(
            "Median: stands where it is further from the mean than one standard error, "
            "because the values of the seeds are skewed."
        )
    held = [
        line.estimate.mean >= line.bound for line in lines if line.bound is not None
    ]
    if held:
        found.append(
            "Bound: Proposition 1 of the paper, a lower bound on the accuracy of the "
            f"attack on a least-squares model. {sum(held)} of {len(held)} accuracies "
            "are at or above it."
        )
    if any("not determined" in line.metric for line in lines):
        found.append(
            "Not determined: the messages of some client do not suffice to reconstruct "
            "her model, so the score is that of one of many solutions."
        )
    if card.missing:
        keys = "; ".join(f"{attack} ({where})" for where, attack, _ in card.missing)
        found.append(f"Published, but not in this run: {keys}.")
    return found

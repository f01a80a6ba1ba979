"""A paper item by item: results, every published number beside ours, the verdict."""

from collections import Counter
from collections.abc import Iterable, Sequence

from experiments.report import commands, kept, lines, markdown, reproduction
from experiments.report.cards import Card, of_most_seeds
from experiments.report.documents import writing
from experiments.report.documents.paper_items import PAPERS, Item
from experiments.report.tables import Cell

_NOT_RUN = "published of its methods but not run"
_VARIANTS = (
    "In parentheses is the word of a run that was told more than its flagfile: the command "
    "stands with its result below."
)
_APART = "Numbers that are *not comparable* stand with their results alone."
_OURS, _PUBLISHED = "ours, mean [95 %]", "published"


def text(paper: str) -> str:
    """What was run of a paper, and every number that it published beside ours.

    Args:
      paper: a key of `PAPERS`.
    """
    cards = {item: _cards(item) for item in PAPERS[paper]}
    overview = [_line(item, found) for item, found in cards.items()]
    header = ["| item | command | verdicts | why |", "| --- | --- | --- | --- |"]
    parts = ["\n".join([*header, *overview])]
    body = [
        line for found in cards.values() for card in found for line in _compared(card)
    ]
    if body:
        header = ["item", "attack", "setting", "metric", _OURS, _PUBLISHED, "verdict"]
        told = writing.table(header, body, (_OURS, _PUBLISHED))
        parts.append(writing.folded(told, "published numbers beside ours"))
        if any(map(_variant, _all(cards.values()))):
            parts.append(_VARIANTS)
        rules = reproduction.RULE.items()
        kinds = _kinds(cards.values())
        if reproduction.NOT_COMPARABLE in kinds:
            parts.append(_APART)
        parts.append("\n".join(f"* *{k}*: {rule}." for k, rule in rules if k in kinds))
    return "\n\n".join(part for part in parts if part)


def _cards(item: Item) -> list[Card]:
    """The result of the flagfile as it stands, then those with more flags.

    Of an item with published numbers those that stand beside one.
    """
    names = kept.names()
    every = [kept.shown(n) for n in names if commands.flagfile(n) == item.result]
    return [card for card in every if card.compared] or every


def _line(item: Item, cards: list[Card]) -> str:
    """Item, its first command or its flagfile's, counts of verdicts, what is to be said."""
    kinds = Counter(each.verdict.kind for _, each in of_most_seeds(cards))
    kinds[_NOT_RUN] = _not_run(cards)
    every = (*reproduction.KINDS, _NOT_RUN)
    counts = ", ".join(f"{kinds[k]} {k}" for k in every if kinds[k])
    remarks = [item.why, kept.reasons().get(item.result, "")]
    told = [card.manifest["command"] for card in cards]
    shown = f"`{told[0] if told else commands.of_flagfile(item.result)}`"
    if len(told) > 1:
        shown += f"; {len(told) - 1} more, with other flags, below"
    shown = shown.replace("|", "\\|")
    if not counts:
        counts = "no published number" if cards else "not run"
    why = markdown.escape(" ".join(filter(None, remarks)))
    return f"| {item.title} | {shown} | {counts} | {why} |"


def _not_run(cards: Sequence[Card]) -> int:
    """Published numbers beside which none of these results of one table has its own.

    Of the methods that some of these results has on the data that the numbers are of.
    """
    tables: dict[tuple[str, str], list[Card]] = {}
    for card in cards:
        if card.reference and card.reference.same_data:
            table = card.reference.table, card.reference.data
            tables.setdefault(table, []).append(card)
    count = 0
    for own in tables.values():
        run = {each.line.row.attack for card in own for each in card.compared}
        missing = set.intersection(*(set(card.missing) for card in own))
        count += sum(attack in run for _, attack, _ in missing)
    return count


def _compared(card: Card) -> list[list[Cell]]:
    """A line for each number that can be compared, with the word of a run told more."""
    variant = _variant(card)
    item = f"{card.beside} ({variant})" if variant else card.beside
    return [
        [
            item,
            each.line.row.attack,
            each.line.row.point or each.line.row.setting,
            each.line.metric,
            lines.interval(each.line.shown),
            str(each.number),
            str(each.verdict),
        ]
        for each in card.compared
        if each.verdict.kind != reproduction.NOT_COMPARABLE
    ]


def _variant(card: Card) -> str:
    """The word behind the flagfile's name, of a run that was told more."""
    return card.name.removeprefix(commands.flagfile(card.name)).strip(".")


def _all(cards: Iterable[Sequence[Card]]) -> list[Card]:
    return [card for each in cards for card in each]


def _kinds(cards: Iterable[Sequence[Card]]) -> set[str]:
    """The verdicts that occur, and the one that others are told apart from."""
    found = {each.verdict.kind for card in _all(cards) for each in card.compared}
    relative = {reproduction.WIDE, reproduction.ABOVE, reproduction.BELOW}
    return found | ({reproduction.REPRODUCED} if found & relative else set())

"""From cards to a report: in short, published numbers, defenses, then card by card."""

from collections import Counter
from collections.abc import Sequence

from experiments.report import (
    facts,
    figures,
    glossary,
    intro,
    leakage,
    short,
    tables,
    verdict,
)
from experiments.report.cards import Card
from experiments.report.document import (
    Block,
    Bullets,
    Contents,
    Details,
    Heading,
    Paragraph,
    Picture,
)

_CAVEAT = (
    "Verdicts compare numbers of the same data, model and use of a defense; whether "
    "the other flags are the paper's can be read below each card. Published standard "
    "deviations are over three seeds."
)
_STOPPED = (
    "No gain: the upper end of an attack's 95 % interval is less than one point above "
    "the majority baseline; a defense that brings this about has stopped the attack. "
    "Leaks: the lower end is above the baseline. Not clear: neither, or no interval. "
    "This holds for the attacks that were run: a better one may succeed. Loss is that "
    "of the last model sent, on test rows where there are any; 'x' is its ratio to that "
    "without defense."
)
_PICTURES = {
    "accuracy_by_attack": "Mean accuracy of each attack with its 95 % interval, and "
    "the majority baseline",
    "accuracy_by_value": "Accuracy of each attack against the swept value, with 95 % "
    "bands",
    "accuracy_by_active_rounds": "Accuracy against the number of active rounds, with "
    "95 % bands",
    "accuracy_by_size": "Accuracy on each client against her number of rows",
    "accuracy_by_loss": "Accuracy of each attack against the loss of the last model "
    "sent, by defense",
    "loss_by_value": "Loss of the last model sent against the swept value, with 95 % "
    "bands",
    "loss_by_round": "Training and test loss of the model sent in each round",
}


def report(cards: Sequence[Card]) -> list[Block]:
    """The whole report.

    Args:
      cards: at least one; their names are unique.
    """
    groups = leakage.groups(cards)
    anchored = [(f"card{index}", card) for index, card in enumerate(cards, 1)]
    compared = any(card.compared for card in cards)
    brief = short.blocks(cards)
    links = [("short", "In short")] if brief else []
    links += [("summary", "Published numbers")] if compared else []
    links += [("defenses", "Which defense would have stopped this?")] if groups else []
    links += [(anchor, card.title) for anchor, card in anchored]
    rows = [row for card in cards for row in card.rows]
    terms = glossary.terms(rows)
    found: list[Block] = [
        Heading(1, intro.title(rows)),
        *map(Paragraph, intro.paragraphs(rows)),
        *brief,
        Details("What the attacks and settings are", [Bullets(terms)]),
        Contents(links),
    ]
    if compared:
        found += _summary(cards)
    if groups:
        found.append(Heading(2, "Which defense would have stopped this?", "defenses"))
        found.append(Paragraph(_STOPPED))
    for index, (about, variants) in enumerate(groups.items(), 1):
        found.append(Heading(3, about))
        found += leakage.blocks(about, variants, f"defenses{index}.svg")
    for anchor, card in anchored:
        found += [Heading(2, card.title, anchor), *_card(card, anchor)]
    return found


def counts(cards: Sequence[Card]) -> str:
    """How many published numbers there are a result for, by verdict; empty for none."""
    kinds = Counter(each.verdict.kind for card in cards for each in card.compared)
    said = ", ".join(f"{kinds[k]} {k}" for k in verdict.KINDS if kinds[k])
    total = kinds.total()
    return f"{total} published number{'s' * (total > 1)}: {said}" if total else ""


def _summary(cards: Sequence[Card]) -> list[Block]:
    seen = {each.verdict.kind for card in cards for each in card.compared}
    usual = (verdict.REPRODUCED, verdict.ABOVE, verdict.BELOW)
    rules = [(k, rule) for k, rule in verdict.RULE.items() if k in seen or k in usual]
    return [
        Heading(2, "Published numbers", "summary"),
        Paragraph(f"{counts(cards)}."),
        tables.summary(cards),
        Bullets(rules),
        Paragraph(_CAVEAT),
    ]


def _card(card: Card, anchor: str) -> list[Block]:
    found: list[Block] = [facts.about(card), *tables.defense(card)]
    found += [*facts.defense(card), *tables.results(card), *tables.utility(card)]
    for name, content in _pictures(card).items():
        stem, words = name.rpartition(".")[0], figures.words_of(content)
        plain = stem.replace("_", " ").replace(".", ", ")
        caption = _PICTURES.get(stem, plain[:1].upper() + plain[1:])
        alt = f"{caption}: {card.title}" + (f". {words}" if words else "")
        found.append(Picture(f"{anchor}-{name}", content, caption, alt))
    return found + facts.machine(card)


def _pictures(card: Card) -> dict[str, bytes]:
    """By file: those that the rows alone do not give, then those that they give."""
    drawn = figures.all_figures(card.rows)
    others = {
        name: content
        for name, content in card.pictures.items()
        if name.rpartition(".")[0] not in drawn
    }
    return others | {f"{name}.svg": figures.svg(f) for name, f in drawn.items()}

"""What a report shows, from its cards: the content of the templates."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from experiments.report import (
    defenses,
    facts,
    figures,
    in_short,
    programs,
    reproduction,
    tables,
)
from experiments.report.cards import Card
from experiments.report.rendering import Picture
from fljax import verdicts

_USUAL = (reproduction.REPRODUCED, reproduction.ABOVE, reproduction.BELOW)
_CAPTIONS = {
    "accuracy_by_attack": "Mean accuracy of each attack with its 95 % interval, "
    "beside the majority and imputation",
    "error_by_attack": "Mean error of each attack on the number with its 95 % interval, "
    "beside the median and imputation",
    "accuracy_by_value": "Accuracy of each attack against the swept value, with 95 % "
    "bands",
    "accuracy_by_active_rounds": "Accuracy against the number of active rounds, with "
    "95 % bands",
    "accuracy_by_client": "Accuracy of each attack on each client",
    "accuracy_by_size": "Accuracy on each client against its number of rows",
    "accuracy_by_sum": "Accuracy against the clients whose messages are summed",
    "calibration": "How often an attack is right beside how sure it is; below the dashed "
    "line it claims more than it knows",
    "accuracy_by_loss": "Accuracy of each attack against the loss of the last model "
    "sent, by defense",
    "loss_by_value": "Loss of the last model sent against the swept value, with 95 % "
    "bands",
    "loss_by_round": "Training and test loss of the model sent in each round",
}


def content(cards: Sequence[Card]) -> dict[str, Any]:
    """Everything that the templates print.

    Args:
      cards: at least one; their names are unique.
    """
    rows = [row for card in cards for row in card.rows]
    found = programs.of(rows)
    anchored = [(f"card{index}", card) for index, card in enumerate(cards, 1)]
    compared = any(card.compared for card in cards)
    said = in_short.sentences(cards)
    brief = [(each.about, each.text) for each in said]
    to_do = [(each.about, each.command) for each in said if each.command]
    by_defense = [
        _compared(*each) for each in enumerate(defenses.comparisons(cards), 1)
    ]
    links = [
        ("short", "In short", brief),
        ("to_do", "What to do now", to_do),
        ("summary", "Published numbers", compared),
        ("defenses", "Which defense would have stopped this?", by_defense),
        *((anchor, card.title, True) for anchor, card in anchored),
    ]
    return {
        "title": programs.title(found),
        "programs": found,
        "in_short": brief,
        "to_do": to_do,
        "to_do_is": f"{in_short.TO_DO}:",
        "names": programs.terms(found, rows),
        "judged": any(each.gains for each in found),
        "leak_rule": verdicts.RULE,
        "links": [(anchor, text) for anchor, text, shown in links if shown],
        "summary": tables.summary(cards) if compared else None,
        "counts": counts(cards),
        "rules": _rules(cards),
        "comparisons": by_defense,
        "long": tables.LONG,
        "cards": [_section(anchor, card) for anchor, card in anchored],
    }


def counts(cards: Sequence[Card]) -> str:
    """How many published numbers there are a result for, by verdict; empty for none."""
    kinds = Counter(each.verdict.kind for card in cards for each in card.compared)
    said = ", ".join(f"{kinds[k]} {k}" for k in reproduction.KINDS if kinds[k])
    total = kinds.total()
    return f"{total} published number{'s' * (total > 1)}: {said}" if total else ""


def pictures(content: dict[str, Any]) -> list[Picture]:
    """All pictures of a report."""
    sections = [*content["comparisons"], *content["cards"]]
    return [picture for each in sections for picture in each["pictures"]]


def _rules(cards: Sequence[Card]) -> list[tuple[str, str]]:
    seen = {each.verdict.kind for card in cards for each in card.compared}
    rules = reproduction.RULE.items()
    return [(kind, rule) for kind, rule in rules if kind in seen or kind in _USUAL]


def _compared(index: int, each: defenses.Comparison) -> dict[str, Any]:
    caption = "Accuracy of each attack against the loss of the last model sent"
    drawn = []
    if each.figure is not None:
        said = f"{caption}, by defense: {each.about}. {figures.alt_text(each.figure)}"
        drawn = [Picture(f"defenses{index}.svg", each.figure, caption, said)]
    return each._asdict() | {"pictures": drawn}


def _section(anchor: str, card: Card) -> dict[str, Any]:
    scores, others = tables.results(card)
    lines = [each.line for each in card.judged]
    held, bounded = tables.bounded(card)
    trained_only = all(line.row.attack == "none" for line in lines)
    shown = [each for each in (scores, others) if each is not None]
    missing = (f"{attack} ({where})" for where, attack, _ in card.missing)
    return {
        "anchor": anchor,
        "card": card,
        "about": facts.about(card),
        "defense": tables.defense(card),
        "assumptions": facts.assumptions(card),
        "scores": scores,
        "other": others,
        "tables": shown,
        "trained_only": scores is None and trained_only,
        "skewed": any(line.skewed_median is not None for line in lines),
        "bounded": bounded,
        "bounds_held": held,
        "undetermined": any("not determined" in line.metric for line in lines),
        "missing": "; ".join(missing),
        "utility": tables.utility(card),
        "pictures": list(_pictures(card, anchor)),
        "folded": facts.folded(card),
    }


def _pictures(card: Card, anchor: str) -> Iterator[Picture]:
    """Those that the rows alone do not give, then those that they give."""
    drawn = figures.all_figures(card.rows)
    others = {
        name: content
        for name, content in card.pictures.items()
        if name.rpartition(".")[0] not in drawn
    }
    found = others | {f"{name}.svg": figures.svg(f) for name, f in drawn.items()}
    for name, content in found.items():
        stem, text = name.rpartition(".")[0], figures.alt_text(content)
        plain = stem.replace("_", " ").replace(".", ", ")
        caption = _CAPTIONS.get(stem, plain[:1].upper() + plain[1:])
        said = f"{caption}: {card.title}" + (f". {text}" if text else "")
        yield Picture(f"{anchor}-{name}", content, caption, said)

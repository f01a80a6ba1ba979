"""A few sentences for each subject of a report, made from the rows by a rule."""

from collections.abc import Sequence

from experiments.report import claims, facts
from experiments.report.cards import Card
from experiments.report.programs import PROGRAMS


def sentences(cards: Sequence[Card]) -> list[tuple[str, str]]:
    """Subject (data, model, inferred column) and what there is to say of it."""
    groups: dict[tuple[str, str], list[Card]] = {}
    for card in cards:
        for row in card.rows:
            # An account is of no data in particular.
            about = "" if row.experiment == "accounting" else facts.subject(card, row)
            of = groups.setdefault((row.experiment, about), [])
            if not any(each is card for each in of):
                of.append(card)
    found = []
    for (experiment, about), some in groups.items():
        own = [_part(card, about) for card in some]
        program = PROGRAMS.get(experiment)
        if program is not None:
            judged = program.gains and list(claims.of_attacks(own))
            if said := " ".join(judged or program.sentences(own)):
                found.append((about, said))
    return found


def apart(
    said: Sequence[tuple[str, str]],
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The sentences of each subject, and what to do, where they end with that."""
    parts = [(about, *text.partition("What to do: ")) for about, text in said]
    brief = [(about, text.strip()) for about, text, _, _ in parts]
    return brief, [(about, what) for about, _, _, what in parts if what]


def _part(card: Card, about: str) -> Card:
    rows = [row for row in card.rows if about in ("", facts.subject(card, row))]
    return card._replace(rows=rows)

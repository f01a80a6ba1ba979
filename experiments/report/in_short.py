"""A few sentences for each subject of a report, made from the rows by a rule."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from experiments.report import claims, facts
from experiments.report.cards import Card
from experiments.report.programs import PROGRAMS

TO_DO = "see what a defense stops and costs here"


class Said(NamedTuple):
    """What there is to say of a subject.

    Attributes:
      about: data, model, inferred column.
      text: sentences.
      command: for `TO_DO`; empty where nothing leaks or defenses were measured.
    """

    about: str
    text: str
    command: str


def sentences(cards: Sequence[Card]) -> list[Said]:
    """A few sentences for each subject."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[Card]] = {}
    for card in cards:
        for row in card.rows:
            # An account is of no data in particular.
            about = "" if row.experiment == "accounting" else facts.subject(card, row)
            data = facts.data_of(card) if about else ()
            of = groups.setdefault((row.experiment, about, data), [])
            if not any(each is card for each in of):
                of.append(card)
    found, several = [], Counter(key[:2] for key in groups)
    for (experiment, about, _), some in groups.items():
        own = [_part(card, about) for card in some]
        program = PROGRAMS.get(experiment)
        if program is not None:
            judged = program.gains and list(claims.of_attacks(own))
            if text := " ".join(judged or program.sentences(own)):
                alone = several[experiment, about] == 1
                name = about if alone else facts.of_runs(about, some)
                found.append(Said(name, text, claims.command(own) if judged else ""))
    return found


def _part(card: Card, about: str) -> Card:
    rows = [row for row in card.rows if about in ("", facts.subject(card, row))]
    return card._replace(rows=rows)

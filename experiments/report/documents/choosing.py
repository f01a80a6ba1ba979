"""Which epsilon of a grid is needed: the recommendation, and the clips' best of each."""

from collections.abc import Sequence

from experiments.choose_defense import candidates, reporting
from experiments.choose_defense.rule import Candidate, Wishes, choose
from experiments.report import kept
from experiments.report.documents import writing
from fljax.driver import screen_tables

_HEADER = (
    "defense", "epsilon", "tuned", "held-out variation explained, %",
    "strongest attack beyond imputation, points", "no adversary above, points", "rule",
)  # fmt: skip


def text(name: str) -> str:
    """The table of a kept result, smallest epsilon first, and what is recommended."""
    card = kept.shown(name)
    flags = card.manifest["flags"]
    wishes = Wishes(flags["tolerance"], flags["most_beyond"])
    found = candidates.of_rows(card.rows)
    choice = choose(found, wishes)
    body = [
        _line(each, choice.why_not)
        for each in sorted(found, key=lambda each: each.epsilon)
    ]
    seeds = len({row.seed for row in card.rows})
    return "\n\n".join(
        [
            writing.command(card.manifest["command"]),
            writing.table(_HEADER, body, _HEADER[1:6]),
            reporting.recommendation(found, choice, wishes, seeds),
        ]
    )


def _line(each: Candidate, why_not: dict[str, str]) -> Sequence[str]:
    return (
        each.defense,
        reporting.number(each.epsilon, ".3g"),
        reporting.number(each.tuned, ".3g"),
        reporting.number(each.utility.mean, ".1f"),
        screen_tables.interval(each.gain, ".1f"),
        reporting.number(each.most, ".1f"),
        why_not.get(each.defense, "recommended"),
    )

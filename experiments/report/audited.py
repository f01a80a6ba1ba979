"""Runs of `fljax-audit` in the report: their verdicts are the audit's own."""

from collections.abc import Sequence
from typing import Any

from experiments.aia.report import NAMES, SETTINGS
from experiments.report import facts
from experiments.report.cards import Card
from experiments.report.program_report import ProgramReport

_MOST = 6


def _sentences(cards: Sequence[Card]) -> list[str]:
    said = []
    for card in cards:
        verdicts = facts.mapping(card.manifest.get("verdicts"))
        leaks = [facts.text(n) for n, v in verdicts.items() if _begins(v, "leaks")]
        ran = [v for v in verdicts.values() if not _begins(v, "not applicable")]
        if ran:
            names = f": {', '.join(leaks[:_MOST])}" if leaks else ""
            run = f"In run {card.name}, " if len(cards) > 1 else ""
            said.append(f"{run}{len(leaks)} of {len(ran)} attacks show a leak{names}.")
    return [*said, "No leak shown is no proof that there is none."] if said else []


def _begins(value: Any, word: str) -> bool:
    return isinstance(value, str) and value.startswith(word)


REPORT = ProgramReport(
    name="audit",
    title="Audit of a federated training",
    about="An adversary sees what the audited clients of a federated training send and "
    "receive, knows all but one column of their rows, and infers that column and what "
    "else the messages tell. The true column serves for scores only. Numbers are means "
    "over the clients, each of which counts the same.",
    names=NAMES,
    settings=SETTINGS,
    sentences=_sentences,
)

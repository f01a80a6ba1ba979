"""What `experiments.epsilon_audit` brings to the report."""

from collections.abc import Sequence

from experiments.report.cards import Card
from experiments.report.program_report import ProgramReport


def _sentences(cards: Sequence[Card]) -> list[str]:
    """How much of what is accounted was shown, by observer."""
    shares: dict[str, list[float]] = {}
    for row in (row for card in cards for row in card.rows):
        if row.metric == "audited_of_accounted_percent":
            shares.setdefault(row.attack, []).append(row.value)
    if not shares:
        return []
    said = "; ".join(
        f"{observer} {min(values):.0f} to {max(values):.0f} %"
        for observer, values in shares.items()
    )
    return [f"Of the epsilon that is accounted, this was shown: {said}."]


REPORT = ProgramReport(
    name="epsilon_audit",
    title="Epsilon from both sides",
    about="A private federation is trained many times, half of them with a canary. What "
    "an observer can prove of its presence is a lower bound of epsilon, with confidence; "
    "what is accounted is an upper bound.",
    names={
        "messages": "who sees every message of the client",
        "sum": "who sees sums over clients, and who took part",
        "models": "who sees the models that are sent",
        "final": "who sees the last model",
    },
    settings={
        "gradient": "a gradient of its own in place of an example's",
        "row": "a row as it is",
        "mislabelled": "a row with the target farthest from its own",
        "outlier": "a row with its numeric columns ten times as large",
        "client": "an update of its own in place of a client's",
    },
    sentences=_sentences,
)

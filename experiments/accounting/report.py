"""What `experiments.accounting` brings to the report."""

import math
from collections.abc import Sequence

from experiments.accounting import published
from experiments.report.cards import Card
from experiments.report.program_report import ProgramReport


def _sentences(cards: Sequence[Card]) -> list[str]:
    """The range of epsilon as printed, of what is done, and of what is recommended."""
    ways: dict[str, list[float]] = {}
    for row in (row for card in cards for row in card.rows):
        if row.metric == "epsilon":
            ways.setdefault(row.setting, []).append(row.value)
    if not ways:
        return []
    said = "; ".join(f"{way} {_span(values)}" for way, values in ways.items())
    return [f"Epsilon over all cases: {said}. Nothing was trained or attacked."]


def _span(values: Sequence[float]) -> str:
    known = sorted(value for value in values if math.isfinite(value))
    without = len(values) - len(known)
    also = f" ({without} without a finite number)" if without else ""
    if not known:
        return f"no finite number in {without} cases"
    low, high = f"{known[0]:.3g}", f"{known[-1]:.3g}"
    return (low if low == high else f"{low} to {high}") + also


REPORT = ProgramReport(
    name="accounting",
    title="Privacy accounting of federated training",
    about="Epsilons are computed from clipping, noise, sampling and number of steps, "
    "without any training. Each rests on the assumptions that its card states.",
    settings={
        "printed": "epsilon as the paper computes it",
        "implemented": "epsilon of what is done: its sensitivity, noise and sampling",
        "recommended": "epsilon where all layers together are clipped to C, one draw of "
        "noise is on the sum, and samples are Poisson",
    },
    reference=published.of_run,
    sentences=_sentences,
)

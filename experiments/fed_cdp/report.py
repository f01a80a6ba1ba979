"""What `experiments.fed_cdp` brings to the report."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from experiments import epsilons
from experiments.epsilons import Stated
from experiments.fed_cdp import published
from experiments.report import lines
from experiments.report.cards import Card
from experiments.report.program_report import ProgramReport
from fljax.metrics import Estimate
from fljax.results import summarise

_BARE, _MOST = "non_private", 6
_FEDERATION = ("clients=", "participating_percent=")  # of a point, beside a defense's
NAMES = {
    "fed_cdp": "defense: clipping and noise on each example (Wei et al., 2021)",
    "fed_sdp": "defense: clipping and noise on each client's update (Wei et al., 2021)",
    "client_sampling": "classes of rows that a round's clients have in one step",
    "row_sampling": "classes of as many rows of the data, drawn one by one",
}


class _Cell(NamedTuple):
    """What one accuracy is of."""

    run: str
    defense: str
    method: str
    point: str

    @property
    def federation(self) -> tuple[str, ...]:
        """Its run, and of the point what is no number of the defense."""
        parts = self.point.split(";")
        return self.run, *(p for p in parts if p.startswith(_FEDERATION))


def _sentences(cards: Sequence[Card]) -> list[str]:
    """What each method costs in accuracy, against its federation without a defense."""
    found: dict[_Cell, Estimate] = {}
    promised: dict[_Cell, Stated] = {}
    for card in cards:
        for (defense, point, method), each in epsilons.of_noise(card.rows).items():
            promised[_Cell(card.name, defense, method, point)] = each
        for s in summarise(card.rows):
            row = s.row
            cell = _Cell(card.name, row.defense, row.attack, row.point)
            if (row.setting, row.metric) == (published.FINAL, published.ACCURACY):
                found[cell] = s.shown
    if not found:
        return []
    bare = {cell.federation: e for cell, e in found.items() if cell.method == _BARE}
    shown = []
    for cell, e in list(found.items())[:_MOST]:
        run = f"run {cell.run}" if len(cards) > 1 else ""
        name = " ".join(filter(None, [cell.method, cell.point, run]))
        compared = (
            "" if cell.method == _BARE else _against(e, bare.get(cell.federation))
        )
        said = f", epsilon {promised[cell].of_whom}" if cell in promised else ""
        shown.append(f"{name} {lines.interval(e)} %{said}{compared}")
    if len(found) > _MOST:
        shown.append(f"and {len(found) - _MOST} more")
    alone = min(e.repetitions for e in found.values()) == 1
    said = [f"Accuracy on test rows: {'; '.join(shown)}."]
    said += ["One seed: no interval and no claim."] if alone else []
    return [*said, "Epsilon is that of the noise that is drawn; no attack was run."]


def _against(e: Estimate, bare: Estimate | None) -> str:
    if bare is None or not math.isfinite(e.high - e.low + bare.high - bare.low):
        return ""
    if e.high < bare.low:
        return f" (less than without a defense by {bare.mean - e.mean:.1f} points)"
    if e.low > bare.high:
        return f" (more than without a defense by {e.mean - bare.mean:.1f} points)"
    return " (not clearly less than without a defense)"


REPORT = ProgramReport(
    name="fed_cdp",
    title="Accuracy and cost of per-example differential privacy",
    about="A federation is trained with and without noise on its clients' gradients or "
    "updates. Accuracy is the share of test images or rows whose class the last model "
    "names rightly, in percent; learning rates are chosen on other rows.",
    names=NAMES,
    settings={"baseline": "without any training"},
    reference=published.reference,
    sentences=_sentences,
    unkept=(
        "printed, ",
        "implemented, ",
        "recommended, ",
    ),  # Table VI has such epsilons
)

"""What `experiments.fed_cdp` brings to the report."""

import math
from collections.abc import Sequence

from experiments.fed_cdp import published
from experiments.report import lines
from experiments.report.cards import Card
from experiments.report.program_report import ProgramReport
from fljax.metrics import Estimate
from fljax.results import summarise

_DRAWN, _BARE, _MOST = "the noise that is drawn", "non_private", 6
NAMES = {
    "fed_cdp": "defense: clipping and noise on each example (Wei et al., 2021)",
    "fed_sdp": "defense: clipping and noise on each client's update (Wei et al., 2021)",
    "client_sampling": "classes of rows that a round's clients have in one step",
    "row_sampling": "classes of as many rows of the data, drawn one by one",
}


def _sentences(cards: Sequence[Card]) -> list[str]:
    """What each method costs in accuracy, against training without a defense."""
    found: dict[str, Estimate] = {}
    epsilons: dict[str, float] = {}
    for s in summarise([row for card in cards for row in card.rows]):
        name = " ".join(filter(None, [s.row.attack, s.row.point]))
        if (s.row.setting, s.row.metric) == (published.FINAL, published.ACCURACY):
            found[name] = s.shown
        elif s.row.metric == "epsilon" and s.row.setting == _DRAWN:
            epsilons[name] = s.estimate.mean
    if not found:
        return []
    bare = next((e for name, e in found.items() if name.startswith(_BARE)), None)
    shown = []
    for name, e in list(found.items())[:_MOST]:
        epsilon = epsilons.get(name, math.nan)
        promise = f", epsilon {epsilon:.3g}" if math.isfinite(epsilon) else ""
        compared = "" if e is bare else _against(e, bare)
        shown.append(f"{name} {lines.interval(e)} %{promise}{compared}")
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
)

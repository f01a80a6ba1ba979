"""What `experiments.gradient_leakage` brings to the report."""

from collections import Counter
from collections.abc import Sequence

from experiments.fed_cdp.report import NAMES
from experiments.gradient_leakage import published
from experiments.report.cards import Card
from experiments.report.program_report import ProgramReport

_SUCCESS, _MOST = "attack_success", 6


def _sentences(cards: Sequence[Card]) -> list[str]:
    """How many clients' images an attack rebuilt, by what was seen and defense.

    Runs and strengths of a defense are apart: they may attack the same clients.
    """
    counts: dict[str, dict[tuple[int, str, str], list[float]]] = {}
    rows = [(run, row) for run, card in enumerate(cards) for row in card.rows]
    networks = {row.model for _, row in rows if row.metric == _SUCCESS}
    for run, row in rows:
        if row.metric == _SUCCESS and row.client != "all" and not row.point:
            seen = f"{row.setting}, {row.model}" if len(networks) > 1 else row.setting
            method = (run, row.attack, row.defense)
            counts.setdefault(seen, {}).setdefault(method, []).append(row.value)
    if not counts:
        return []
    said = []
    for setting, methods in list(counts.items())[:_MOST]:
        strengths = Counter(attack for _, attack, _ in methods)
        shown = ", ".join(
            f"{attack if strengths[attack] == 1 else defense} "
            f"{sum(v > 0 for v in values)} of {len(values)}"
            for (_, attack, defense), values in list(methods.items())[:_MOST]
        )
        types = setting.partition("=")[2].replace("_", ", ")
        said.append(f"type {types}: {shown}" if types else shown)
    least = min(len(v) for methods in counts.values() for v in methods.values())
    bound = 100 * (1 - 0.025 ** (1 / least))
    seeds = len({row.seed for _, row in rows})
    over = "One seed" if seeds == 1 else f"{seeds} seeds"
    return [
        f"Clients whose images an attack rebuilt: {'; '.join(said)}.",
        f"{over}. None of {least} still allows for {bound:.0f} % (95 %).",
    ]


REPORT = ProgramReport(
    name="gradient_leakage",
    title="What gradients leak of training images",
    about="An adversary sees a client's message (types 0 and 1) or one example's "
    "gradient (type 2) and searches for the images that explain it. An attack succeeds "
    "if at some time in its search every image is closer to the true one than a stated "
    "distance. Reconstruction "
    "distances are root mean squared errors of pixels in [0, 1], means over the attacked "
    "clients; the baselines are images that need no message (of_one: where one image is "
    "sought, beside others where several are).",
    names={"non_private": "without a defense"} | NAMES,
    settings={"baseline": "without any message"},
    reference=published.reference,
    sentences=_sentences,
    wide=True,
)

"""What `experiments.theory` brings to the report."""

from collections.abc import Sequence

from experiments.report import lines
from experiments.report.cards import Card
from experiments.report.program_report import ProgramReport
from fljax.results import Row, summarise

_ERROR, _RATE = "optimum_distance_slope", "rate_slope"
_MESSAGES = "num_messages="
_SHOWN = {
    ("reconstruct", "optimum_distance"): "Algorithm 2",
    ("reconstruct_forward", "optimum_distance"): "the regression reversed",
    ("theorem1", "rate"): "eq. (6)",
    ("theorem1", "bound"): "eq. (18)",
}


def _sentences(cards: Sequence[Card]) -> list[str]:
    """Those of each run by itself, for their settings may differ."""
    return [
        f"In run {card.name}: {said}" if len(cards) > 1 else said
        for card in cards
        for said in _of_run(card.rows)
    ]


def _of_run(rows: Sequence[Row]) -> list[str]:
    """The slope of Algorithm 2's error beside that of equation (6), by parameter."""
    slopes = {
        (s.row.setting, s.row.point, s.row.attack): s.estimate
        for s in summarise([row for row in rows if row.metric in (_ERROR, _RATE)])
    }
    said: dict[str, list[str]] = {}
    for (batches, parameter, attack), slope in slopes.items():
        predicted = slopes.get((batches, parameter, "theorem1"))
        if attack == "reconstruct" and predicted is not None:
            shown = f"{lines.interval(slope)} (eq. (6): {predicted.mean:.2f})"
            name = parameter.replace("_", " ")
            said.setdefault(batches, []).append(f"{name} {shown}")
    return [
        f"Slopes of the error of Algorithm 2, {batches} batches: {'; '.join(each)}."
        for batches, each in said.items()
    ] + _by_messages(rows)


def _by_messages(rows: Sequence[Row]) -> list[str]:
    """Errors and bound with the fewest and with the most messages."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    for summary in summarise([row for row in rows if row.point.startswith(_MESSAGES)]):
        row = summary.row
        if name := _SHOWN.get((row.attack, row.metric)):
            number = int(float(row.point.removeprefix(_MESSAGES)))
            at = found.setdefault(row.setting, {}).setdefault(number, {})
            at[name] = summary.estimate.mean
    said = []
    for batches, numbers in found.items():
        fewest, most = min(numbers), max(numbers)
        each = ", ".join(
            f"{name} {numbers[fewest][name]:.3g} and {numbers[most][name]:.3g}"
            for name in numbers[most]
        )
        said.append(
            f"Distance from the optimum with {fewest:,} and {most:,} messages, "
            f"{batches} batches: {each}."
        )
    return said


REPORT = ProgramReport(
    name="theory",
    title="Theorem 1 of Diana et al.: measured error against the bound's rate",
    about="A least squares client trains from models that a man in the middle draws; "
    "Algorithm 2 reconstructs its optimum. Slopes are those of the error over one "
    "parameter on logarithmic scales, beside those that the theorem predicts at the "
    "noise and the eigenvalue that were measured.",
    names={
        "reconstruct": "Algorithm 2: the client's least-squares model from its messages",
        "reconstruct_forward": "the same, regressing what is returned on what is sent",
        "theorem1": "the theorem's bound and its rate",
    },
    settings={
        "shuffled": "epochs without replacement",
        "independent": "every step on rows drawn anew",
    },
    sentences=_sentences,
)

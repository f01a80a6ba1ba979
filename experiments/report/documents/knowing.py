"""What attacks read as less is known of the rows, one thing at a time."""

from experiments.report import curves, kept
from experiments.report.documents import writing
from fljax import verdicts

_ATTACKS = (
    verdicts.IMPUTATION,
    curves.AS_KNOWN,
    curves.MODEL,
    "linear_inversion",
    "trajectory",
)
_WORDS = {
    "knowledge_noise": "share of public cells that are another row's",
    "knowledge_missing": "share of public cells that are missing",
    "knowledge_targets": "share of rows whose target is known",
    "knowledge_rows": "share of rows that are known",
    "trajectory_scale_error": "learning rate times steps, taken for so many times it",
}


def text(name: str) -> str:
    """Command, accuracy by what is known, and where attacks stop gaining.

    Args:
      name: of a kept result.
    """
    card = kept.shown(name)
    body = [
        [
            f"{_WORDS.get(point.name, point.name)}: {point.value}",
            *(_accuracy(point, attack) for attack in _ATTACKS),
        ]
        for point in curves.points(card.rows)
    ]
    names = [each.replace("_", " ") for each in _ATTACKS]
    header = ["less is known", *(f"{each}, accuracy %" for each in names)]
    shown = writing.table(header, body, header[1:])
    said = "\n".join(f"* {each}" for each in curves.sentences(card.rows))
    return f"{writing.command(card.manifest['command'])}\n\n{shown}\n\n{said}"


def _accuracy(point: curves.Point, attack: str) -> str:
    found = point.accuracy.get(attack)
    return writing.plain(found) if found else ""

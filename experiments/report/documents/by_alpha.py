"""How near attacks are to label distributions, by how uneven these are."""

from experiments.report import kept
from experiments.report.documents import writing
from fljax.results import summarise

_ALPHA = "alpha="
_METRICS = {  # words and decimals
    "total_variation": ("total variation", 4),
    "dominant_label_percent": ("most frequent label named, %", 1),
}


def text(name: str) -> str:
    """A line for each attack and metric of a kept result, a column for each alpha.

    Args:
      name: of a result of `experiments.label_distribution`.
    """
    found: dict[tuple[str, str], dict[str, str]] = {}
    for each in summarise(kept.read(name).rows):
        row = each.row
        if row.metric in _METRICS and row.point.startswith(_ALPHA):
            words, digits = _METRICS[row.metric]
            shown = f"{each.estimate.mean:.{digits}f}"
            alpha = row.point.removeprefix(_ALPHA)
            if alpha.replace(".", "", 1).isdecimal():  # not of one client's labels
                found.setdefault((words, row.attack), {})[alpha] = shown
    alphas = sorted({alpha for line in found.values() for alpha in line}, key=float)
    body = [
        [words, attack, *(line.get(alpha, "") for alpha in alphas)]
        for (words, attack), line in sorted(found.items(), reverse=True)
    ]
    columns = [f"alpha = {alpha}" for alpha in alphas]
    return writing.table(["metric", "attack", *columns], body, columns)

"""How well posteriors of attribute attacks order people: areas under the curve."""

from experiments.report import kept
from experiments.report.documents import writing
from fljax import certainty
from fljax.results import summarise, within


def text(name: str) -> str:
    """A line for each attack of a kept result that says posteriors."""
    body = []
    for found in summarise(kept.shown(name).rows):
        row, estimate = found.row, within(found.estimate, found.row.metric)
        if (row.metric, row.client) == (certainty.AUC, "all"):
            ends = f"[{estimate.low:.3f}, {min(estimate.high, 1):.3f}]"
            seeds = f"{estimate.repetitions} x {row.n}"
            body.append([row.attack, row.setting, f"{estimate.mean:.3f} {ends}", seeds])
    heading = "area under the ROC curve [95 %]"
    header = ["attack", "setting", heading, "seeds x rows"]
    return writing.table(header, body, header[2:])

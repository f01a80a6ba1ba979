"""How well posteriors of attribute attacks order people: areas under the curve."""

from experiments.report import kept
from experiments.report.documents import writing
from fljax import certainty
from fljax.results import summarise


def text(name: str) -> str:
    """A line for each attack of a kept result that says posteriors."""
    body = []
    for found in summarise(kept.shown(name).rows):
        row = found.row
        if (row.metric, row.client) == (certainty.AUC, "all"):
            seeds = f"{found.estimate.repetitions} x {row.n}"
            area = writing.plain(found.shown, 3)
            body.append([row.attack, row.setting, area, seeds])
    heading = "area under the ROC curve [95 %]"
    header = ["attack", "setting", heading, "seeds x rows"]
    return writing.table(header, body, header[2:])

"""Rows from sums over clients, by attack, order and trainings seen."""

from experiments.report import kept
from experiments.report.documents import writing
from experiments.rows_of_sums.reporting import COLUMNS, NOTHING
from fljax.results import summarise

_WORDS = {
    "common_to_rounds": "what rounds have in common",
    "exclusive_neurons": "exclusive neurons (SRATTA's way)",
    NOTHING: "nothing found, every row alone",
}


def text(name: str) -> str:
    """A line for each setting and attack of a kept result."""
    card = kept.shown(name)
    found = {
        (s.row.setting, s.row.attack, s.row.metric): s for s in summarise(card.rows)
    }
    body = []
    for setting, attack in dict.fromkeys((r.setting, r.attack) for r in card.rows):
        order, _, trainings = setting.rpartition("_")
        told = [found[(setting, attack, metric)] for metric in COLUMNS]
        count = f"{told[0].shown.repetitions} x {told[0].row.n}"
        shown = [writing.share(each.shown, told[0].row.n) for each in told]
        body.append([order, trainings, _WORDS[attack], count, *shown])
    header = ["rows", "trainings", "attack", "n", *COLUMNS.values()]
    lines = writing.table(header, body, header[3:])
    return f"{writing.command(card.manifest['command'])}\n\n{lines}"

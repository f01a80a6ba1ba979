"""Epsilon from both sides: for each canary and budget, what each observer proves."""

from experiments.report import kept
from experiments.report.documents import writing
from fljax.results import Row

_UPPER = "epsilon_reachable", "epsilon_accounted"
_AUDITED = "epsilon_audited"


def text(name: str) -> str:
    """A line for each canary and budget of a kept result."""
    card = kept.shown(name)
    observers = list(dict.fromkeys(row.attack for row in card.rows))
    found = {_key(row): row.value for row in card.rows}
    body = []
    for canary, point in dict.fromkeys((row.setting, row.point) for row in card.rows):
        low = [found[canary, point, each, _AUDITED] for each in observers]
        high = [found[canary, point, observers[0], each] for each in _UPPER]
        cells = [f"{value:.2f}" for value in (*low, *high)]
        body.append([canary, *cells])
    headings = [*observers, "so many could prove", "accounted"]
    lines = writing.table(["canary", *headings], body, headings)
    flags = card.manifest["flags"]
    said = (
        f"{card.rows[0].n} independent trainings in each line, every second with the "
        f"canary; delta = {flags['delta']}, confidence {flags['confidence']} for each "
        "number; neighbours: the canary left out, or after a colon what takes its place; "
        "accounted is for whoever sees messages."
    )
    return f"{writing.command(card.manifest['command'])}\n\n{lines}\n\n{said}"


def _key(row: Row) -> tuple[str, str, str, str]:
    return row.setting, row.point, row.attack, row.metric

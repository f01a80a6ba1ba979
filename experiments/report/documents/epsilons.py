"""Epsilon from both sides: for each canary and budget, what each observer proves."""

from experiments.epsilon_audit.published import PUBLISHED
from experiments.report import kept
from experiments.report.documents import speed, writing
from fljax.results import Row

_UPPER = {
    "epsilon_reachable": "so many could prove", "epsilon_in_messages": "in messages",
    "epsilon_accounted": "accounted",
}  # fmt: skip
_AUDITED = "epsilon_audited"


_MEASURED = {  # kept result -> what is audited
    "epsilon_audit.diabetes": "all rows in each step",
    "epsilon_audit.rows": "all rows in each step",
    "epsilon_audit.canaries": "a drawn batch in each step",
}
_OURS = "here, messages of a client of diabetes"


def text(name: str) -> str:
    """Of a kept result; `published`: beside others; `soundness`: that benchmark."""
    alone = {"published": _beside_others, "soundness": _sound}
    return alone[name]() if name in alone else _kept(name)


def _sound() -> str:
    """A line for each canary and budget: audits above the account, by observer."""
    rows, _ = speed.kept("soundness")
    found: dict[tuple[str, float], list[dict]] = {}
    for row in rows:
        found.setdefault((row["canary"], row["epsilon"]), []).append(row)
    observers = list(dict.fromkeys(row["observer"] for row in rows))
    body = [
        [canary, f"{each[0]['accounted']:.2f}", *(str(row["above"]) for row in each)]
        for (canary, _), each in found.items()
    ]
    header = ["accounted", *observers]
    told = f"Of {rows[0]['audits']} audits each, of {rows[0]['trainings']} trainings."
    command = writing.command(rows[0]["command"])
    return f"{command}\n\n{writing.table(['canary', *header], body, header)}\n\n{told}"


def _beside_others() -> str:
    """What was proved by others, and here of the last budget of each canary."""
    body = [
        [one.who, one.what, f"{one.audited:g}", f"{one.accounted:g}",
         f"{one.audited / one.accounted:.3f}"]
        for one in PUBLISHED
    ]  # fmt: skip
    for name, how in _MEASURED.items():
        found = {_key(row): row.value for row in kept.shown(name).rows}
        last = {row.setting: row.point for row in kept.shown(name).rows}
        for canary, point in last.items():
            of = canary, point, "messages"
            low, high = found[*of, _AUDITED], found[*of, "epsilon_accounted"]
            cells = f"{low:.2f}", f"{high:.2f}", f"{low / high:.3f}"
            body.append([_OURS, f"many trainings, {canary}, {how}", *cells])
    headings = "audited", "accounted", "share"
    return writing.table(["who", "what", *headings], body, headings)


def _kept(name: str) -> str:
    card = kept.shown(name)
    observers = list(dict.fromkeys(row.attack for row in card.rows))
    found = {_key(row): row.value for row in card.rows}
    metrics = {row.metric for row in card.rows}
    upper = {name: said for name, said in _UPPER.items() if name in metrics}
    body = []
    for canary, point in dict.fromkeys((row.setting, row.point) for row in card.rows):
        low = [found[canary, point, each, _AUDITED] for each in observers]
        high = [found[canary, point, observers[0], each] for each in upper]
        auc = found[canary, point, observers[0], "auc"]
        cells = [f"{value:.2f}" for value in (*low, *high, auc)]
        body.append([canary, *cells])
    headings = [*observers, *upper.values(), f"AUC, {observers[0]}"]
    lines = writing.table(["canary", *headings], body, headings)
    flags, n = card.manifest["flags"], card.rows[0].n
    trained = f"{n} independent trainings in each line, every second with the canary"
    if flags.get("mode") == "one_run":
        trained = f"One training in each line, with {n} canaries, each in by a coin"
    said = (
        f"{trained}; delta = {flags['delta']}, confidence {flags['confidence']} for each "
        "number; neighbours: the canary left out, or after a colon what takes its place; "
        "accounted is for whoever sees messages."
    )
    return f"{writing.command(card.manifest['command'])}\n\n{lines}\n\n{said}"


def _key(row: Row) -> tuple[str, str, str, str]:
    return row.setting, row.point, row.attack, row.metric

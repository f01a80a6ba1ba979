"""Membership inference by defense: areas under the curve, and what few alarms find."""

from experiments import epsilons
from experiments.membership.reporting import AUC, FOUND
from experiments.report import kept
from experiments.report.documents import writing
from fljax import certainty
from fljax.results import summarise

_COLUMNS = (  # observer, attack, metric, heading
    ("messages", "loss_threshold", AUC, "loss"),
    ("messages", "lira", AUC, "LiRA"),
    ("messages", "rmia", AUC, "RMIA"),
    ("messages", "gradient", AUC, "gradient"),
    ("messages", "gradient_joint", AUC, "gradient, pool known"),
    ("messages", "rmia", FOUND, "RMIA finds, %"),
    ("messages", "gradient_joint", FOUND, "gradient, pool known, finds, %"),
    ("sum", "gradient_joint", AUC, "of sums"),
    ("final", "rmia", AUC, "RMIA of the final model"),
)


def text(name: str) -> str:
    """A line for each defense of a kept result."""
    card = kept.shown(name)
    found = {
        (s.row.defense, s.row.setting, s.row.attack, s.row.metric): s.shown
        for s in summarise(card.rows)
    }
    promised = {at[0]: e.text for at, e in epsilons.stated(card.rows).items()}
    body = []
    for defense in dict.fromkeys(row.defense for row in card.rows):
        cells = []
        for observer, attack, metric, _ in _COLUMNS:
            each = found.get((defense, observer, attack, metric))
            places = 2 if metric == AUC else 1
            cells.append("" if each is None else writing.plain(each, places))
        body.append([defense, promised.get(defense, ""), *cells])
    headings = [heading for *_, heading in _COLUMNS]
    lines = writing.table(["defense", "epsilon", *headings], body, headings)
    count = min(row.n for row in card.rows if row.metric == FOUND)
    chance = 100 * certainty.found_by_chance(count // 2)  # a half was not there
    said = f"In random order {chance:.2f} % are found."
    return f"{writing.command(card.manifest['command'])}\n\n{lines}\n\n{said}"

"""The strongest attack client by client, beside what needs no message."""

from collections.abc import Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from experiments.report import facts
from experiments.report.cards import Card
from experiments.report.gains import Score
from fljax import verdicts
from fljax.driver import screen_tables
from fljax.results import Row

_MOST = 10


def of(card: Card, score: Score) -> Table | None:
    """A line for each client, of several seeds the mean; None beyond ten clients.

    Args:
      card: of a run.
      score: of one of its attacks.
    """
    ours = score.row.attack
    columns = {
        verdicts.MAJORITY: verdicts.MAJORITY,
        verdicts.IMPUTATION: verdicts.IMPUTATION,
        f"{ours}_{verdicts.STRANGERS}": verdicts.STRANGERS,
        ours: ours,
    }
    found = {attack: _by_client(card.rows, score, attack) for attack in columns}
    clients = sorted(found[ours])
    if not 2 <= len(clients) <= _MOST:
        return None
    kept = [attack for attack in columns if found[attack].keys() >= set(clients)]
    unit = score.gain.measure.text
    table = screen_tables.empty(Text(f"client by client: {unit}"))
    screen_tables.add_texts(table, "client")
    screen_tables.add_numbers(table, "rows", *(columns[each] for each in kept))
    names = facts.clients(card)
    for client in clients:
        values = (f"{found[attack][client][0]:.2f}" for attack in kept)
        rows = f"{found[ours][client][1]:.0f}"
        table.add_row(Text(names.get(client, str(client))), rows, *values)
    return table


def _by_client(
    rows: Sequence[Row], score: Score, attack: str
) -> dict[int, tuple[float, float]]:
    """Client -> value and rows, means over the seeds."""
    of, kept = score.row, {}
    settings = of.setting, "baseline"
    for row in rows:
        same = row.metric == of.metric and row.attack == attack
        here = row.defense == of.defense and row.point == of.point
        if same and here and row.setting in settings and isinstance(row.client, int):
            kept.setdefault(row.client, []).append((row.value, row.n))
    return {client: tuple(np.mean(each, axis=0)) for client, each in kept.items()}

"""Result rows, and the table on the screen."""

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from fljax.driver import screen_tables
from fljax.results import Labels, Row, summarise

EXPERIMENT = "rows_of_sums"
FOUND, WRONG = "rows_found_percent", "rows_wrong_percent"


def rows(
    labels: Labels, attack: str, setting: str, seed: int, found, truth
) -> list[Row]:
    """Rows found, and those among them that are none, in percent of all rows.

    Args:
      labels: of the federation.
      attack: name.
      setting: order of the rows and trainings seen.
      seed: of the repetition.
      found: `[m, D]` integers.
      truth: `[n, D]` integers.
    """
    true = {row.tobytes() for row in truth.astype(np.int64)}
    ours = {row.tobytes() for row in found.astype(np.int64)}
    told = (FOUND, ours & true), (WRONG, ours - true)
    return [
        labels.row(
            attack, setting, seed, metric, 100 * len(each) / len(true), len(true)
        )
        for metric, each in told
    ]


def tables(rows: Sequence[Row]) -> list[Table]:
    """A line for each setting and attack."""
    table = screen_tables.empty("rows from sums over clients")
    screen_tables.add_texts(table, "order, trainings", "attack")
    screen_tables.add_numbers(table, "rows found, %", "wrong, %")
    found: dict[tuple[str, str], dict[str, str]] = {}
    for s in summarise(rows):
        at = s.row.setting, s.row.attack
        found.setdefault(at, {})[s.row.metric] = screen_tables.interval(s.shown, ".1f")
    for at, each in found.items():
        table.add_row(*at, each[FOUND], each[WRONG])
    return [table]

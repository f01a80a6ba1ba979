"""Result rows, and the table on the screen."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from fljax.driver import screen_tables
from fljax.results import Labels, Row, summarise

EXPERIMENT = "rows_of_sums"
FOUND, WRONG = "rows_found_percent", "rows_wrong_percent"
PAIRED, MISPAIRED = "pairs_found_percent", "pairs_wrong_percent"
V_MEASURE = "v_measure_percent"
COMMON, EXCLUSIVE, NOTHING = "common_to_rounds", "exclusive_neurons", "nothing_found"
COLUMNS = {
    FOUND: "found, %",
    WRONG: "wrong, %",
    PAIRED: "pairs of a client found, %",
    MISPAIRED: "of the pairs told wrong, %",
    V_MEASURE: "V-measure, %",
}
_TABLES = {  # narrow enough for a file
    "rows from sums over clients": (FOUND, WRONG),
    "whose rows they are": (PAIRED, MISPAIRED, V_MEASURE),
}


def rows(
    labels: Labels,
    attack: str,
    setting: str,
    seed: int,
    values: Mapping[str, float],
    count: int,
) -> list[Row]:
    """A row of each metric.

    Args:
      labels: of the federation.
      attack: name.
      setting: order of the rows and trainings seen.
      seed: of the repetition.
      values: by metric.
      count: rows of all clients.
    """
    return [
        labels.row(attack, setting, seed, metric, value, count)
        for metric, value in values.items()
    ]


def tables(rows: Sequence[Row]) -> list[Table]:
    """Of rows and of pairs, each with a line for each setting and attack."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for s in summarise(rows):
        at = s.row.setting, s.row.attack
        found.setdefault(at, {})[s.row.metric] = screen_tables.interval(s.shown, ".1f")
    return [_table(title, metrics, found) for title, metrics in _TABLES.items()]


def _table(title: str, metrics: Sequence[str], found) -> Table:
    table = screen_tables.empty(title)
    screen_tables.add_texts(table, "order, trainings", "attack")
    screen_tables.add_numbers(table, *(COLUMNS[metric] for metric in metrics))
    for at, each in found.items():
        table.add_row(*at, *(each[metric] for metric in metrics))
    return table

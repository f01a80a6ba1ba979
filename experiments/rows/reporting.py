"""Result rows, and the table on the screen."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from rich.table import Table

from experiments.rows.scores import Score
from fljax import metrics
from fljax.driver import screen_tables
from fljax.results import Labels, Row, summarise

EXPERIMENT = "rows"
ATTACK, MATCHING = "rows", "gradient_matching"
MAJORITY, STRANGERS = "majority", "strangers"
CELLS, WITHIN = "cells_percent", "rows_within_tolerance_percent"
EXACT = "exact_rows_percent"
LABELLED, PROVEN = "rows_with_target_percent", "proven_batches_percent"

COLUMNS = (  # attack, metric, heading
    (ATTACK, CELLS, "cells, %"),
    (MATCHING, CELLS, "of TabLeak, run here, %"),
    (MAJORITY, CELLS, "of the mean row, %"),
    (STRANGERS, CELLS, "of others' rows, %"),
    (ATTACK, WITHIN, "rows with all cells, %"),
    (MATCHING, WITHIN, "of TabLeak, run here, %"),
    (ATTACK, EXACT, "whole rows, %"),
    (ATTACK, LABELLED, "with their target, %"),
    (ATTACK, PROVEN, "batches proven, %"),
)


Spent = Mapping[str, Mapping[str, float]]
# Of each attack the median and most seconds of a batch.


class BatchScores(NamedTuple):
    """Of one batch: what the attack read, whether it has proven it, and references.

    Attributes:
      read: by the attack.
      proven: whether the rows give the message that came.
      mean: reads who guesses the mean row of the table.
      others: reads who guesses rows of others.
      matched: read by gradient matching, if it was run.
    """

    read: Score
    proven: bool
    mean: Score
    others: Score
    matched: Score | None = None


def labels(data: str) -> Labels:
    """Of one table."""
    return Labels(EXPERIMENT, data, "mlp")


def rows(
    labels: Labels, batches: Sequence[BatchScores], size: int, seed: int
) -> list[Row]:
    """Means over the batches of one size and seed."""
    values = (
        (ATTACK, CELLS, [each.read.accuracy for each in batches]),
        (ATTACK, WITHIN, [each.read.within for each in batches]),
        (ATTACK, EXACT, [each.read.exact for each in batches]),
        (ATTACK, LABELLED, [each.read.labelled for each in batches]),
        (ATTACK, PROVEN, [100 * each.proven for each in batches]),
        (MAJORITY, CELLS, [each.mean.accuracy for each in batches]),
        (STRANGERS, CELLS, [each.others.accuracy for each in batches]),
        (STRANGERS, WITHIN, [each.others.within for each in batches]),
        (STRANGERS, EXACT, [each.others.exact for each in batches]),
    )
    matched = [each.matched for each in batches if each.matched]
    if matched:
        values += (
            (MATCHING, CELLS, [each.accuracy for each in matched]),
            (MATCHING, WITHIN, [each.within for each in matched]),
            (MATCHING, EXACT, [each.exact for each in matched]),
        )
    count = size * len(batches)
    return [
        labels.row(attack, f"batch_{size}", seed, metric, float(np.mean(each)), count)
        for attack, metric, each in values
    ]


def num_batches(row: Row) -> int:
    """Of how many batches it is: rows of one stand or fall together."""
    return row.n // int(row.setting.removeprefix("batch_"))


def columns(rows: Sequence[Row]) -> list[tuple[str, str, str]]:
    """Those of `COLUMNS` that some row has."""
    there = {(row.attack, row.metric) for row in rows}
    return [each for each in COLUMNS if each[:2] in there]


def tables(rows: Sequence[Row], seconds: Mapping[str, Spent]) -> list:
    """A line for each size: cells; rows; seconds."""
    chosen = columns(rows)
    cells = [each for each in chosen if each[1] == CELLS]
    whole = [each for each in chosen if each[1] != CELLS]
    return [
        _table("cells of rows from messages", rows, cells),
        _table("rows from messages", rows, whole),
        _times(seconds),
    ]


def _table(
    title: str, rows: Sequence[Row], chosen: Sequence[tuple[str, str, str]]
) -> Table:
    table = screen_tables.empty(title)
    screen_tables.add_texts(table, "rows of a batch")
    screen_tables.add_numbers(table, *(heading for *_, heading in chosen))
    found = {
        (s.row.setting, s.row.attack, s.row.metric): screen_tables.interval(
            metrics.as_rows(s.shown, s.shown.repetitions * num_batches(s.row)), ".1f"
        )
        for s in summarise(rows)
    }
    for setting in dict.fromkeys(row.setting for row in rows):
        shown = [found[(setting, *each[:2])] for each in chosen]
        table.add_row(setting.removeprefix("batch_"), *shown)
    return table


def _times(seconds: Mapping[str, Spent]) -> Table:
    table = screen_tables.empty("seconds of a batch, median and most")
    screen_tables.add_texts(table, "rows of a batch")
    screen_tables.add_numbers(table, *next(iter(seconds.values())))
    for size, each in seconds.items():
        shown = [f"{some['median']:.2f}, {some['most']:.2f}" for some in each.values()]
        table.add_row(size, *shown)
    return table

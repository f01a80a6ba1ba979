"""Result rows, and the table on the screen."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from rich.table import Table

from experiments.rows.scores import Score
from fljax.driver import screen_tables
from fljax.results import Labels, Row, summarise

EXPERIMENT = "rows"
ATTACK, MAJORITY, STRANGERS = "rows", "majority", "strangers"
CELLS, WITHIN = "cells_percent", "rows_within_tolerance_percent"
EXACT = "exact_rows_percent"
LABELLED, PROVEN = "rows_with_target_percent", "proven_batches_percent"


class Told(NamedTuple):
    """Of one batch: what the attack read, whether it has proven it, and references.

    Attributes:
      read: by the attack.
      proven: whether the rows give the message that came.
      mean: reads who guesses the mean row of the table.
      others: reads who guesses rows of others.
    """

    read: Score
    proven: bool
    mean: Score
    others: Score


def labels(data: str) -> Labels:
    """Of one table."""
    return Labels(EXPERIMENT, data, "mlp")


def rows(labels: Labels, told: Sequence[Told], size: int, seed: int) -> list[Row]:
    """Means over the batches of one size and seed."""
    values = (
        (ATTACK, CELLS, [each.read.accuracy for each in told]),
        (ATTACK, WITHIN, [each.read.within for each in told]),
        (ATTACK, EXACT, [each.read.exact for each in told]),
        (ATTACK, LABELLED, [each.read.labelled for each in told]),
        (ATTACK, PROVEN, [100 * each.proven for each in told]),
        (MAJORITY, CELLS, [each.mean.accuracy for each in told]),
        (STRANGERS, CELLS, [each.others.accuracy for each in told]),
        (STRANGERS, WITHIN, [each.others.within for each in told]),
        (STRANGERS, EXACT, [each.others.exact for each in told]),
    )
    count = size * len(told)
    return [
        labels.row(attack, f"batch_{size}", seed, metric, float(np.mean(each)), count)
        for attack, metric, each in values
    ]


def tables(rows: Sequence[Row], seconds: Mapping[str, Mapping[str, float]]) -> list:
    """A line for each size."""
    table: Table = screen_tables.empty("rows from messages")
    screen_tables.add_texts(table, "rows of a batch")
    headings = (
        "cells, %",
        "of the mean row",
        "of strangers",
        "rows within, %",
        "whole rows, %",
        "with target",
    )
    screen_tables.add_numbers(table, *headings, "proven batches, %", "seconds, median")
    found = {
        (s.row.setting, s.row.attack, s.row.metric): screen_tables.interval(
            s.shown, ".2f"
        )
        for s in summarise(rows)
    }
    columns = (
        (ATTACK, CELLS), (MAJORITY, CELLS), (STRANGERS, CELLS),
        (ATTACK, WITHIN), (ATTACK, EXACT), (ATTACK, LABELLED), (ATTACK, PROVEN),
    )  # fmt: skip
    for setting in dict.fromkeys(row.setting for row in rows):
        size = setting.removeprefix("batch_")
        shown = [found[(setting, *each)] for each in columns]
        table.add_row(size, *shown, f"{seconds[size]['median']:.2f}")
    return [table]

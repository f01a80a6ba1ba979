"""Whole rows from messages, by the size of the batch."""

from collections.abc import Mapping
from typing import Any

from experiments.report import kept, published
from experiments.report.documents import writing
from experiments.rows.reporting import ATTACK, CELLS, columns, num_batches
from fljax.results import summarise


def text(name: str) -> str:
    """A line for each size of a kept result."""
    card = kept.shown(name)
    found = {
        (s.row.setting, s.row.attack, s.row.metric): s for s in summarise(card.rows)
    }
    printed = {
        line["setting"]: f"{line['value']} ± {line['std']}"
        for line in published.stored("vero2023")
        if line["dataset"] == card.rows[0].data and _as_tableak(card.manifest["flags"])
    }
    body, chosen = [], columns(card.rows)
    for setting in dict.fromkeys(row.setting for row in card.rows):
        told = [found.get((setting, *each[:2])) for each in chosen]
        first = found[(setting, ATTACK, CELLS)]
        count = f"{first.shown.repetitions} x {first.row.n}"
        size = setting.removeprefix("batch_")
        number = first.shown.repetitions * num_batches(first.row)
        shown = [writing.share(each.shown, number, 2) if each else "" for each in told]
        body.append([size, count, *shown])
        body[-1].insert(3, printed.get(setting, ""))
    headings = [heading for *_, heading in chosen]
    headings.insert(1, "of TabLeak, published, %")
    lines = writing.table(["rows of a batch", "n", *headings], body, headings)
    return f"{writing.command(card.manifest['command'])}\n\n{lines}"


def _as_tableak(flags: Mapping[str, Any]) -> bool:
    """Whether each message is the gradient of one batch at its network."""
    several = flags.get("step_rows") or flags.get("num_rounds")
    usual = {"activation": "relu", "norm": "none", "initialisation": "torch"}
    return (
        not several
        and flags.get("local_steps", 1) == 1
        and list(flags["hidden"]) == [100, 100]
        and all(flags.get(name, each) == each for name, each in usual.items())
    )

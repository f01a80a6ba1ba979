"""What attacks read through the defenses that others ship, as a leaderboard.

    python -m experiments.benchmarks.peers --data_name=diabetes

One small federation is trained with each defense, once a seed, recorded, and attacked by
`fljax.audit`, which also says the verdict. Clips are at the median of what they clip
without a defense (`sizes`), so that they bind. Packages that are not installed are named
and left out.
"""

import dataclasses
import os
import tempfile
import time
from typing import Literal

from experiments.benchmarks import harness
from experiments.benchmarks.peers import (
    auditing,
    catalogue,
    epochs,
    rows,
    scoring,
    sizes,
    training,
)
from experiments.benchmarks.peers.auditing import Effort, OneRelease
from experiments.benchmarks.peers.catalogue import Entry
from experiments.benchmarks.peers.training import Plan, Setting
from fljax import data
from fljax.driver.option import option, several

_MINUTES, _DEFENSES, _ATTACKS = 15, 8, 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(harness.Flags):
    """No prefix."""

    data_name: Literal["diabetes", "medical", "breast_cancer", "csv"] = option(
        "diabetes", "whose rows"
    )
    data_dir: str | None = option(None, "folder with local copies of the data files")
    data_path: str | None = option(None, "csv: the file")
    data_target: str | None = option(None, "csv: column that the model predicts")
    data_sensitive: str | None = option(
        None, "column of two values that attacks infer; a built-in table has its own"
    )
    packages: tuple[str, ...] = option((), "whose defenses; default: all")
    seeds: tuple[int, ...] = several((0, 1, 2), "of split, training and attacks", min=0)
    clients: int = option(4, "who share the training rows equally", min=1)
    hidden: int = option(128, "hidden units", min=1)
    rounds: int = option(40, "of one local epoch each", min=1)
    batch_size: int = option(25, "rows of a step", min=1)
    learning_rate: float = option(0.003, "of the clients' SGD", above=0)
    smoke: bool = option(False, "one seed, few rounds, units and iterations")


def benchmark(flags: Flags) -> tuple[list[harness.Row], list[harness.Target]]:
    """A row for each defense; how many of others, and in what time."""
    begin = time.perf_counter()
    if flags.smoke:
        flags = dataclasses.replace(flags, rounds=3, hidden=8, seeds=flags.seeds[:1])
    effort = Effort((1,), 8, 200) if flags.smoke else Effort()
    entries = catalogue.installed(flags.packages)
    table = rows.load(
        flags.data_name, flags.data_dir, path=flags.data_path,
        target=flags.data_target, sensitive=flags.data_sensitive,
    )  # fmt: skip
    alone: list[OneRelease | None] = []
    found: list[list[scoring.Seed]] = [[] for _ in entries]
    with tempfile.TemporaryDirectory() as folder:
        for seed in flags.seeds:
            setting = prepared(flags, table, seed)
            if not alone:
                alone = [_alone(entry, setting, effort) for entry in entries]
            for at, entry in enumerate(entries):
                stem = os.path.join(folder, f"{at}-{seed}")
                found[at].append(_one(entry, setting, stem, effort))
    shown = [scoring.row(*each) for each in zip(entries, found, alone, strict=True)]
    minutes = (time.perf_counter() - begin) / 60
    others = sum(
        row["num_attacks"] >= _ATTACKS
        for entry, row in zip(entries, shown, strict=True)
        if entry.package != "fljax"
    )
    return shown, [
        harness.Target("minutes", minutes, _MINUTES, at_least=False),
        harness.Target("defenses of others, 6 attacks each", others, _DEFENSES),
    ]


def prepared(flags: Flags, table: data.Table, seed: int) -> Setting:
    """What defenses of a seed are made for, from a training without any."""
    people = rows.deal(table, flags.clients, seed)
    plan = Plan(flags.hidden, flags.rounds, flags.batch_size, flags.learning_rate, seed)
    found = training.train(people, plan, epochs.sgd(people, plan), training.Shipped())
    return Setting(people, plan, sizes.measure(people, plan, found.messages))


def _alone(entry: Entry, setting: Setting, effort: Effort) -> OneRelease | None:
    """Of a model small enough for its noise to be learned."""
    small = setting._replace(plan=setting.plan._replace(hidden=2))
    return auditing.one_release(entry.make(small), effort.draws)


def _one(entry: Entry, setting: Setting, stem: str, effort: Effort) -> scoring.Seed:
    begin = time.perf_counter()
    people, plan, _ = setting
    shipped = entry.make(setting)
    trained = training.train(people, plan, epochs.sgd(people, plan), shipped, stem)
    lines = auditing.attack(stem, people, plan, shipped, effort)
    return scoring.Seed(
        explained=training.explained(trained.params, people),
        stated=shipped.stated(),
        accounted=auditing.accounted(people, plan, shipped),
        lines=lines,
        seconds=time.perf_counter() - begin,
    )


if __name__ == "__main__":
    harness.main(benchmark, Flags, scoring.COLUMNS)

"""Attribute inference against federated training (Diana et al., AAAI-25).

    python -m experiments.aia --flagfile=experiments/flags/aia.diabetes.mlp.flags

Trains a federation, eavesdrops on it, infers the sensitive attribute of every client's
rows, and writes `rows.jsonl`, `manifest.json` and figures into `--run_dir`.
"""

import functools
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.progress import Progress
from rich.table import Table

from experiments.aia import (
    baselines,
    closing,
    guesses,
    listing,
    memory,
    pipeline,
    published,
    results_table,
    saved,
)
from experiments.aia.setup import Settings, Setup
from experiments.aia.sweep import points
from experiments.report import COMMAND, figures
from experiments.tabular import clients, federation
from fljax import data, files, transcript
from fljax import memory as memory_lib
from fljax.defenses.parts import SpecError
from fljax.driver import processes, screen_tables, stages
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start

_FIRST = (
    "data_name", "data_path", "data_target", "data_sensitive", "data_drop",
    "data_missing", "partition_kind", "partition_column", "partition_clients",
    "model_hidden", "learning_rate", "batch_size", "num_rounds", "local_epochs",
    "attack_kinds", "defense", "sweep", "seeds", "run_dir", "dry_run",
)  # fmt: skip


class Prepared(NamedTuple):
    """Every point of the sweep, its rows dealt and its schedule built."""

    config: Settings
    table: data.Table
    points: list[Setup]


def start(config: Settings, *, apart: bool = False) -> Start:
    """Reads the table.

    Args:
      config: of the run.
      apart: whether the points of a sweep share nothing that they draw but rows and
        initial models.
    """
    published.check_table(config.run.paper_table)
    table = clients.load_table(config.data)
    name = f"{table.name}.{config.model.name}"
    return Start(name, functools.partial(prepare, config, table, apart))


def prepare(config: Settings, table: data.Table, apart: bool = False) -> Prepared:
    """Encodes and deals the rows of every point."""
    swept = list(points(config, config.run.sweep))
    numbers = _trials([label for label, _ in swept]) if apart else [None] * len(swept)
    prepared = [
        pipeline.prepare(table, at, label, number)
        for number, (label, at) in zip(numbers, swept, strict=True)
    ]
    if not config.run.dry_run:
        for each in prepared:
            memory.check(each)
    return Prepared(config, table, prepared)


def _trials(labels: Sequence[str]) -> list[int]:
    """Of each point another number, which is its own in any sweep that it is part of."""
    found: list[int] = []
    for label in labels:
        number = zlib.crc32(label.encode()) % 2**31
        while number in found:
            number = (number + 1) % 2**31
        found.append(number)
    return found


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Runs every point of the sweep."""
    config, table, points_ = prepared
    cache = output.cache(table.files, *_attacked(config))
    shared = baselines.Shared()
    outcomes = [
        pipeline.run(each, bars, cache.part(f"point{number}"), shared)
        for number, each in enumerate(points_)
    ]
    parts = {
        each.label or "run": outcome
        for each, outcome in zip(points_, outcomes, strict=True)
    }
    output.seconds |= {label: outcome.seconds for label, outcome in parts.items()}
    if config.run.save_transcript and processes.is_first():
        with output.writing():
            for each, outcome in zip(points_, outcomes, strict=True):
                saved.save(output.folder, each, outcome.transcript)
    rows = [row for outcome in outcomes for row in outcome.rows]
    flags = PROGRAM.to_flags(config)
    told = flags, _usual()
    manifest = closing.manifest(points_, rows, *told) | {
        "defense": {k: each.defense for k, each in parts.items() if each.defense}
    }
    above, below = closing.said(rows, manifest, *told, table.inferred)
    tables = results_table.of_results(rows, config.run.paper_table, flags)
    times = _times([outcome.seconds for outcome in outcomes])
    pages = {}
    if config.run.save_guesses:
        found = [each.guesses for each in outcomes]
        pages["guesses.csv"] = guesses.to_csv([*zip(points_, found, strict=True)])
    return Results(
        rows,
        figures.rendered(figures.all_figures(rows)),
        pages,
        files=table.files,
        manifest=manifest,
        tables=closing.in_order(above, [*tables, times], below),
    )


def _usual() -> dict[str, Any]:
    """Flag name -> what it is without being told."""
    groups = Settings.__annotations__.values()
    return PROGRAM.to_flags(Settings(*(group() for group in groups)))


def _attacked(config: Settings) -> list[str]:
    """Hashes of the saved transcript in place of a training, if it is there."""
    given = config.run.transcript
    stem = given and transcript.archive.stem_of(given)
    paths = [] if stem is None else [f"{stem}.npz", f"{stem}.json"]
    return [files.sha256(path) for path in paths if os.path.isfile(path)]


def describe(prepared: Prepared) -> Iterator[str]:
    """The resolved configuration with sizes and an estimate of the memory."""
    told: dict[str, Any] = {}
    for point in prepared.points:
        dealt, schedule = point.clients, point.problem.schedule
        sizes = memory.estimate(point)
        for name, value in PROGRAM.to_flags(point.config).items():
            if (
                name not in told or told[name] != value
            ):  # once for all points of a sweep
                yield f"--{name}={value}"
            told[name] = value
        yield from listing.columns(point)
        yield from listing.clients(point)
        yield (
            f"{point.label or 'sizes'}: {len(dealt.sizes)} seeds, "
            f"{dealt.sizes.shape[1]} clients of "
            f"{dealt.sizes.min()} to {dealt.sizes.max()} rows, "
            f"{point.num_parameters} parameters, "
            f"{schedule.num_rounds} rounds of {schedule.slots.count.shape[2]} steps on "
            f"{schedule.num_lanes} lanes"
        )
        parts = (
            f"{name} {size / 1e6:.1f} MB" for name, size in sizes._asdict().items()
        )
        yield (
            f"memory: {', '.join(parts)}; {sizes.total / 1e9:.1f} GB in all, "
            f"{memory_lib.available() / 1e9:.1f} GB are free"
        )


def _times(points_: list[stages.Seconds]) -> Table:
    """Seconds per stage, summed over the points of a sweep."""
    table = screen_tables.empty()
    screen_tables.add_texts(table, "stage")
    screen_tables.add_numbers(table, "compile s", "run s")
    for name in dict.fromkeys(name for seconds in points_ for name in seconds):
        spent = [seconds[name] for seconds in points_ if name in seconds]
        sums = (sum(each[what] for each in spent) for what in ("compile", "run"))
        table.add_row(name, *(f"{each:.1f}" for each in sums))
    return table


PROGRAM = Program(
    name="aia",
    module=__name__,
    settings=Settings,
    first=_FIRST,
    unprefixed=("train", "defense", "run", "adversary"),
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
    errors=(federation.Diverged, transcript.TranscriptError, SpecError),
)

"""Attribute inference against federated training (Diana et al., AAAI-25).

    python -m experiments.aia --flagfile=experiments/flags/aia.diabetes.mlp.flags

Trains a federation, eavesdrops on it, infers the sensitive attribute of every client's
rows, and writes `rows.jsonl`, `manifest.json` and figures into `--run_dir`.
"""

import os
from collections.abc import Callable
from typing import Any

from rich.table import Table

from experiments.aia import (
    clients,
    federation,
    memory,
    pipeline,
    published,
    results_table,
    saved,
)
from experiments.aia import settings as s
from experiments.aia.sweep import points
from experiments.report import figures
from fljax import data, files, parallel, transcript
from fljax.driver import config, console, processes, screen_tables, stages
from fljax.driver.output import Output

_GROUPS = {
    "data": s.DataConfig,
    "partition": s.PartitionConfig,
    "model": s.ModelConfig,
    "train": s.TrainConfig,
    "attack": s.AttackConfig,
    "active": s.ActiveConfig,
    "oracle": s.OracleConfig,
    "trajectory": s.TrajectoryConfig,
    "defense": s.DefenseConfig,
    "run": s.RunConfig,
}
_PREFIX = {
    "train": "",
    "defense": "",
    "run": "",
}  # the others are prefixed by their own name
ERRORS = (data.DataError, federation.Diverged, transcript.TranscriptError)


def main() -> None:
    """Runs every point of the sweep and writes the results."""
    told = pipeline.Settings(
        **{
            name: config.read(cls, _PREFIX.get(name, name))
            for name, cls in _GROUPS.items()
        }
    )
    parallel.use_cpu_cores()
    processes.join(config.read(processes.ProcessFlags))
    published.check_table(told.run.paper_table)
    table = clients.load_table(told.data)
    name = f"{table.name}.{told.model.name}"
    with Output(told.run, "aia", name, _flags(told), __name__) as out:
        _run(told, table, out)


def _run(told: pipeline.Settings, table: data.Table, out: Output) -> None:
    with out.stage("data"):
        prepared = [
            pipeline.prepare(table, at, label)
            for label, at in points(told, told.run.sweep)
        ]
    if told.run.dry_run:
        for each in prepared:
            _describe(each)
        return
    for each in prepared:
        memory.check(each)
    kept = out.cache(table.files, *_attacked(told))
    with out.autosave.interruptible(), console.progress() as bars:
        outcomes = [
            pipeline.run(each, bars, kept.part(f"point{number}"))
            for number, each in enumerate(prepared)
        ]
    parts = {
        each.label or "run": outcome
        for each, outcome in zip(prepared, outcomes, strict=True)
    }
    out.seconds |= {label: outcome.seconds for label, outcome in parts.items()}
    if told.run.save_transcript and processes.is_first():
        for each, outcome in zip(prepared, outcomes, strict=True):
            saved.save(out.folder, each, outcome.transcript)
    rows = [row for outcome in outcomes for row in outcome.rows]
    said = {k: outcome.defense for k, outcome in parts.items() if outcome.defense}
    out.write(
        rows,
        figures.rendered(figures.all_figures(rows)),
        files=table.files,
        defense=said,
    )
    shown = results_table.of_results(rows, told.run.paper_table, _flags(told))
    out.show(*shown, _times([outcome.seconds for outcome in outcomes]))


def _attacked(told: pipeline.Settings) -> list[str]:
    """Hashes of the saved transcript in place of a training, if it is there."""
    stem = told.run.transcript
    paths = [] if stem is None else [f"{stem}.npz", f"{stem}.json"]
    return [files.sha256(path) for path in paths if os.path.isfile(path)]


def _flags(told: pipeline.Settings) -> dict[str, Any]:
    """Flag name -> value."""
    flat = {}
    for name, group in told._asdict().items():
        flat |= config.to_flags(group, _PREFIX.get(name, name))
    return flat


def _describe(prepared: pipeline.Prepared) -> None:
    """The resolved configuration with sizes and an estimate of the memory."""
    told, label, _, dealt, problem = prepared
    schedule, sizes = problem.schedule, memory.estimate(prepared)
    out = console.screen()
    for name, value in _flags(told).items():
        out.print(f"--{name}={value}", highlight=False, markup=False)
    out.print(
        f"{label or 'sizes'}: {len(dealt.sizes)} seeds, {dealt.sizes.shape[1]} clients of "
        f"{dealt.sizes.min()} to {dealt.sizes.max()} rows, "
        f"{memory.parameters(prepared)} parameters, "
        f"{schedule.num_rounds} rounds of {schedule.slots.count.shape[2]} steps on "
        f"{schedule.num_lanes} lanes"
    )
    parts = (f"{name} {size / 1e6:.1f} MB" for name, size in sizes._asdict().items())
    out.print(
        f"memory: {', '.join(parts)}; {sizes.total / 1e9:.1f} GB in all, "
        f"{memory.available() / 1e9:.1f} GB are free"
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


def define(flags: Callable = config.define) -> None:
    """Registers the flags."""
    for name, cls in _GROUPS.items():
        flags(cls, _PREFIX.get(name, name))
    flags(processes.ProcessFlags)

"""Epsilon from both sides: accounted above, audited below.

    python -m experiments.epsilon_audit
    python -m experiments.epsilon_audit --canaries=gradient,mislabelled --trainings=4000
    python -m experiments.epsilon_audit \\
        --flagfile=experiments/flags/epsilon_audit.medical.flags --data_dir=DIR

Trains a private federation many times, half of them with a canary, for each canary and
each epsilon; every observer scores each training by its likelihood ratio, and what the
scores prove stands under what is accounted. A run that was stopped goes on with the same
command. Writes `rows.jsonl`, `manifest.json` and a figure into `--run_dir`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from rich.progress import Progress
from rich.table import Table

from experiments.epsilon_audit import federation
from experiments.epsilon_audit import settings as settings_lib
from experiments.epsilon_audit.federation import Loaded, Numbers
from experiments.epsilon_audit.figure import audited_by_accounted
from experiments.epsilon_audit.settings import Planted, Settings
from experiments.report import COMMAND, figures
from fljax import privacy
from fljax.driver import screen_tables
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start
from fljax.privacy import audits
from fljax.privacy.audits import Audit, attainable
from fljax.privacy.audits.evidence import Seen
from fljax.results import Row

_SHOWN = {
    "epsilon_audited": "audited", "epsilon_reachable": "reachable",
    "epsilon_in_messages": "in messages", "epsilon_accounted": "accounted",
}  # fmt: skip


class Prepared(NamedTuple):
    """What was asked for, and the data."""

    settings: Settings
    loaded: Loaded


class Found(NamedTuple):
    """The audit of one canary and budget.

    Attributes:
      name: of the canary, as its flag says.
      budget: epsilon that the noise keeps.
      noise: multiplier.
      audit: both sides.
      held: what messages hold of the canary, however many trainings there are.
      reachable: what as many trainings could prove at most.
    """

    name: Planted
    budget: float
    noise: float
    audit: Audit
    held: float
    reachable: float


def start(settings: Settings) -> Start:
    """Refuses what does not fit together."""
    settings_lib.check(settings)
    return Start(
        settings.data.name, lambda: Prepared(settings, federation.load(settings))
    )


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Trains, scores and proves."""
    run, loaded = prepared.settings.run, prepared.loaded
    cache = output.cache(loaded.table.files)
    total = run.trainings * len(run.canaries) * len(run.epsilons)
    bar = bars.add_task("trainings", total=total)
    found = []
    for name in run.canaries:
        part = cache.part(name.replace(":", "-"))
        unit = federation.planted(loaded, name)
        method = federation.method_of(prepared.settings, loaded, unit)
        planted = privacy.plant(
            method, loaded.loss_fn, loaded.tables, unit, seed=run.seed
        )
        for budget in run.epsilons:
            kept, done = part.part(f"{budget:g}"), len(found) * run.trainings
            noise = federation.noise_for(prepared.settings, loaded, unit, budget)
            with output.stage(f"{name}, epsilon {budget:g}"):
                audit = privacy.audit(
                    planted,
                    trainings=run.trainings,
                    delta=run.delta,
                    confidence=run.confidence,
                    observers=run.observers,
                    numbers=Numbers(np.float32(noise)),
                    seed=run.seed,
                    keep=lambda block, make, kept=kept: kept.cached(block, make, Seen),
                    progress=lambda number, done=done: bars.update(
                        bar, completed=done + number
                    ),
                )
            found.append(
                Found(name, budget, noise, audit, *_most(prepared, audit, noise))
            )
    rows = [row for each in found for row in _rows(prepared, each)]
    drawn = {"epsilon_by_observer": audited_by_accounted(rows)}
    return Results(
        rows,
        figures.rendered({name: figure for name, figure in drawn.items() if figure}),
        files=loaded.table.files,
        manifest={"statements": [_statement(run, each) for each in found]},
        tables=[_table(rows), *dict.fromkeys(_statement(run, each) for each in found)],
    )


def _most(prepared: Prepared, audit: Audit, noise: float) -> tuple[float, float]:
    """What messages hold, and what as many trainings could prove of it."""
    run, tables = prepared.settings.run, prepared.loaded.tables
    profile = attainable.in_messages(
        noise,
        audits.inclusions(tables, audit.canary),
        replace=audit.canary.neighbours != "remove",
    )
    could = attainable.reachable(
        profile, run.trainings, delta=run.delta, confidence=run.confidence
    )
    return attainable.epsilon_of(profile, run.delta), could


def _rows(prepared: Prepared, found: Found) -> Iterator[Row]:
    (config, run), audit = prepared.settings, found.audit
    defense = "fed_sdp" if audit.canary.kind == "client" else "dp_sgd"
    for observer, said in audit.audited.items():
        numbers = {
            "epsilon_accounted": audit.accounted,
            "epsilon_in_messages": found.held,
            "epsilon_reachable": found.reachable,
            "epsilon_audited": said.epsilon,
            "audited_of_accounted_percent": 100 * said.epsilon / audit.accounted,
            "epsilon_if_gaussian": said.gaussian,
            "auc": said.auc,
        }
        for metric, value in numbers.items():
            yield Row(
                "epsilon_audit", config.name, "mlp", defense, observer, found.name,
                f"epsilon={found.budget:g}", run.seed, "all", metric, value,
                run.trainings,
            )  # fmt: skip


def _statement(run, found: Found) -> str:
    """Neighbours, observer, unit, confidence and N of the numbers."""
    audit = found.audit
    with_, without = next(iter(audit.audited.values())).counts
    return (
        f"{audit.canary}; delta = {run.delta:g}, confidence {run.confidence:g} for each "
        f"observer, {with_} trainings with and {without} without it counted of "
        f"{audit.trainings}, the others choose the threshold; accounted is for whoever "
        "sees messages"
    )


def _table(rows: list[Row]) -> Table:
    table = screen_tables.empty("epsilon, audited under accounted")
    screen_tables.add_texts(table, "canary", "budget", "observer")
    screen_tables.add_numbers(table, *_SHOWN.values())
    by: dict[tuple, dict[str, float]] = {}
    for row in rows:
        key = row.setting, row.point, row.attack
        by.setdefault(key, {})[row.metric] = row.value
    for (canary, point, observer), of in by.items():
        values = [f"{of[name]:.2f}" for name in _SHOWN]
        table.add_row(canary, point.partition("=")[2], observer, *values)
    return table


def describe(prepared: Prepared) -> Iterator[str]:
    """The size of the run."""
    run, tables = prepared.settings.run, prepared.loaded.tables
    often = audits.inclusions(tables, federation.planted(prepared.loaded, "row"))
    cells = len(run.canaries) * len(run.epsilons)
    yield (
        f"{prepared.loaded.table.name}: {run.clients} clients, {run.num_rounds} rounds of "
        f"{often.steps} local steps, a row in each with probability {often.rate:.4g}"
    )
    yield f"{cells} x {run.trainings} trainings"


PROGRAM = Program(
    name="epsilon_audit",
    module=__name__,
    settings=Settings,
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
)

"""Epsilon from both sides: accounted above, audited below.

    python -m experiments.epsilon_audit
    python -m experiments.epsilon_audit --canaries=gradient,mislabelled --trainings=4000
    python -m experiments.epsilon_audit --mode=one_run --delta=1e-5 --epsilons=8
    python -m experiments.epsilon_audit \\
        --flagfile=experiments/flags/epsilon_audit.medical.flags --data_dir=DIR

Trains a private federation many times, half of them with a canary, for each canary and
each epsilon; every observer scores each training by its likelihood ratio, and what the
scores prove stands under what is accounted. With `--mode=one_run` it trains once with many
canaries, which proves less. A run that was stopped goes on with the same command. Writes `rows.jsonl`, `manifest.json` and a figure into `--run_dir`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rich.progress import Progress
from rich.table import Table

from experiments.epsilon_audit import federation
from experiments.epsilon_audit import settings as settings_lib
from experiments.epsilon_audit.federation import Loaded
from experiments.epsilon_audit.figure import audited_by_accounted
from experiments.epsilon_audit.plans import Plan, plans
from experiments.epsilon_audit.settings import Config, Settings
from experiments.report import COMMAND, figures
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
    """What was asked for, the data, and the audits in their order."""

    settings: Settings
    loaded: Loaded
    plans: tuple[Plan, ...]


class Found(NamedTuple):
    """The audit of one canary and budget.

    Attributes:
      plan: what was to be done.
      audit: both sides.
      held: what messages hold of the canary, however many trainings there are.
      reachable: what as many trainings could prove on average.
    """

    plan: Plan
    audit: Audit
    held: float
    reachable: float


def start(settings: Settings) -> Start:
    """Refuses what does not fit together."""
    settings_lib.check(settings)

    def load() -> Prepared:
        loaded = federation.load(settings)
        return Prepared(settings, loaded, tuple(plans(settings, loaded)))

    return Start(settings.data.name, load)


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Trains, scores and proves."""
    run, loaded = prepared.settings.run, prepared.loaded
    cache = output.cache(loaded.table.files)
    each = run.trainings if run.mode == "many" else 1
    bar = bars.add_task("trainings", total=each * len(prepared.plans))
    found: list[Found] = []
    for plan in prepared.plans:
        kept = cache.part(plan.name.replace(":", "-")).part(f"{plan.budget:g}")
        done = len(found) * each
        with output.stage(f"{plan.name}, epsilon {plan.budget:g}"):
            audit = plan.audited(
                plan.noise,
                lambda block, make, kept=kept: kept.cached(block, make, Seen),
                lambda number, done=done: bars.update(bar, completed=done + number),
            )
        found.append(Found(plan, audit, *_most(prepared, audit, plan.noise)))
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
    """What messages hold, and what as many trainings, or canaries, could prove of it."""
    run, tables = prepared.settings.run, prepared.loaded.tables
    profile = attainable.in_messages(
        noise,
        audits.inclusions(tables, audit.canary),
        replace=audit.canary.neighbours != "remove",
    )
    # Both are numerical: whole messages hold no more than their steps by themselves.
    held = min(attainable.epsilon_of(profile, run.delta), audit.accounted)
    how = {"delta": run.delta, "confidence": run.confidence}
    if run.mode == "many":
        return held, attainable.reachable(profile, run.trainings, **how)
    return held, attainable.reachable_once(held, _counts(audit), **how)[0]


def _counts(audit: Audit) -> tuple[int, int]:
    """With and without the canary, that bounds rest on; of all observers alike."""
    return next(iter(audit.audited.values())).counts


def _rows(prepared: Prepared, found: Found) -> Iterator[Row]:
    (config, run), audit = prepared.settings, found.audit
    defense = "fed_sdp" if audit.canary.kind == "client" else "dp_sgd"
    count = run.trainings if run.mode == "many" else sum(_counts(audit))
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
                "epsilon_audit", config.name, "mlp", defense, observer, found.plan.name,
                f"epsilon={found.plan.budget:g}", run.seed, "all", metric, value, count,
            )  # fmt: skip


def _statement(run: Config, found: Found) -> str:
    """Neighbours, observer, unit, confidence and N of the numbers."""
    audit = found.audit
    with_, without = _counts(audit)
    if run.mode == "many":
        how = (
            f"{with_} trainings with and {without} without it counted of "
            f"{audit.trainings}, the others choose the threshold"
        )
    else:
        _, most = attainable.reachable_once(
            found.held, (with_, without), delta=run.delta, confidence=run.confidence
        )
        how = (
            f"one training, {with_} canaries in and {without} not; if every guess were "
            f"right, it would prove {most:.2f}"
        )
    return (
        f"{audit.canary}; delta = {run.delta:g}, confidence {run.confidence:g} for each "
        f"observer, {how}; accounted is for whoever sees messages"
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
    cells = len(prepared.plans)
    yield (
        f"{prepared.loaded.table.name}: {run.clients} clients, {run.num_rounds} rounds of "
        f"{often.steps} local steps, a row in each with probability {often.rate:.4g}"
    )
    how = f"{run.trainings} trainings"
    if run.mode == "one_run":
        how = f"one training with {run.planted} canaries (of clients all)"
    yield f"{cells} x {how}"


PROGRAM = Program(
    name="epsilon_audit",
    module=__name__,
    settings=Settings,
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
)

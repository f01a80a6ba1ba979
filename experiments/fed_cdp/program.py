"""Accuracy and cost of Fed-CDP and what it is compared with (Wei et al., 2021).

    python -m experiments.fed_cdp
    python -m experiments.fed_cdp --flagfile=experiments/flags/fed_cdp.table4.adult.flags

Trains a federation with every method at every point of the grid, tunes the learning rate
on validation rows, and writes `rows.jsonl`, `manifest.json` and figures (accuracy by
round, and the gradient norms of Figure 3) into `--run_dir`. Every private point has its
epsilons in all ways of `fljax.privacy`: as the paper prints it, for the noise that is
drawn, and as it could be.
"""

import functools
import statistics
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from rich.progress import Progress

from experiments.fed_cdp import averaging, methods, reporting, results_table
from experiments.fed_cdp import clients as clients_lib
from experiments.fed_cdp import setup as setup_lib
from experiments.fed_cdp.clients import Task
from experiments.fed_cdp.methods import Trial, Variant
from experiments.fed_cdp.published import MILLISECONDS
from experiments.fed_cdp.reporting import Point
from experiments.fed_cdp.settings import Config, Settings, complete
from experiments.fed_cdp.setup import Setup
from experiments.fed_cdp.training import Trained, Trainer
from experiments.report import COMMAND, figures
from fljax.defenses.parts import SpecError
from fljax.driver import config
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start


class Prepared(NamedTuple):
    """The flags with nothing left open, the rows, and what is to be trained."""

    settings: Settings
    task: Task
    variants: list[Variant]


def start(settings: Settings) -> Start:
    """Fills in the paper's choices and refuses what does not fit together."""
    settings = complete(settings)
    return Start(settings.data.name, functools.partial(prepare, settings))


def prepare(settings: Settings) -> Prepared:
    """Reads the data; builds every defense and deals every client."""
    run, task = settings.run, clients_lib.load(settings.data, settings.run)
    variants = methods.variants(run, _rows_per_client(run, task))
    _check(run, task, variants)
    return Prepared(settings, task, variants)


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Trains every point."""
    settings, task, variants = prepared
    points, cache = [], output.cache(task.files)
    for number, variant in enumerate(variants):
        with output.stage(_title(variant)):
            part = cache.part(f"variant{number}")
            points += _train(settings.run, task, variant, bars, part)
    for point in points:
        _warn_of_divergence(settings.run, point)
    rows = reporting.rows(settings, task, points)
    return Results(
        rows,
        figures.rendered(reporting.all_figures(rows)),
        files=task.files,
        manifest={
            "complete": config.to_flags(settings.run),
            "tuning": reporting.tuning(points),
            "defense": reporting.accounts(points),
            MILLISECONDS: reporting.times(settings, points),
        },
        tables=[results_table.table(settings, rows, points)],
    )


def _train(run: Config, task: Task, variant: Variant, bars, part) -> list[Point]:
    """All points of a variant: every rate on the first seeds, then the best on all."""
    setup = setup_lib.prepare(run, task, variant)
    seeds = range(len(run.seeds))
    first = seeds[: run.tuning_seeds] if len(run.learning_rates) > 1 else seeds[:0]
    tuned = len(run.learning_rates) * len(first)
    trainer = Trainer(setup, part, len(variant.specs) * max(tuned, len(seeds)))
    bar = bars.add_task(_title(variant), total=len(variant.specs) * _rounds(run))

    def train(pairs, num_rounds) -> dict[tuple[int, Trial], Trained]:
        found = trainer.train(pairs, num_rounds, lambda n: bars.advance(bar, n))
        return dict(zip(pairs, found, strict=True))

    done = train(
        [
            (index, Trial(rate, spec))
            for spec in variant.specs
            for rate in run.learning_rates
            for index in first
        ],
        run.tuning_rounds,
    )
    chosen = [_tuned(run, first, spec, done) for spec in variant.specs]
    if run.tuning_rounds < run.num_rounds:
        done = {}
    pairs = [(index, trial) for trial, _ in chosen for index in seeds]
    done |= train([pair for pair in pairs if pair not in done], run.num_rounds)
    return [
        _point(setup, trial, tried, [done[index, trial] for index in seeds])
        for trial, tried in chosen
    ]


def _rounds(run: Config) -> int:
    """Of all trainings of one point."""
    if len(run.learning_rates) == 1:
        return len(run.seeds) * run.num_rounds
    first = min(run.tuning_seeds, len(run.seeds))
    tuning = first * len(run.learning_rates) * run.tuning_rounds
    reused = first if run.tuning_rounds == run.num_rounds else 0
    return tuning + (len(run.seeds) - reused) * run.num_rounds


def _tuned(run: Config, first, spec, done) -> tuple[Trial, dict[float, float]]:
    """The rate of the highest mean validation accuracy, the smallest if equal."""
    if not first:
        return Trial(run.learning_rates[0], spec), {}
    tried = {
        rate: statistics.fmean(
            float(done[i, Trial(rate, spec)].evaluations.accuracy[-1]) for i in first
        )
        for rate in sorted(run.learning_rates)
    }
    best = max(tried, key=lambda rate: tried[rate])
    return Trial(best, spec), tried


def _point(setup: Setup, trial: Trial, tried, trained) -> Point:
    run, variant, spec = setup.run, setup.variant, trial.spec
    numbers = methods.numbers(run, setup.defended, trial)
    return Point(
        variant,
        trial,
        methods.label(run, variant, spec),
        tried,
        trained,
        methods.statements(run, variant, setup.layers, setup.copies, spec, numbers),
        methods.promises(run, methods.defense(setup.defended, spec, numbers)),
    )


def _warn_of_divergence(run: Config, point: Point) -> None:
    """Gradients that are not finite are of a model whose accuracy says nothing."""
    lost = [
        str(seed)
        for seed, trained in zip(run.seeds, point.trained, strict=True)
        if not np.isfinite(trained.evaluations.gradient_norm[-1])
    ]
    if lost:
        where = " ".join(filter(None, [_title(point.variant), point.label]))
        warnings.warn(
            f"{where}: training diverged with seeds {', '.join(lost)}, and their accuracy is "
            f"that of no model: try smaller --learning_rates than {point.trial.rate:g}",
            stacklevel=2,
        )


def _check(run: Config, task: Task, variants: list[Variant]) -> None:
    """Builds every defense and deals every client before anything is trained."""
    for variant in variants:
        averaging.server(run.divisor, variant.per_round)
        at = methods.setting(run, variant, task.loss_fn, 1)
        for spec in variant.specs:
            trial = Trial(run.learning_rates[0], spec)
            methods.defense(at, spec, methods.numbers(run, at, trial))
    for clients in run.clients:
        clients_lib.deal(task, run, clients, run.seeds[0])


def _rows_per_client(run: Config, task: Task) -> int:
    return len(task.train) if run.partition == "copies" else run.rows_per_client


def describe(prepared: Prepared) -> Iterator[str]:
    """The size of every training."""
    run, task = prepared.settings.run, prepared.task
    yield (
        f"{task.name}: {len(task.train)} rows to train, {len(task.validation)} to tune, "
        f"{len(task.test)} to test, majority {100 * task.majority:.1f} %"
    )
    for variant in prepared.variants:
        count = len(variant.specs)
        steps = variant.per_round * run.local_steps
        yield (
            f"{_title(variant)}: {count} trainings of {_rounds(run)} rounds, over all "
            f"seeds and rates, of {steps} local iterations"
        )


def _title(variant: Variant) -> str:
    return f"{variant.name} {variant.per_round} of {variant.clients}"


PROGRAM = Program(
    name="fed_cdp",
    module=__name__,
    settings=Settings,
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
    errors=(SpecError,),
)

"""Whole rows of a table from one message of a batch, or from those of many rounds.

    python -m experiments.rows --flagfile=experiments/flags/rows.adult.flags
    python -m experiments.rows --data_name=diabetes --hidden=128 --num_rounds=100

Draws batches and sends the gradient of each at a fresh network to the adversary, or what
several local steps have moved, each over the whole batch or over other rows of it, or the
gradients of a client's whole batch in the rounds of a training. Writes how many cells and
whole rows it reads, beside guessing the mean row and beside rows of others. Cells are counted
as by TabLeak (Vero et al. 2023): a category has to be right, a number to lie within 0.319
standard deviations.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from rich.progress import Progress

from experiments.report import COMMAND
from experiments.rows import attacking, batches, reporting, rounds, scores
from experiments.rows.attacking import Guess
from experiments.rows.batches import Batch, Population
from experiments.rows.settings import RunConfig, Settings
from fljax.attacks.rows.matching import Pool
from fljax.attacks.rows.steps import Steps
from fljax.driver.config import ConfigError
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start
from fljax.results import Row

_FIRST = (
    "data_name", "data_dir", "data_path", "data_target", "batch_sizes", "batches", "hidden",
    "seeds", "run_dir", "dry_run",
)  # fmt: skip


class Prepared(NamedTuple):
    """The flags and the table."""

    settings: Settings
    population: Population


class Made(NamedTuple):
    """Rows of results of one size and seed, and the seconds of each attack.

    Attributes:
      rows: of results.
      seconds: of the attack on each batch.
      matching: of gradient matching on each, if it was run.
    """

    rows: list[Row]
    seconds: list[float]
    matching: list[float]


def start(settings: Settings) -> Start:
    """Refuses flags that do not fit one another."""
    run = settings.run
    _refuse(run)

    def prepare() -> Prepared:
        population = batches.load(settings.data, settings.run)
        check = rounds.check if run.num_rounds else batches.check
        check(population, run)
        return Prepared(settings, population)

    return Start(settings.data.name, prepare)


def _refuse(run: RunConfig) -> None:
    if not run.hidden:
        raise ConfigError("--hidden: expected at least one hidden layer, got none")
    if run.step_rows and run.local_steps > 1:
        raise ConfigError(
            "--local_steps: expected to be left out with --step_rows, which tells how many"
        )
    for size in run.batch_sizes if run.step_rows else ():
        if size % run.step_rows or size == run.step_rows:
            raise ConfigError(
                f"--batch_sizes: expected multiples of --step_rows={run.step_rows}, "
                f"at least two steps, got {size}"
            )
    _check_single(run)
    if _one_step(run) and run.learning_rate != RunConfig().learning_rate:
        raise ConfigError(
            "--learning_rate: expected --local_steps, --step_rows or --num_rounds beside "
            "it: a message of one step is a gradient"
        )
    if run.sum_of > run.clients:
        raise ConfigError(
            f"--sum_of: expected at most --clients={run.clients}, got {run.sum_of}"
        )
    for size in run.batch_sizes:
        if size % run.sum_of:
            raise ConfigError(
                f"--batch_sizes: expected multiples of --sum_of={run.sum_of}, got {size}"
            )


def _one_step(run: RunConfig) -> bool:
    return not run.num_rounds and not run.step_rows and run.local_steps == 1


def _check_single(run: RunConfig) -> None:
    """Of messages of one step alone: networks other than ReLU's, gradient matching."""
    if _one_step(run):
        return
    usual = RunConfig()
    for name in ("activation", "norm", "matching"):
        if getattr(run, name) != getattr(usual, name):
            raise ConfigError(
                f"--{name}: expected messages of one step, without --local_steps, "
                "--step_rows and --num_rounds"
            )


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Attacks every batch."""
    (_, run), population = prepared
    cache = output.cache(population.table.files)
    bar = bars.add_task("batches", total=len(run.batch_sizes) * len(run.seeds))
    rows: list[Row] = []
    spent: dict[str, reporting.Spent] = {}
    for size in run.batch_sizes:
        seconds: dict[str, list[float]] = {}
        for seed in run.seeds:

            def compute(size=size, seed=seed) -> Made:
                with output.stage(f"batch_{size}"):
                    return _of_seed(run, population, size, seed)

            made = cache.cached(f"{size}.{seed}", compute, Made, Row)
            rows += made.rows
            seconds.setdefault(reporting.ATTACK, []).extend(made.seconds)
            if made.matching:
                seconds.setdefault(reporting.MATCHING, []).extend(made.matching)
            bars.advance(bar)
        spent[str(size)] = {
            attack: {"median": float(np.median(each)), "most": max(each)}
            for attack, each in seconds.items()
        }
    return Results(
        rows,
        files=population.table.files,
        manifest={"seconds_of_a_batch": spent},
        tables=reporting.tables(rows, spent),
    )


def _of_seed(run: RunConfig, population: Population, size: int, seed: int) -> Made:
    schema, told, seconds, matching = population.known.schema, [], [], []
    none, unknown = np.zeros((0, len(schema.scale))), np.full(size, np.nan)
    for number in range(run.batches):
        batch, guess = _attacked(run, population, size, number, seed)
        others = batches.strangers(population, size, number, seed)

        def score(raw, y, batch=batch) -> scores.Score:
            return scores.score(schema, raw, y, batch, run.tolerance)

        matched = None
        if run.matching:
            pooled = _matched(run, population, batch, number, seed)
            matched = score(pooled.found.raw, pooled.found.y)
            matching.append(pooled.seconds)
        told.append(
            reporting.BatchScores(
                read=score(guess.found.raw, guess.found.y),
                proven=guess.found.exact,
                mean=score(none, none[:, 0]),
                others=score(others, unknown),
                matched=matched,
            )
        )
        seconds.append(guess.seconds)
    labels = reporting.labels(population.table.name)
    return Made(reporting.rows(labels, told, size, seed), seconds, matching)


def _attacked(
    run: RunConfig, population: Population, size: int, number: int, seed: int
) -> tuple[Batch, Guess]:
    """A batch, and what is read of it."""
    if run.num_rounds:
        every = rounds.draw(population, run, size, number, seed)
        seen = rounds.messages(population, run, every, number, seed)
        guess = attacking.over_rounds(population.known, seen, run.searches)
        return Batch(every.raw[:size], every.y[:size]), guess
    batch = batches.draw(population, size, number, seed)
    seen = batches.one_message(population, batch, number, seed, _steps(run, size))
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(seen.message)):
        raise ConfigError(
            f"--learning_rate: a client's steps diverge with {run.learning_rate:g}"
        )
    return batch, attacking.attack(population.known, seen, run.combinations)


def _matched(
    run: RunConfig, population: Population, batch: Batch, number: int, seed: int
) -> Guess:
    """What gradient matching, to which the targets are told, reads of the same message."""
    seen = batches.one_message(population, batch, number, seed)
    pool = Pool(run.matching, run.matching_iterations)
    return attacking.match(population.known, seen, batch.y, pool)


def _steps(run: RunConfig, size: int) -> Steps:
    count = size // run.step_rows if run.step_rows else run.local_steps
    return Steps(count, run.learning_rate, run.step_rows)


def describe(prepared: Prepared) -> Iterator[str]:
    """Sizes."""
    (_, run), population = prepared
    schema = population.known.schema
    yield (
        f"{len(population.raw)} rows of {len(schema.scale)} inputs: "
        f"{len(schema.groups)} groups of categories and {len(schema.numbers)} numbers"
    )
    if run.num_rounds:
        yield f"{run.num_rounds} rounds of {run.clients} clients"
    for size in run.batch_sizes:
        yield f"{len(run.seeds)} x {run.batches} batches of {size} rows"


PROGRAM = Program(
    name=reporting.EXPERIMENT,
    module=__name__,
    settings=Settings,
    first=_FIRST,
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
)

"""Which rows were there? Membership inference, by observer and defense.

    python -m experiments.membership --flagfile=experiments/flags/membership.diabetes.flags

Trains one federation many times, each time on a random half of every client's pool of
rows, attacks every training with the others as shadows, and writes areas under the ROC
curve and the members found at a false positive rate of 0.001.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from rich.progress import Progress
from rich.text import Text

from experiments import defense_options
from experiments.membership import attacking, coins, reporting, scores, trainings, wall
from experiments.membership.coins import Pool
from experiments.membership.settings import Settings
from experiments.report import COMMAND
from experiments.tabular import clients, federation
from fljax import data
from fljax.defenses.parts import SpecError
from fljax.defenses.specs import Spec
from fljax.driver.config import ConfigError
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start
from fljax.results import Row

_FIRST = (
    "data_name", "data_path", "data_target", "partition_kind", "partition_clients",
    "model_hidden", "learning_rate", "batch_size", "num_rounds", "defenses", "trainings",
    "pool", "observers", "seeds", "run_dir", "dry_run",
)  # fmt: skip


class OfSeed(NamedTuple):
    """What came of the trainings of a seed: rows, and what the manifest says."""

    rows: list[Row]
    promised: dict[str, dict[str, Any]]


class Prepared(NamedTuple):
    """The flags, the defenses they name, and the pools of every seed."""

    settings: Settings
    grid: tuple[Spec, ...]
    table: data.Table
    pools: list[Pool]


def start(settings: Settings) -> Start:
    """Reads the table.

    Raises:
      ConfigError: for flags that do not fit.
    """
    train = settings.train
    for flag, value, expected in (
        ("participation", train.participation, "all"),
        ("client_optimiser", train.client_optimiser, "sgd"),
        ("server_optimiser", train.server_optimiser, "sgd"),
    ):
        if value != expected:
            raise ConfigError(f"--{flag}: expected {expected}, got {value}")
    if settings.run.trainings % 2:
        raise ConfigError(
            f"--trainings: expected an even number, got {settings.run.trainings}"
        )
    grid = defense_options.parse_all(settings.run.defenses, "--defenses")
    for spec in grid:
        defense_options.warn_of_unknown(spec, "--defenses")
    table = clients.load_table(settings.data)
    name = f"{table.name}.{settings.model.name}"
    return Start(name, lambda: prepare(settings, grid, table))


def prepare(settings: Settings, grid: tuple[Spec, ...], table: data.Table) -> Prepared:
    """Deals the pools of every seed."""
    told = table, settings.data, settings.model, settings.partition
    pools = [
        coins.pool(clients.deal(*told, (seed,)).clients, settings.run.pool, seed)
        for seed in settings.run.seeds
    ]
    return Prepared(settings, grid, table, pools)


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Trains and attacks under every defense, seed by seed."""
    settings, grid, table, pools = prepared
    cache = output.cache(table.files)
    bar = bars.add_task("trainings", total=len(grid) * len(pools))
    rows, promised, failed = [], {}, {}
    for number, spec in enumerate(grid):
        for seed, pool in zip(settings.run.seeds, pools, strict=True):

            def compute(spec=spec, seed=seed, pool=pool) -> OfSeed:
                with output.stage(str(spec)):
                    return _of_seed(settings, spec, table, pool, seed)

            try:
                found = cache.cached(f"{number}.{seed}", compute, OfSeed, Row)
                rows, promised = rows + found.rows, promised | found.promised
            except federation.Diverged as error:
                failed[str(spec)] = str(error)
            bars.advance(bar)
    rows = [row for row in rows if row.defense not in failed]
    if not rows:
        raise federation.Diverged(next(iter(failed.values())))
    return Results(
        rows,
        files=table.files,
        manifest={"diverged": failed, "defense": promised},
        tables=[
            *reporting.tables(rows),
            *(Text(f"{name}: {why}") for name, why in failed.items()),
        ],
    )


def describe(prepared: Prepared) -> Iterator[str]:
    """Sizes."""
    settings, grid, _, pools = prepared
    count = len(grid) * len(pools) * settings.run.trainings
    yield f"{count} trainings of {settings.train.num_rounds} rounds"
    for seed, pool in zip(settings.run.seeds, pools, strict=True):
        yield f"seed {seed}: pools of {pool.sizes}, population {len(pool.population.y)}"


def _of_seed(settings: Settings, spec, table, pool: Pool, seed: int) -> OfSeed:
    there = coins.draw(pool, settings.run.trainings, seed)
    trained = trainings.train(settings, spec, pool, there, seed)
    found: dict[tuple[str, str], np.ndarray] = {}
    for observer in settings.run.observers:
        for places, scored in _scored(observer, settings, spec, trained, pool, there):
            for name, values in scored.items():
                whole = found.setdefault((name, observer), np.zeros(there.shape))
                whole[:, places] = values
    rates = {at: scores.rates(values, there) for at, values in found.items()}
    labels = reporting.labels(settings, table, spec)
    rows = [
        *reporting.described(labels, settings, trained, table, pool, there, seed),
        *reporting.rows(labels, rates, seed, there.size),
    ]
    promises = reporting.promises(settings, trained)
    return OfSeed(rows, defense_options.promised(spec, promises))


def _scored(
    observer: str, settings: Settings, spec, trained, pool: Pool, there: np.ndarray
) -> Iterator[tuple[slice, dict[str, np.ndarray]]]:
    """Places of candidates, and the scores of every attack of this observer."""
    if observer in ("messages", "final"):
        classes = pool.dataset.table.task != "regression"
        for places, given in wall.guesses(observer, trained, pool, there):
            yield places, attacking.by_losses(given, classes=classes)
    if observer != "final":
        share = float(np.mean(pool.sizes // 2 / pool.sizes))
        for seen in wall.observed(observer, settings, spec, trained, pool):
            loss_fn = trained.problem.loss_fn
            yield seen.places, attacking.by_gradients(seen, loss_fn, share)


PROGRAM = Program(
    name="membership",
    module=__name__,
    settings=Settings,
    first=_FIRST,
    unprefixed=("train", "run"),
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
    errors=(federation.Diverged, SpecError),
)

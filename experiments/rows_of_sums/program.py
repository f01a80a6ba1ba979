"""Rows of clients behind the sums that secure aggregation gives out.

    python -m experiments.rows_of_sums
    python -m experiments.rows_of_sums \\
        --flagfile=experiments/flags/rows_of_sums.cifar10.flags

Trains federations of clients with few rows, keeps the mean update of every round, and
writes how many rows two attacks find in these means: what the spans of several rounds
have in common, and the neurons that one row alone has switched on (SRATTA). Then, how
many of the pairs of rows that one client has are told from the same means.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from rich.progress import Progress

from experiments.report import COMMAND
from experiments.rows_of_sums import federation, reporting, scores
from experiments.rows_of_sums.settings import Order, RunConfig, Settings
from fljax import data
from fljax.attacks.rows import clients, exclusive, sums
from fljax.attacks.rows.clients import Round
from fljax.driver.image_flags import load_images
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start
from fljax.results import Labels, Row

_ATTACKS = {
    reporting.COMMON: sums.recover,
    reporting.EXCLUSIVE: exclusive.recover,
}


class Prepared(NamedTuple):
    """The flags and the images."""

    settings: Settings
    images: data.Images


def start(settings: Settings) -> Start:
    """Reads no more than the flags."""
    return Start(
        settings.data.name, lambda: Prepared(settings, load_images(settings.data))
    )


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Trains and attacks, seed by seed."""
    (_, run), images = prepared
    cache = output.cache(images.files)
    bar = bars.add_task("trainings", total=len(run.orders) * len(run.seeds))
    rows: list[Row] = []
    for order in run.orders:
        for seed in run.seeds:

            def compute(order=order, seed=seed) -> list[Row]:
                with output.stage(order):
                    return _of_seed(run, images, order, seed)

            rows += cache.cached(f"{order}.{seed}", compute, Row)
            bars.advance(bar)
    return Results(rows, files=images.files, tables=reporting.tables(rows))


def _of_seed(run: RunConfig, images: data.Images, order: Order, seed: int) -> list[Row]:
    owned = federation.draw(images, run, seed)
    truth = scores.Truth(np.round(owned.x * owned.white), run.rows)
    labels = Labels(reporting.EXPERIMENT, images.name, f"mlp{run.hidden}")
    seen: list[Round] = []
    rows = []
    for number in range(max(run.trainings)):
        seen += federation.rounds(owned, run, order, seed, number)
        if number + 1 in run.trainings:
            setting, count = f"{order}_{number + 1}", len(owned.x)
            for name, answer in _answers(seen, owned).items():
                values = scores.score(answer, truth)
                rows += reporting.rows(labels, name, setting, seed, values, count)
    return rows


def _answers(seen: list[Round], owned: federation.Owned) -> dict[str, scores.Answer]:
    """Of each attack, and, as the floor of the V-measure, of one that finds nothing."""
    answers = {}
    for name, attack in _ATTACKS.items():
        found = attack(seen, owned.white)
        groups = clients.group(seen, np.float32(found) / np.float32(owned.white))
        answers[name] = scores.Answer(found, groups)
    nothing = scores.Answer(np.zeros((0, owned.x.shape[1])), np.zeros(0, int))
    return answers | {reporting.NOTHING: nothing}


def describe(prepared: Prepared) -> Iterator[str]:
    """Sizes."""
    (_, run), images = prepared
    inputs = int(np.prod(images.train.x.shape[1:]))
    yield f"{run.clients} clients of {run.rows} rows with {inputs} inputs"
    yield f"{max(run.trainings)} trainings of {run.num_rounds} rounds for each seed"


PROGRAM = Program(
    name=reporting.EXPERIMENT,
    module=__name__,
    settings=Settings,
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
)

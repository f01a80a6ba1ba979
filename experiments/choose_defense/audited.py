"""What an adversary demonstrably has of a defense (`fljax.privacy.audits`)."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np

from experiments.aia.setup import Setup
from experiments.choose_defense import candidates
from experiments.tabular.problem import Defended, Problem
from fljax import losses, privacy
from fljax.federation import FedAvg, Tables
from fljax.privacy.audits import Audit, Canary
from fljax.results import Labels, Row


def rows(setup: Setup, trainings: int, progress: Callable[[int], None]) -> list[Row]:
    """Lower bounds of a defense's epsilon, a row for each observer; as `of`."""
    found = of(setup, trainings, progress)
    name, model = setup.table.name, setup.config.model.name
    spec = setup.label.partition("=")[2]
    labels, seed = Labels("aia", name, model, spec, setup.label), _seed(setup)
    return [
        labels.row("audit", observer, seed, candidates.AUDITED, each.epsilon, trainings)
        for observer, each in found.audited.items()
    ]


def of(setup: Setup, trainings: int, progress: Callable[[int], None]) -> Audit:
    """Audits the training of the first seed with a gradient canary.

    Args:
      setup: of the defense.
      trainings: number of them, half with the canary.
      progress: called with the number of trainings done.

    Raises:
      ValueError: for a training that cannot be audited.
    """
    problem = setup.problem
    numbers = jax.tree.map(lambda leaf: leaf[0], problem.trainings.numbers)
    seed = _seed(setup)
    tables = _first(problem.tables)
    planted = privacy.plant(
        _method_of(problem), problem.method.loss_fn, tables, Canary(), seed=seed
    )
    return privacy.audit(
        planted,
        trainings=trainings,
        delta=setup.config.defense.delta,
        numbers=numbers,
        seed=seed,
        progress=progress,
    )


def _seed(setup: Setup) -> int:
    return setup.config.run.seeds[0]


def _method_of(problem: Problem) -> Callable[[losses.LossFn], FedAvg]:
    """The training with another loss, whose gradients the defense then clips."""
    assert problem.bound_defense is not None
    builder = problem.bound_defense.builder

    def method(loss_fn: losses.LossFn) -> FedAvg:
        setting = builder.setting._replace(loss_fn=loss_fn)
        bound = Defended(builder._replace(setting=setting))
        return dataclasses.replace(problem.method, loss_fn=loss_fn, defense=bound)

    return method


def _first(tables: Tables) -> Tables:
    """Rows and schedule of the first seed."""
    rows, schedule = jax.tree.map(lambda leaf: np.asarray(leaf)[:1], tables[:2])
    shared = tables.schedule.end_steps  # by all seeds
    return Tables(rows, dataclasses.replace(schedule, end_steps=shared))

"""What an adversary demonstrably has of the recommended defense (`fljax.privacy.audits`)."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np

from experiments.aia.problem import Defended, Problem
from experiments.aia.setup import Setup
from fljax import losses, privacy
from fljax.federation import FedAvg, Tables
from fljax.privacy.audits import Audit, Canary


def of(setup: Setup, trainings: int, progress: Callable[[int], None]) -> Audit:
    """Audits the training of the first seed with a gradient canary.

    Args:
      setup: of the recommended defense.
      trainings: number of them, half with the canary.
      progress: called with the number of trainings done.

    Raises:
      ValueError: for a training that cannot be audited.
    """
    problem = setup.problem
    numbers = jax.tree.map(lambda leaf: leaf[0], problem.trainings.numbers)
    seed = setup.config.run.seeds[0]
    tables = _first(problem.tables)
    planted = privacy.plant(
        _method_of(problem), problem.loss_fn, tables, Canary(), seed=seed
    )
    return privacy.audit(
        planted,
        trainings=trainings,
        delta=setup.config.defense.delta,
        numbers=numbers,
        seed=seed,
        progress=progress,
    )


def _method_of(problem: Problem) -> Callable[[losses.LossFn], FedAvg]:
    """The training with another loss, whose gradients the defense then clips."""
    assert problem.shield is not None
    builder = problem.shield.builder

    def method(loss_fn: losses.LossFn) -> FedAvg:
        setting = builder.setting._replace(loss_fn=loss_fn)
        shield = Defended(builder._replace(setting=setting))
        return dataclasses.replace(problem.method, loss_fn=loss_fn, defense=shield)

    return method


def _first(tables: Tables) -> Tables:
    """Rows and schedule of the first seed."""
    rows, schedule = jax.tree.map(lambda leaf: np.asarray(leaf)[:1], tables[:2])
    shared = tables.schedule.end_steps  # by all seeds
    return Tables(rows, dataclasses.replace(schedule, end_steps=shared))

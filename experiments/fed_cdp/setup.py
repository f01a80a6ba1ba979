"""One variant of a Fed-CDP federation, ready to be trained: its rows and tables.

Everything that a compiled program reads is handed to it, nothing is baked in.
"""

from typing import NamedTuple

import jax
import numpy as np

from experiments.fed_cdp import clients as clients_lib
from experiments.fed_cdp.clients import Task
from experiments.fed_cdp.methods import Variant, setting
from experiments.fed_cdp.settings import Config
from fljax import participation, stacking
from fljax import schedule as schedule_lib
from fljax.defenses import clipping
from fljax.defenses.definition import Setting
from fljax.federation import Tables
from fljax.types import Array, PyTree, Rows


class Pool(NamedTuple):
    """What rows point into, and the rows that models are measured on.

    Attributes:
      x: inputs of all rows, leaves `[N, ...]`.
      labels: `[N]` int32.
      validation: positions that choose the learning rate.
      test: positions that the accuracy is reported on.
      probe: `[clients, B]` positions in `Tables.rows` of each client's first batch.
    """

    x: PyTree
    labels: Array
    validation: Array
    test: Array
    probe: Array


class Setup(NamedTuple):
    """A variant, ready to be trained.

    Attributes:
      run: the flags.
      task: the data and the model.
      variant: the defense and its federation.
      defended: the training, as a defense sees it.
      tables: what the trainings read; the pool is a `Pool`.
      layers: arrays of parameters, M.
      copies: clients that hold one and the same row, the most of any row and seed.
    """

    run: Config
    task: Task
    variant: Variant
    defended: Setting
    tables: Tables
    layers: int
    copies: int


def prepare(run: Config, task: Task, variant: Variant) -> Setup:
    """Deals the rows of every seed and says who trains when."""
    schedules, dealt = [], []
    for seed in run.seeds:
        owned, size = clients_lib.deal(task, run, variant.clients, seed)
        dealt.append(owned)
        schedules.append(_schedule(run, variant, size, seed))
    params = jax.eval_shape(task.model.init, jax.random.key(0))
    clients = min(variant.clients, run.probed)
    first = np.arange(clients)[:, None] * variant.rows + np.arange(run.batch_size)
    measured = (np.asarray(part, np.int32) for part in (task.validation, task.test))
    tables = Tables(
        Rows(*map(np.stack, zip(*dealt, strict=True))),
        stacking.stack(schedules)[0],
        Pool(task.pool, task.labels, *measured, first.astype(np.int32)),
    )
    copies = min(max(np.bincount(rows.x).max() for rows in dealt), variant.clients)
    layers = clipping.num_layers(params)
    defended = setting(run, variant, task.loss_fn, layers)
    return Setup(run, task, variant, defended, tables, layers, int(copies))


def _schedule(run: Config, variant: Variant, size: int, seed: int):
    rng = np.random.default_rng([seed, 2])
    draw = {"fixed": participation.uniform, "poisson": participation.poisson}
    fraction = variant.percent / 100
    chosen = draw[run.participation](rng, variant.clients, run.num_rounds, fraction)
    return schedule_lib.build(
        [size] * variant.clients,
        num_rounds=run.num_rounds,
        batch_size=run.batch_size,
        participants=chosen,
        steps=run.local_steps,
        lanes=run.lanes and min(run.lanes, variant.per_round),
        weights="uniform",
        shuffle=False,
        poisson=variant.poisson(run),
        record_rounds=[],
        record_clients=[],
    )

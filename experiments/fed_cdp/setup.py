"""One variant of a Fed-CDP federation, ready to be trained: its rows and tables.

Everything that a compiled program reads is handed to it, nothing is baked in.
"""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np

from experiments.fed_cdp import clients as clients_lib
from experiments.fed_cdp.clients import Task
from experiments.fed_cdp.methods import Numbers, Variant, setting
from experiments.fed_cdp.settings import Config
from fljax import participation, stacking
from fljax import schedule as schedule_lib
from fljax.defenses import clipping
from fljax.defenses.definition import Setting
from fljax.types import Array, Params, PyTree, Rows


class Counted(NamedTuple):
    """What travels between server and clients.

    Attributes:
      params: the model.
      dropped: [] float, examples whose gradient was not finite and was left out, per
        participant, summed over rounds.
    """

    params: Params
    dropped: Array


class Item(NamedTuple):
    """One training.

    Attributes:
      index: [] int32, position of its seed.
      seed: [] uint32.
      numbers: its hyper-parameters.
    """

    index: Array
    seed: Array
    numbers: Numbers


class Shared(NamedTuple):
    """What all trainings of a variant read.

    Attributes:
      pool: inputs of all rows.
      rows: `[seeds, N]` positions and labels.
      schedule: tables `[seeds, ...]`, the end_steps included.
      probe: `[seeds, clients, B]` positions in `rows` of each client's first batch.
    """

    pool: Params
    rows: Rows
    schedule: schedule_lib.Schedule
    probe: Array


class Setup(NamedTuple):
    """A variant, ready to be trained.

    Attributes:
      run: the flags.
      task: the data and the model.
      variant: the defense and its federation.
      defended: the training, as a defense sees it.
      shared: what the compiled programs read.
      layers: arrays of parameters, M.
      copies: clients that hold one and the same row, the most of any row and seed.
    """

    run: Config
    task: Task
    variant: Variant
    defended: Setting
    shared: Shared
    layers: int
    copies: int


def prepare(run: Config, task: Task, variant: Variant) -> Setup:
    """Deals the rows of every seed and says who trains when."""
    schedules, dealt = [], []
    for seed in run.seeds:
        owned, size = clients_lib.deal(task, run, variant.clients, seed)
        dealt.append(owned)
        schedules.append(_schedule(run, variant, size, seed))
    joined, _ = stacking.stack(schedules)
    end_steps = np.tile(joined.end_steps, (len(run.seeds), 1))
    params = jax.eval_shape(task.model.init, jax.random.key(0))
    clients = min(variant.clients, run.probed)
    first = np.arange(clients)[:, None] * variant.rows + np.arange(run.batch_size)
    shared = Shared(
        task.pool,
        Rows(*map(np.stack, zip(*dealt, strict=True))),
        dataclasses.replace(joined, end_steps=end_steps),
        np.tile(first.astype(np.int32), (len(run.seeds), 1, 1)),
    )
    copies = min(max(np.bincount(rows.x).max() for rows in dealt), variant.clients)
    layers = clipping.num_layers(params)
    defended = setting(run, variant, task.loss_fn, layers)
    return Setup(run, task, variant, defended, shared, layers, int(copies))


def of_seed(stacked: PyTree, index: Array) -> PyTree:
    """The part of one seed."""
    return jax.tree.map(lambda leaf: leaf[index], stacked)


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
        lanes=min(run.lanes, variant.per_round),
        weights="uniform",
        shuffle=False,
        poisson=variant.poisson(run),
        record_rounds=[],
        record_clients=[],
    )

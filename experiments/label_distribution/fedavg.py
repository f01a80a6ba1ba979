"""FedAvg under a defense: what it costs, and the models that later rounds send.

K clients of uniformly drawn rows of the training images (`partition.resampled`), a fraction C
of them in a round, averaged with equal weights (Figure 6, left, of Rajani et al. 2023).
All trials of a defense are one compiled program whose scale is an input.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.label_distribution import defended
from experiments.label_distribution.settings import Config
from experiments.label_distribution.task import Task
from fljax import parallel, participation, partition, rounds, stacking
from fljax import schedule as schedule_lib
from fljax.attacks.label_distribution.shadow_clients import Pool
from fljax.defenses import specs
from fljax.defenses.specs import Spec
from fljax.types import Array, Params, PyTree, Rows


class Item(NamedTuple):
    """One training: which trial, of which seed, with which numbers of the defense."""

    index: Array
    seed: Array
    numbers: specs.Numbers


class Shared(NamedTuple):
    """What all trainings read.

    Attributes:
      x: images of the pool.
      y: their labels.
      rows: `[trials, N]` positions in the pool and labels.
      schedule: tables `[trials, ...]`, the end_steps included.
    """

    x: PyTree
    y: Array
    rows: Rows
    schedule: schedule_lib.Schedule


class Curve(NamedTuple):
    """Test accuracy in percent of one trial, `[looks]`, after so many rounds."""

    rounds: tuple[int, ...]
    accuracy: np.ndarray


class Federation:
    """The federation of a configuration; programs are compiled once per defense."""

    def __init__(
        self, run: Config, task: Task, test: Pool, num_rounds: int, trials: int
    ):
        self._run, self._task, self._trials = run, task, trials
        self._over = parallel.mesh()
        self._shared = parallel.place(
            _shared(run, task, num_rounds, trials), self._over
        )
        self._test = parallel.place((test.x, test.y), self._over)
        self._last = num_rounds
        self._programs: dict[tuple, tuple[Callable, ...]] = {}

    def curves(self, spec: Spec, progress: Callable[[int], None]) -> list[Curve]:
        """Accuracy by round of every trial.

        Args:
          spec: the defense.
          progress: called with the number of rounds done since the last call.
        """
        begin, advance, look = self._compiled(spec)
        items = self._items(spec)
        positions = _eval_positions(self._run, len(self._test[1]))
        state = begin(items, self._shared)
        stops = (*range(0, self._last, self._run.eval_every), self._last)
        found = []
        for before, stop in itertools.pairwise((0, *stops)):
            if stop > before:
                state = advance((items, state), (self._shared, np.int32(stop)))
            params = state.server.params
            found.append(jax.device_get(look(params, (*self._test, positions))))
            progress((stop - before) * self._trials)
        accuracy = 100 * np.stack(found, axis=1)
        return [Curve(stops, each) for each in accuracy]

    def models(self, spec: Spec) -> list[Params]:
        """The model after the last round of every trial."""
        begin, advance, _ = self._compiled(spec)
        items = self._items(spec)
        state = begin(items, self._shared)
        state = advance((items, state), (self._shared, np.int32(self._last)))
        params = jax.device_get(state.server.params)
        return [
            jax.tree.map(lambda leaf, i=i: leaf[i], params) for i in range(self._trials)
        ]

    def _items(self, spec: Spec) -> Item:
        index = np.arange(self._trials, dtype=np.int32)
        seeds = np.resize(np.array(self._run.seeds, np.uint32), self._trials)
        numbers = jax.tree.map(
            lambda value: np.full(self._trials, value, np.float32),
            defended.numbers(self._run, self._task, spec),
        )
        return Item(index, seeds, numbers)

    def _compiled(self, spec: Spec) -> tuple[Callable, ...]:
        name = specs.structure(spec)
        if name not in self._programs:
            advance = functools.partial(_advance, self._run, self._task, spec)
            self._programs[name] = tuple(
                jax.jit(functools.partial(parallel.map_items, fun, over=self._over))
                for fun in (
                    functools.partial(_begin, self._task),
                    advance,
                    functools.partial(_accuracy, self._task),
                )
            )
        return self._programs[name]


def _shared(run: Config, task: Task, num_rounds: int, trials: int) -> Shared:
    plans, dealt = [], []
    pool = len(task.proxy.y)
    for trial in range(trials):
        rng = np.random.default_rng([run.seeds[trial % len(run.seeds)], trial])
        parts = partition.resampled(rng, pool, run.clients, run.rows_per_client)
        dealt.append(np.concatenate(parts).astype(np.int32))
        chosen = participation.uniform(rng, run.clients, num_rounds, run.percent / 100)
        plans.append(
            schedule_lib.build(
                [run.rows_per_client] * run.clients,
                num_rounds=num_rounds,
                batch_size=run.batch_size,
                participants=chosen,
                epochs=run.local_epochs,
                lanes=1,
                weights="uniform",
                record_rounds=[],
                record_clients=[],
            )
        )
    joined, _ = stacking.stack(plans)
    positions = np.stack(dealt)
    return Shared(
        task.proxy.x,
        task.proxy.y,
        Rows(positions, task.proxy.y[positions]),
        dataclasses.replace(joined, end_steps=np.tile(joined.end_steps, (trials, 1))),
    )


def _eval_positions(run: Config, count: int) -> np.ndarray:
    """Test rows in random order, for the pool is sorted by label; the first of them."""
    order = np.random.default_rng(0).permutation(count)
    return order[: run.eval_rows].astype(np.int32)


def _of(stacked: PyTree, index: Array) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[index], stacked)


def _begin(task: Task, item: Item, shared: Shared) -> rounds.Run:
    key = jax.random.fold_in(jax.random.key(item.seed), 0)
    params = task.model.init(jax.random.fold_in(key, item.index))
    return rounds.start(params, _of(shared.schedule, item.index), optax.sgd(1.0))


def _advance(
    run: Config, task: Task, spec: Spec, item_state, shared_stop
) -> rounds.Run:
    (item, state), (shared, stop) = item_state, shared_stop

    def look_up(positions):
        return task.look_up(shared.x[positions])

    built = defended.defense(run, task, spec, item.numbers)
    key = jax.random.fold_in(jax.random.key(item.seed), 1)
    return rounds.advance(
        jax.random.fold_in(key, item.index),
        state,
        _of(shared.rows, item.index),
        _of(shared.schedule, item.index),
        stop,
        local=defended.local_update(run, task, spec, item.numbers, look_up),
        server_optimiser=optax.sgd(1.0),
        receive=built.receive,
    )


def _accuracy(task: Task, params: Params, own) -> jax.Array:
    """Share of test rows whose label is named; a model that is not finite names none."""
    x, y, positions = own

    def right(position):
        outputs = task.model.apply(params, task.look_up(x[position]))
        return jnp.isfinite(outputs).all() & (jnp.argmax(outputs) == y[position])

    return jnp.mean(jax.lax.map(right, positions, batch_size=100))

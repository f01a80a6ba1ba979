"""FedAvg under a defense: what it costs, and the models that later rounds send.

K clients of uniformly drawn rows of the training images (`partition.resampled`), a fraction C
of them in a round, averaged with equal weights (Figure 6, left, of Rajani et al. 2023).
All trials of a defense are one compiled program whose numbers are inputs.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.label_distribution import defended
from experiments.label_distribution.settings import Config
from experiments.label_distribution.task import Task
from fljax import federation, participation, partition, schedule
from fljax.attacks.label_distribution.shadow_clients import Pool
from fljax.defenses import specs
from fljax.defenses.specs import Spec
from fljax.federation import FedAvg, Federation, States, Tables, Training
from fljax.types import Array, Model, Params, PyTree, Rows


class Curve(NamedTuple):
    """Test accuracy in percent of one trial, `[evaluations]`, after so many rounds."""

    rounds: tuple[int, ...]
    accuracy: np.ndarray


class Inputs(NamedTuple):
    """What the trainings' rows point into, and the rows that models are measured on.

    Attributes:
      x: images of the pool.
      test: `(images, labels)` of test rows.
      positions: of those that are looked at.
    """

    x: PyTree
    test: tuple[PyTree, Array]
    positions: Array


class Trainings:
    """The federation of a configuration; programs are compiled once per defense."""

    def __init__(
        self, run: Config, task: Task, test: Pool, num_rounds: int, trials: int
    ):
        self._run, self._task, self._trials = run, task, trials
        positions = _eval_positions(run, len(test.y))
        inputs = Inputs(task.proxy.x, (test.x, test.y), positions)
        self._tables = _tables(run, task, num_rounds, trials, inputs)
        self._last = num_rounds
        self._methods: dict[tuple, FedAvg] = {}

    def curves(
        self,
        spec: Spec,
        progress: Callable[[int], None],
        states: States | None = None,
    ) -> list[Curve]:
        """Accuracy by round of every trial.

        Args:
          spec: the defense.
          progress: called with the number of rounds done since the last call.
          states: where an earlier call left its state, and this one does.
        """
        done = 0

        def report(stop, _):
            nonlocal done
            progress((stop - done) * self._trials)
            done = stop

        stops = (*range(0, self._last, self._run.eval_every), self._last)
        found = federation.train(
            *self._of(spec),
            stops=stops,
            evaluate=_Accuracy(self._task.model, self._task.look_up),
            progress=report,
            states=states,
        )
        return [Curve(stops, each) for each in 100 * found.evaluations.T]

    def models(self, spec: Spec) -> list[Params]:
        """The model after the last round of every trial."""
        params = federation.train(*self._of(spec)).run.server.params
        return [
            jax.tree.map(lambda leaf, i=i: leaf[i], params) for i in range(self._trials)
        ]

    def _of(self, spec: Spec) -> tuple[Federation, Training]:
        run, task = self._run, self._task
        name = specs.structure(spec)
        if name not in self._methods:
            self._methods[name] = FedAvg(
                model=task.model,
                loss_fn=task.loss_fn,
                optimiser=lambda _: defended.optimiser(run),
                defense=lambda settings: defended.defense(run, task, spec, settings),
                prepare=lambda inputs, positions: task.look_up(inputs.x[positions]),
            )
        index = np.arange(self._trials, dtype=np.int32)
        seeds = np.resize(np.array(run.seeds, np.uint32), self._trials)
        numbers = jax.tree.map(
            lambda value: np.full(self._trials, value, np.float32),
            defended.numbers(run, task, spec),
        )
        training = Training(index, index, seeds, index, numbers)
        return Federation(self._methods[name], self._tables), training


def _tables(run: Config, task: Task, num_rounds, trials, inputs: Inputs) -> Tables:
    chosen, dealt = [], []
    for trial in range(trials):
        rng = np.random.default_rng([run.seeds[trial % len(run.seeds)], trial])
        count = len(task.proxy.y)
        parts = partition.resampled(rng, count, run.clients, run.rows_per_client)
        positions = [part.astype(np.int32) for part in parts]
        dealt.append([Rows(each, task.proxy.y[each]) for each in positions])
        share = run.percent / 100
        chosen.append(participation.uniform(rng, run.clients, num_rounds, share))

    def plan(trial, sizes):
        return schedule.build(
            sizes,
            num_rounds=num_rounds,
            batch_size=run.batch_size,
            participants=chosen[trial],
            epochs=run.local_epochs,
            lanes=1,
            weights="uniform",
            record_rounds=[],
            record_clients=[],
        )

    return federation.tables(dealt, plan, inputs)


def _eval_positions(run: Config, count: int) -> np.ndarray:
    """Test rows in random order, for the pool is sorted by label; the first of them."""
    order = np.random.default_rng(0).permutation(count)
    return order[: run.eval_rows].astype(np.int32)


class _Accuracy(NamedTuple):
    """Share of test rows whose label is named; a model that is not finite names none."""

    model: Model
    look_up: Callable[[jax.Array], PyTree]

    def __call__(self, run, training, tables: Tables) -> jax.Array:
        del training
        (x, y), params = tables.pool.test, run.server.params

        def right(position):
            outputs = self.model.apply(params, self.look_up(x[position]))
            return jnp.isfinite(outputs).all() & (jnp.argmax(outputs) == y[position])

        positions = tables.pool.positions
        return jnp.mean(jax.lax.map(right, positions, batch_size=100))

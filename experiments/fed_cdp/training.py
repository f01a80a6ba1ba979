"""The compiled trainings of one variant, and what is measured of its models.

Two programs are compiled for a variant: `advance` trains up to a round, `evaluate`
measures the model. Learning rate, clip, sigma and seed are their inputs, so that a whole sweep
runs in them, as many trainings side by side as there are devices. A model lives with its
count of dropped examples, which travels as an average over clients, as the model does.
"""

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.fed_cdp import clients, evaluation, methods
from experiments.fed_cdp.evaluation import Evaluation
from experiments.fed_cdp.methods import Trial
from experiments.fed_cdp.setup import Counted, Item, Setup, Shared, of_seed
from fljax import local as local_lib
from fljax import parallel, rounds
from fljax.defenses import clipping
from fljax.driver.stage_cache import StageCache
from fljax.types import Defense


class Trained(NamedTuple):
    """What a training showed.

    Attributes:
      rounds: after how many of them the model was evaluated.
      evaluations: leaves `[evaluations]`, on validation rows.
      losses: `[rounds]` mean training loss of the participants.
      accuracy: on test rows, after the last round.
      milliseconds: wall time over local iterations, all trainings side by side counted.
    """

    rounds: tuple[int, ...]
    evaluations: Evaluation
    losses: np.ndarray
    accuracy: float
    milliseconds: float


class Trainer:
    """Trains one variant; what it compiles serves every later call."""

    def __init__(self, setup: Setup, part: StageCache | None = None):
        """Compiles nothing yet.

        Args:
          setup: of the variant.
          part: what a run that was stopped has finished of the same calls.
        """
        self._setup, self._part, self._blocks = setup, part, 0
        self._programs: dict[int, _Programs] = {}

    def train(
        self,
        wanted: Sequence[tuple[int, Trial]],
        num_rounds: int,
        progress: Callable[[int], None],
    ) -> list[Trained]:
        """Trains each trial with its seed, one on each device at a time.

        Args:
          wanted: position of the seed, and the trial.
          num_rounds: after which a training ends, at most those of the schedule.
          progress: called with the number of rounds done since the last call, over all.
        """
        found, at_once = [], len(jax.devices())
        for first in range(0, len(wanted), at_once):
            block = wanted[first : first + at_once]
            found += self._once(
                lambda now=block: _train_block(
                    self._setup, self._on(len(now)), now, num_rounds, progress
                )
            )
        return found

    def _once(self, compute: Callable[[], list[Trained]]) -> list[Trained]:
        if self._part is None:
            return compute()
        self._blocks += 1
        return self._part.cached(f"block{self._blocks}", compute, Trained, Evaluation)

    def _on(self, devices: int) -> "_Programs":
        """A block that does not fill the devices leaves the others to its arithmetic."""
        if devices not in self._programs:
            self._programs[devices] = _programs(self._setup, parallel.mesh(devices))
        return self._programs[devices]


class _Programs(NamedTuple):
    """Compiled when they are first called, for as many trainings as there are devices."""

    begin: Callable
    advance: Callable
    evaluate: Callable
    shared: Shared


def _programs(setup: Setup, over) -> _Programs:
    def jitted(fun):
        return jax.jit(
            lambda items, shared: parallel.map_items(fun, items, shared, over)
        )

    return _Programs(
        jitted(functools.partial(_begin, setup)),
        jitted(functools.partial(_advance, setup)),
        jitted(functools.partial(evaluation.evaluate, setup)),
        parallel.place(setup.shared, over),
    )


def _train_block(
    setup: Setup, programs: _Programs, block, num_rounds, progress
) -> list[Trained]:
    run, shared = setup.run, programs.shared
    items = Item(
        np.array([index for index, _ in block], np.int32),
        np.array([run.seeds[index] for index, _ in block], np.uint32),
        jax.tree.map(
            lambda *leaves: np.array(leaves, np.float32),
            *(methods.numbers(run, setup.defended, trial) for _, trial in block),
        ),
    )
    state = programs.begin(items, shared)
    stops = (*range(0, num_rounds, run.eval_every), num_rounds)
    evaluations, seconds = [], 0.0
    rows = setup.task.validation.astype(np.int32)
    for before, stop in itertools.pairwise((0, *stops)):
        if stop > before:
            if not seconds:  # compiles, and does no round
                nothing = (items, state), (shared, np.int32(0))
                jax.block_until_ready(programs.advance(*nothing))
            begin = time.perf_counter()
            state = programs.advance((items, state), (shared, np.int32(stop)))
            jax.block_until_ready(state)
            seconds += time.perf_counter() - begin
            progress((stop - before) * len(block))
        evaluations.append(programs.evaluate((items, state), (shared, rows)))
    test = programs.evaluate((items, state), (shared, setup.task.test.astype(np.int32)))
    evaluations, losses_, test = jax.device_get(
        (evaluations, state.loss, test.accuracy)
    )
    steps = num_rounds * setup.variant.per_round * run.local_steps
    per_step = 1e3 * seconds / (steps * len(block))
    return [
        Trained(
            stops,
            Evaluation(
                *(np.array([leaf[i] for leaf in each]) for each in zip(*evaluations))
            ),
            losses_[i],
            float(test[i]),
            per_step,
        )
        for i in range(len(block))
    ]


def _begin(setup: Setup, item: Item, shared: Shared) -> rounds.Run:
    key = jax.random.fold_in(jax.random.key(item.seed), 0)
    params = Counted(setup.task.model.init(key), jnp.zeros(()))
    return rounds.start(params, of_seed(shared.schedule, item.index), optax.sgd(1.0))


def _advance(setup: Setup, item_state, shared_stop) -> rounds.Run:
    (item, state), (shared, stop) = item_state, shared_stop
    built = methods.defense(setup.defended, setup.variant.specs[0], item.numbers)
    return rounds.advance(
        jax.random.fold_in(jax.random.key(item.seed), 1),
        state,
        of_seed(shared.rows, item.index),
        of_seed(shared.schedule, item.index),
        stop,
        local=_local(setup, built, item.numbers.rate, shared.pool),
        server_optimiser=optax.sgd(1.0),
        receive=_on_model(built.receive),
    )


def _local(setup: Setup, built: Defense, rate, pool) -> local_lib.LocalUpdate:
    """Local training on rows that are looked up, beside which dropped ones are counted."""
    task = setup.task

    def look_up(batch):
        x = clients.look_up(pool, task.white, batch.x)
        return batch._replace(x=x)

    def count(params, batch):
        # The same gradients as the defense's, so that the compiler computes them once.
        anything = clipping.per_layer(jnp.inf)
        return clipping.clipped_sum(task.loss_fn, params, batch, anything).dropped

    inner = local_lib.sgd(
        task.loss_fn, optax.sgd(rate), gradient=built.gradient, encode=built.encode
    )

    def step(key, carry, sent, batch):
        state, dropped = carry
        batch = look_up(batch)
        if built.gradient is not None:
            dropped = dropped + count(state.params, batch)
        return inner.step(key, state, sent.params, batch), dropped

    def final(key, carry, sent, sender):
        state, dropped = carry
        message = inner.final(key, state, sent.params, sender)
        return message._replace(delta=Counted(message.delta, -dropped))

    return local_lib.LocalUpdate(
        lambda sent: (inner.init(sent.params), jnp.zeros(())), step, final
    )


def _on_model(encode):
    if encode is None:
        return None
    return lambda key, delta, sender: delta._replace(
        params=encode(key, delta.params, sender)
    )

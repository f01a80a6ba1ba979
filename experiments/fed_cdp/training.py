"""The trainings of one variant, and what is measured of its models.

Learning rate, clip, sigma and seed are inputs of one compiled program. A model lives with
its count of dropped examples, which travels as an average over clients, as the model does.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.fed_cdp import averaging, clients, evaluation, methods, propositions
from experiments.fed_cdp.evaluation import Evaluation
from experiments.fed_cdp.methods import Numbers, Trial
from experiments.fed_cdp.propositions import Tolerance
from experiments.fed_cdp.setup import Pool, Setup
from fljax import federation, losses
from fljax import local as local_lib
from fljax.defenses import clipping, specs
from fljax.defenses.definition import Setting
from fljax.defenses.specs import Spec
from fljax.driver.stage_cache import StageCache
from fljax.federation import Federation, Parts, Training
from fljax.types import Array, Defense, Model, Params


class Trained(NamedTuple):
    """What a training showed.

    Attributes:
      rounds: after how many of them the model was evaluated.
      evaluations: leaves `[evaluations]`, on validation rows.
      losses: `[rounds]` mean training loss of the participants.
      accuracy: on test rows, after the last round.
      milliseconds: wall time over local iterations, all trainings side by side counted;
        None where all rounds were there from an earlier call.
      tolerance: of the last model, of ONE training; None if it was not asked for.
    """

    rounds: tuple[int, ...]
    evaluations: Evaluation
    losses: np.ndarray
    accuracy: float
    milliseconds: float | None
    tolerance: Tolerance | None


class Trainer:
    """Trains one variant; calls share what is compiled."""

    def __init__(self, setup: Setup, part: StageCache | None = None, room: int = 0):
        """Compiles nothing yet.

        Args:
          setup: of the variant.
          part: what a run that was stopped has finished of the same calls.
          room: trainings of the largest call.
        """
        task, spec = setup.task, setup.variant.specs[0]
        self._setup, self._part, self._room, self._calls = setup, part, room, 0
        method = _Counting(
            task.model, task.loss_fn, task.white, setup.defended, spec,
            setup.run.divisor, setup.variant.per_round,
        )  # fmt: skip
        self._federation = Federation(method, setup.tables)

    def train(
        self,
        wanted: Sequence[tuple[int, Trial]],
        num_rounds: int,
        progress: Callable[[int], None],
    ) -> list[Trained]:
        """Trains each trial with its seed.

        Args:
          wanted: position of the seed, and the trial.
          num_rounds: after which a training ends, at most those of the schedule.
          progress: called with the number of rounds done since the last call, over all.
        """
        if not wanted:
            return []
        if self._part is None:
            return self._train(wanted, num_rounds, progress, None)
        self._calls += 1
        name, states = f"call{self._calls}", f"states{self._calls}"

        def compute():
            kept = self._part.states(states)
            return self._train(wanted, num_rounds, progress, kept)

        found = self._part.cached(name, compute, Trained, Evaluation, Tolerance)
        self._part.forget(states)
        return found

    def _train(self, wanted, num_rounds, progress, states) -> list[Trained]:
        setup, task, done = self._setup, self._setup.task, 0
        trainings = self._trainings(wanted)

        def report(stop, _):
            nonlocal done
            progress((stop - done) * len(wanted))
            done = stop

        found = federation.train(
            self._federation,
            trainings,
            stops=(*range(0, num_rounds, setup.run.eval_every), num_rounds),
            evaluate=evaluation.Measure(task.model, task.loss_fn, task.white),
            progress=report,
            states=states,
            room=self._room,
        )

        def look(measure):
            return federation.measure(
                self._federation, trainings, found.run, measure, self._room
            )

        accuracy = look(evaluation.TestAccuracy(task.model, task.white))
        tolerated = [None] * len(wanted)
        if setup.run.propositions and num_rounds == setup.run.num_rounds:
            of_model = task.model, task.white, setup.defended, setup.variant.specs[0]
            measured = look(propositions.Tolerated(*of_model))
            tolerated = [_one(measured, i) for i in range(len(wanted))]
        steps = found.num_timed * setup.variant.per_round * setup.run.local_steps
        per_step = 1e3 * found.seconds / (steps * len(wanted)) if steps else None
        return [
            Trained(
                found.stops,
                _one(found.evaluations, (slice(None), i)),
                found.run.loss[i],
                float(accuracy[i]),
                per_step,
                tolerated[i],
            )
            for i in range(len(wanted))
        ]

    def _trainings(self, wanted) -> Training:
        setup = self._setup
        index = np.array([index for index, _ in wanted], np.int32)
        seeds = np.array(setup.run.seeds, np.uint32)[index]
        each = (methods.numbers(setup.run, setup.defended, t) for _, t in wanted)
        numbers = jax.tree.map(lambda *leaves: np.array(leaves, np.float32), *each)
        return Training(index, index, seeds, numbers=numbers)


class Counted(NamedTuple):
    """What travels between server and clients.

    Attributes:
      params: the model.
      dropped: [] float, examples whose gradient was not finite and was left out, per
        participant, summed over rounds.
    """

    params: Params
    dropped: Array


class _Counting(NamedTuple):
    """Training on rows that are looked up, beside which dropped ones are counted."""

    model: Model
    loss_fn: losses.LossFn
    white: int | None
    defended: Setting
    spec: Spec
    divisor: str
    per_round: int

    def __call__(self, key, numbers: Numbers, pool: Pool) -> Parts:
        built = methods.defense(self.defended, self.spec, numbers)
        return Parts(
            lambda: Counted(self.model.init(key), jnp.zeros(())),
            self._local(built, numbers.rate, pool.x),
            averaging.server(self.divisor, self.per_round),
            _on_model(built.receive),
        )

    def _local(self, built: Defense, rate, pool) -> local_lib.LocalUpdate:
        def count(params, batch):
            # The same gradients as the defense's, so that the compiler computes them once.
            anything = clipping.per_layer(jnp.inf)
            return clipping.clipped_sum(self.loss_fn, params, batch, anything).dropped

        inner = local_lib.sgd(
            self.loss_fn, optax.sgd(rate), gradient=built.gradient, encode=built.encode
        )

        def step(key, carry, sent, batch):
            state, dropped = carry
            if specs.clips_examples(self.spec):
                dropped = dropped + count(state.params, batch)
            return inner.step(key, state, sent.params, batch), dropped

        def final(key, carry, sent, sender):
            state, dropped = carry
            message = inner.final(key, state, sent.params, sender)
            return message._replace(delta=Counted(message.delta, -dropped))

        def look_up(positions):
            return clients.look_up(pool, self.white, positions)

        def init(sent):
            return inner.init(sent.params), jnp.zeros(())

        return federation.prepared(local_lib.LocalUpdate(init, step, final), look_up)


def _one(leaves, at):
    return jax.tree.map(lambda leaf: leaf[at], leaves)


def _on_model(encode):
    if encode is None:
        return None
    return lambda key, delta, sender: delta._replace(
        params=encode(key, delta.params, sender)
    )

"""The defense of a run: its noise from a budget or as said, its clip from held-out rows.

A budget covers every round of the training and every attacked round after it, as if a
client took part in all of them (Diana et al., AAAI-25, appendix C.4: 100 and 50). What is
then promised counts the rounds that a client is drawn for (`_participation`).
Divergence: there every client draws the same noise; here noises are independent.
"""

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from experiments import defense_options
from experiments.tabular import budgets
from experiments.tabular.clients import Clients
from experiments.tabular.defense_config import BoundDefense, read
from experiments.tabular.federation import Diverged, mean_loss, stops
from experiments.tabular.problem import Plan, Problem
from experiments.tabular.schedules import local_work
from experiments.tabular.settings import DefenseConfig, TrainConfig
from fljax import federation, packing, privacy
from fljax.defenses import clipping, specs
from fljax.defenses.definition import Setting
from fljax.defenses.specs import Numbers, Spec
from fljax.driver.config import ConfigError
from fljax.federation import Federation, Tables
from fljax.losses import LossFn
from fljax.schedule import Schedule
from fljax.types import Model, Sampling


def maker(config: DefenseConfig, train: TrainConfig, active_rounds: int) -> Plan | None:
    """What `problem.build` takes as its defense: noise for the budget, the first clip.

    Args:
      config: which defense; None comes back for none.
      train: how clients train.
      active_rounds: attacked rounds after the training, which the budget covers too.

    Raises:
      ConfigError: for a text that is no defense, or, when the plan is used, for numbers
        that do not fit the training.
    """
    spec = read(config)
    budgets.check(config, spec, active_rounds)
    if not spec:
        return None
    num_rounds = train.num_rounds + active_rounds
    stops = config.stop_at_epsilon is not None

    def bound(schedule: Schedule, model: Model, loss_fn: LossFn) -> BoundDefense:
        sizes, how = schedule.sizes[:, :-1], local_work(train)
        most = int(sizes.max())
        if config.delta * most >= 1 and specs.has_noise(spec):
            warnings.warn(
                f"--delta: {config.delta:g} is not below one in the {most} rows of a "
                "client: a promise with it may give a row away",
                stacklevel=2,
            )
        rounds = budgets.rounds_of_each(schedule) if stops else num_rounds
        with defense_options.naming(spec):
            made = _with_numbers(
                BoundDefense(
                    spec,
                    config.delta,
                    _setting(
                        spec, train, schedule, model, loss_fn, active_rounds, stops
                    ),
                    (),
                    rounds * packing.steps_per_round(sizes, *how),
                    rounds,
                    packing.batches_per_epoch(sizes, how.batch_size, how.drop_last),
                )
            )
            made.build(made.of_seed(0))  # looks at the numbers
        return made

    within = functools.partial(budgets.within, config) if stops else None
    return Plan(specs.needs_poisson(spec), bound, within)


def for_epochs(bound: BoundDefense, epochs: int) -> BoundDefense:
    """The same defense of clients that spend the budget on `epochs` epochs of a round."""
    return _with_numbers(bound._replace(steps=epochs * bound.per_epoch, rounds=1))


def choose_clip(
    problem: Problem,
    clients: Clients,
    *,
    progress: Callable[[int], None],
) -> tuple[Problem, np.ndarray]:
    """Trains once with every clip and keeps, for each seed, the best on held-out rows.

    The trainings draw what `federation.train` draws, so that it repeats the best one.

    Args:
      problem: from `problem.build`, with a defense.
      clients: from `clients.deal`.
      progress: called with the number of trainings done, of seeds times clips.

    Returns:
      The problem with the chosen clips, and the final models' mean loss on the held-out
      rows `[seeds, clips]`, not finite where training diverged; without a choice the
      problem as it is, and NaN.

    Raises:
      ConfigError: if there are several clips and no held-out rows.
      Diverged: if a seed's training diverged with every clip.
    """
    bound = problem.bound_defense
    candidates = specs.alternatives(bound.spec)
    if len(candidates) == 1:
        return problem, np.full((len(problem.seeds), 1), np.nan)
    if clients.test is None:
        raise ConfigError(
            "--defense: choosing a clip needs held-out rows, give one clip"
        )
    tried = jax.tree.map(lambda *leaves: np.array(leaves), *map(_own, candidates))
    loss = _held_out_losses(problem, clients, tried, progress)
    cost = np.where(np.isfinite(loss), loss, np.inf)
    if np.isinf(cost).all(axis=1).any():
        raise Diverged(
            f"training diverged with every clip of --defense={bound.spec} and "
            f"--learning_rate={problem.learning_rate:g}; try a smaller rate"
        )
    best = jax.tree.map(lambda leaf: leaf[cost.argmin(axis=1)], tried)
    bound = bound._replace(parts=_updated(bound.parts, best))
    return problem._replace(bound_defense=bound), loss


def _setting(
    spec: Spec,
    train: TrainConfig,
    schedule,
    model,
    loss_fn,
    active_rounds: int,
    stops: bool,
) -> Setting:
    sizes = schedule.sizes[:, :-1]
    drawn, rate, summed = _participation(train, schedule, stops)
    if active_rounds and "receive" not in specs.acts_on(specs.alternatives(spec)[0]):
        # An active server asks the attacked client in every round of its own.
        drawn, rate = "all", np.ones(len(sizes))
    return Setting.of_clients(
        loss_fn,
        clipping.num_layers(jax.eval_shape(model.init, jax.random.key(0))),
        sizes,
        schedule.batch_size,
        poisson=specs.needs_poisson(spec),
        drop_last=schedule.drop_last,
        num_rounds=train.num_rounds,
        drawn=drawn,
        participation=rate,
        num_summed=summed,
    )


def _participation(
    train: TrainConfig, schedule: Schedule, stops: bool
) -> tuple[Sampling, np.ndarray, np.ndarray]:
    """How clients are drawn, their rate `[seeds]`, and messages in a sum `[seeds]`.

    A fixed number that is drawn anew for each round, whatever its data, is seen: a client
    sends in Bin(T, rate) of them, and delta is the mean over that number, whether its
    noise is added before its message leaves or on arrival (`privacy.noise_spec`).

    In a weighted sum the noise is that of `sum w^2 / max w^2` messages, seen from the
    client of the largest weight. Where any number of clients may come, or clients stop,
    who comes is taken to be seen, and a message to be alone.
    """
    num_seeds, num_clients = len(schedule.sizes), schedule.sizes.shape[1] - 1
    ones = np.ones(num_seeds)
    if stops or train.participation == "poisson":
        return "all", ones, ones
    weight = np.asarray(schedule.client_ends.weight, float)
    squares = np.square(weight).sum(axis=(2, 3))
    summed = (squares / np.square(weight.max(axis=(2, 3)))).min(axis=1)
    if train.participation == "all":
        return "all", ones, summed
    present = (schedule.participants < num_clients).sum(axis=2).max(axis=1)
    return "fixed", present / num_clients, summed


def _with_numbers(bound: BoundDefense) -> BoundDefense:
    """Every number of the first alternative, in each seed what keeps the budget."""
    first, found = specs.alternatives(bound.spec)[0], []
    for seed in range(len(bound.steps)):
        traced, _ = bound.of_seed(seed)
        found.append(
            privacy.numbers_for(
                first,
                bound.setting._replace(**traced),
                bound.releases(seed),
                bound.delta,
            )
        )
    parts = jax.tree.map(lambda *leaves: np.stack(leaves), *found)
    chosen = jax.tree.map(np.asarray, bound.parts)  # a clip that was chosen is kept
    return bound._replace(parts=_updated(parts, _clips(chosen)) if chosen else parts)


def _own(spec: Spec) -> Numbers:
    return specs.numbers(spec)


def _clips(parts: Numbers) -> Numbers:
    return tuple({n: v for n, v in part.items() if n == "clip"} for part in parts)


def _updated(parts: Numbers, changes: Numbers) -> Numbers:
    return tuple({**old, **new} for old, new in zip(parts, changes, strict=True))


def _held_out_losses(problem, clients, tried: Numbers, progress) -> np.ndarray:
    """`[seeds, clips]`, after a training with each."""
    schedule = dataclasses.replace(  # nothing is recorded
        problem.schedule,
        recorded_rounds=problem.schedule.recorded_rounds[:, :0],
        recorded_clients=problem.schedule.recorded_clients[:, :0],
    )
    tables = Tables(clients.rows, schedule, (clients.test, clients.test_mask))
    own, clips = problem.trainings, len(jax.tree.leaves(tried)[0])
    count = len(own.seed) * clips
    each = jax.tree.map(lambda leaf: np.repeat(leaf, clips, axis=0), own)
    rates, (traced, parts) = each.numbers
    values = jax.tree.map(lambda v: np.tile(np.float32(v), len(own.seed)), tried)
    found = federation.train(
        Federation(problem.method, tables),
        each._replace(numbers=(rates, (traced, _updated(parts, values)))),
        stops=stops(problem, max(1, schedule.num_rounds // 10)),
        evaluate=_HeldOutLoss(problem.loss_fn),
        progress=lambda done, _: progress(done * count // schedule.num_rounds),
    )
    return found.evaluations[-1].reshape(-1, clips)


class _HeldOutLoss(NamedTuple):
    """Mean loss of a training's model on the held-out rows of its seed."""

    loss_fn: LossFn

    def __call__(self, run, training, tables) -> jax.Array:
        test, mask = jax.tree.map(lambda leaf: leaf[training.rows], tables.pool)
        return mean_loss(self.loss_fn, run.server.params, test, mask)

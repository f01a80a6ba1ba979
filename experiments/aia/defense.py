"""The defense of a run: its noise from a budget or as said, its clip from held-out rows.

The budget of a client covers every round of the training and every attacked round after
it, as if it took part in all of them (Diana et al., AAAI-25, appendix C.4: 100 and 50).
Divergence: there every client draws the same noise; here noises are independent.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from experiments.aia import federation
from experiments.aia.clients import Clients
from experiments.aia.defense_config import BoundDefense, read
from experiments.aia.problem import Plan, Problem, pace
from experiments.aia.settings import DefenseConfig, TrainConfig
from fljax import packing, parallel, privacy
from fljax.defenses import clipping, specs
from fljax.defenses.definition import Setting
from fljax.defenses.specs import Numbers, Spec
from fljax.driver.config import ConfigError
from fljax.losses import LossFn
from fljax.schedule import Schedule
from fljax.types import Key, Model, Sampling


def maker(config: DefenseConfig, train: TrainConfig, active_rounds: int) -> Plan | None:
    """What `problem.pose` takes as its defense: noise for the budget, the first clip.

    Args:
      config: which defense; None comes back for none.
      train: how clients train.
      active_rounds: attacked rounds after the training, which the budget covers too.

    Raises:
      ConfigError: for a text that is no defense, or, when the plan is used, for numbers
        that do not fit the training.
    """
    spec = read(config)
    if not spec:
        return None
    num_rounds = train.num_rounds + active_rounds

    def bound(schedule: Schedule, model: Model, loss_fn: LossFn) -> BoundDefense:
        sizes, how = schedule.sizes[:, :-1], pace(train)
        try:
            made = _with_numbers(
                BoundDefense(
                    spec,
                    config.delta,
                    _setting(spec, train, schedule, model, loss_fn),
                    (),
                    num_rounds * packing.steps_per_round(sizes, *how),
                    num_rounds,
                    packing.batches_per_epoch(sizes, how.batch_size),
                )
            )
            made.build(made.of_seed(0))  # looks at the numbers
        except ValueError as error:
            raise ConfigError(f"--defense={spec}: {error}") from error
        return made

    return Plan(specs.needs_poisson(spec), bound)


def for_epochs(bound: BoundDefense, epochs: int) -> BoundDefense:
    """The same defense of clients that spend the budget on `epochs` epochs of a round."""
    return _with_numbers(bound._replace(steps=epochs * bound.per_epoch, rounds=1))


def choose_clip(
    problem: Problem,
    clients: Clients,
    keys: Key,
    *,
    progress: Callable[[int], None],
) -> tuple[Problem, np.ndarray]:
    """Trains once with every clip and keeps, for each seed, the best on held-out rows.

    The trainings draw what `federation.train` draws, so that it repeats the best one.

    Args:
      problem: from `problem.pose`, with a defense.
      clients: from `clients.gather`.
      keys: `[seeds]`, those of the training.
      progress: called with the number of trainings done, of seeds times clips.

    Returns:
      The problem with the chosen clips, and the final models' mean loss on the held-out
      rows `[seeds, clips]`, not finite where training diverged; without a choice the
      problem as it is, and NaN.

    Raises:
      ConfigError: if there are several clips and no held-out rows.
      Diverged: if a seed's training diverged with every clip.
    """
    bound = problem.shield
    candidates = specs.alternatives(bound.spec)
    if len(candidates) == 1:
        return problem, np.full((len(keys), 1), np.nan)
    if clients.test is None:
        raise ConfigError(
            "--defense: choosing a clip needs held-out rows, give one clip"
        )
    tried = jax.tree.map(lambda *leaves: np.array(leaves), *map(_own, candidates))
    loss = _held_out_losses(problem, clients, keys, tried, progress)
    cost = np.where(np.isfinite(loss), loss, np.inf)
    if np.isinf(cost).all(axis=1).any():
        raise federation.Diverged(
            f"training diverged with every clip of --defense={bound.spec} and "
            f"--learning_rate={problem.learning_rate:g}; try a smaller rate"
        )
    best = jax.tree.map(lambda leaf: leaf[cost.argmin(axis=1)], tried)
    bound = bound._replace(parts=_updated(bound.parts, best))
    return problem._replace(shield=bound), loss


def _setting(spec: Spec, train: TrainConfig, schedule, model, loss_fn) -> Setting:
    sizes, rates = schedule.sizes[:, :-1], schedule.sampling_rate[:, :-1]
    poisson = specs.needs_poisson(spec)
    drawn, rate, summed = _participation(train, schedule)
    if "receive" not in specs.acts_on(specs.alternatives(spec)[0]):
        # Whoever sees a message sees whose it is, and meets its noise alone.
        drawn, rate, summed = "all", np.ones(len(sizes)), np.ones(len(sizes))
    return Setting(
        loss_fn,
        clipping.num_layers(jax.eval_shape(model.init, jax.random.key(0))),
        train.num_rounds,
        batches="poisson" if poisson else "fixed",
        sampling_rate=rates,
        batch_size=sizes * rates if poisson else np.minimum(schedule.batch_size, sizes),
        drawn=drawn,
        participation=rate,
        num_summed=summed,
    )


def _participation(
    train: TrainConfig, schedule: Schedule
) -> tuple[Sampling, np.ndarray, np.ndarray]:
    """How clients are drawn, their rate `[seeds]`, and messages in a sum `[seeds]`.

    In a weighted sum the noise is that of `sum w^2 / max w^2` messages, seen from the
    client of the largest weight. Where any number of clients may come, who does is
    taken to be seen, and a message to be alone.
    """
    num_seeds, num_clients = len(schedule.sizes), schedule.sizes.shape[1] - 1
    ones = np.ones(num_seeds)
    if train.participation == "poisson":
        return "all", ones, ones
    weight = np.asarray(schedule.finish.weight, float)
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


def _held_out_losses(problem, clients, keys, tried: Numbers, progress) -> np.ndarray:
    """`[seeds, clips]`; as many trainings at a time as there are devices."""
    over, bound = parallel.mesh(), problem.shield
    schedule = dataclasses.replace(  # nothing is recorded
        problem.schedule,
        recorded_rounds=problem.schedule.recorded_rounds[:, :0],
        recorded_clients=problem.schedule.recorded_clients[:, :0],
    )

    def one(item, shared):
        seed, values = item
        key, rows, mine, test, mask = jax.tree.map(lambda leaf: leaf[seed], shared)
        mine = dataclasses.replace(mine, breaks=schedule.breaks)  # those of all seeds
        everywhere = jax.tree.map(lambda value: jnp.full(len(keys), value), values)
        parts = _updated(bound.parts, everywhere)
        chosen = problem._replace(shield=bound._replace(parts=parts))
        params = federation.train_one(chosen, seed, key, rows, mine)
        return federation.mean_loss(problem, params, test, mask)

    run = jax.jit(lambda items, shared: parallel.map_items(one, items, shared, over))
    shared = (keys, clients.rows, schedule, clients.test, clients.test_mask)
    clips = len(jax.tree.leaves(tried)[0])
    pairs = np.meshgrid(np.arange(len(keys)), np.arange(clips), indexing="ij")
    seeds, which = (leaf.ravel() for leaf in pairs)
    found, count = [], len(seeds)
    for begin in range(0, count, over.size):
        now = np.minimum(np.arange(begin, begin + over.size), count - 1)
        values = jax.tree.map(lambda leaf, at=now: np.float32(leaf[which[at]]), tried)
        found.append(np.asarray(run((seeds[now], values), shared)))
        progress(min(begin + over.size, count))
    return np.concatenate(found)[:count].reshape(len(keys), clips)

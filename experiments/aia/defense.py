"""The defense of a run: its noise from a budget or as told, its clip from held-out rows.

The budget of a client covers every round of the training and every attacked round after
it, as if she took part in all of them (Diana et al., AAAI-25, appendix C.4: 100 and 50).
Divergence: there every client draws the same noise; here noises are independent.

What a budget buys depends on the defense: its `NoiseSpec`, made with a noise of one,
says how large a noise of one is for the guarantee. Where both local steps and messages
have noise, each kind keeps the budget for its own unit.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from experiments.aia import federation, shields
from experiments.aia.clients import Clients
from experiments.aia.problem import Plan, Problem, Shield, pace
from experiments.aia.settings import DefenseConfig, TrainConfig
from experiments.aia.shields import Numbers
from fljax import packing, parallel, privacy
from fljax.defenses import clipping
from fljax.driver.config import ConfigError
from fljax.losses import LossFn
from fljax.schedule import Schedule
from fljax.types import Key, Model, NoiseSpec, Sampling

_BUDGET = 1.0  # epsilon, where neither it nor a noise is told


def maker(config: DefenseConfig, train: TrainConfig, active_rounds: int) -> Plan | None:
    """What `problem.pose` takes as its defense: noise for the budget, the first clip.

    Args:
      config: which defense; None comes back for none.
      train: how clients train.
      active_rounds: attacked rounds after the training, which the budget covers too.

    Raises:
      ConfigError: for flags that do not fit the defense, here or when the plan is used.
    """
    if not shields.chosen(config):
        return None
    shields.check(config)
    num_rounds = train.num_rounds + active_rounds
    poisson = shields.poisson(config)

    def shield(schedule: Schedule, model: Model, loss_fn: LossFn) -> Shield:
        params = jax.eval_shape(model.init, jax.random.key(0))
        drawn, rate, summed = _participation(train, schedule)
        told = shields.Told(
            config, loss_fn, clipping.num_layers(params), train.num_rounds, drawn
        )
        sizes, rates = schedule.sizes[:, :-1], schedule.sampling_rate[:, :-1]
        full = np.minimum(schedule.batch_size, sizes)
        ones = np.ones(len(sizes))
        numbers = Numbers(
            clip=np.full(len(sizes), config.clip[0]) if config.clip else np.nan * ones,
            step_noise=np.ones(sizes.shape),
            message_noise=ones,
            sampling_rate=rates,
            batch_size=sizes * rates if poisson else full,
            participation=rate,
            num_summed=summed,
        )
        how = pace(train)
        made = Shield(
            functools.partial(shields.build, told),
            numbers,
            num_rounds * packing.steps_per_round(sizes, *how),
            num_rounds,
            packing.batches_per_epoch(sizes, how.batch_size),
        )
        try:
            made = _with_noise(made, config)
            made.build(numbers_of(made, 0))  # looks at the numbers
        except ValueError as error:
            raise ConfigError(f"--defense_name={config.name}: {error}") from error
        return made

    return Plan(poisson, shield)


def for_epochs(shield: Shield, config: DefenseConfig, epochs: int) -> Shield:
    """The same defense of clients who spend the budget on `epochs` epochs of a round."""
    return _with_noise(
        shield._replace(steps=epochs * shield.per_epoch, rounds=1), config
    )


def numbers_of(shield: Shield, seed: int) -> Numbers:
    """Those of one seed."""
    return jax.tree.map(lambda leaf: leaf[seed], shield.numbers)


def choose_clip(
    problem: Problem,
    clients: Clients,
    keys: Key,
    config: DefenseConfig,
    *,
    progress: Callable[[int], None],
) -> tuple[Problem, np.ndarray]:
    """Trains once with every clip and keeps, for each seed, the best on held-out rows.

    The trainings draw what `federation.train` draws, so that it repeats the best one.

    Args:
      problem: from `problem.pose`, with a defense.
      clients: from `clients.gather`.
      keys: `[seeds]`, those of the training.
      config: the clips.
      progress: called with the number of trainings done, of seeds times clips.

    Returns:
      The problem with the chosen clips, and the final models' mean loss on the held-out
      rows `[seeds, clips]`, not finite where training diverged; without a choice the
      problem as it is, and NaN.

    Raises:
      ConfigError: if there are several clips and no held-out rows.
      Diverged: if a seed's training diverged with every clip.
    """
    clips = shields.clips(config)
    if clips is None or len(clips) == 1:
        return problem, np.full((len(keys), 1), np.nan)
    if clients.test is None:
        raise ConfigError("--defense_clip: choosing one needs held-out rows, give one")
    loss = _held_out_losses(problem, clients, keys, clips, progress)
    cost = np.where(np.isfinite(loss), loss, np.inf)
    if np.isinf(cost).all(axis=1).any():
        raise federation.Diverged(
            f"training diverged with every --defense_clip and "
            f"--learning_rate={problem.learning_rate:g}; try a smaller rate"
        )
    best = np.array(clips)[cost.argmin(axis=1)]
    shield = problem.shield
    shield = shield._replace(numbers=shield.numbers._replace(clip=best))
    return problem._replace(shield=shield), loss


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


def _with_noise(shield: Shield, config: DefenseConfig) -> Shield:
    """Sigma of steps and messages: as told, or what keeps the budget."""
    numbers = shield.numbers
    unit = shield._replace(
        numbers=numbers._replace(
            step_noise=np.ones_like(numbers.step_noise),
            message_noise=np.ones_like(numbers.message_noise),
        )
    )
    step, message = [], []
    for seed, steps in enumerate(shield.steps):
        scale = {"record": np.ones(len(steps)), "client": np.ones(1)}
        for spec in unit.build(numbers_of(unit, seed)).noise:
            count = steps if spec.unit == "record" else np.array([shield.rounds])
            scale[spec.unit] = _sigma(config, spec, count, shield.rounds)
        step.append(scale["record"])
        message.append(scale["client"][0])
    found = numbers._replace(step_noise=np.stack(step), message_noise=np.stack(message))
    return shield._replace(numbers=found)


def _sigma(
    config: DefenseConfig, unit: NoiseSpec, steps: np.ndarray, rounds: int
) -> np.ndarray:
    """In the shape of `steps`; `unit` is what noise of sigma one promises."""
    if config.sigma is not None:
        return np.full(steps.shape, config.sigma)
    budget = _BUDGET if config.epsilon is None else config.epsilon

    @functools.cache  # many clients have the same numbers
    def least(rate, number):
        return privacy.noise_multiplier_for(
            budget, config.delta, rate, number, config.accountant
        )

    of_all = np.vectorize(least, otypes=[float])
    return of_all(*privacy.as_poisson(unit, steps, rounds)) / unit.noise_multiplier


def _held_out_losses(problem, clients, keys, clips, progress) -> np.ndarray:
    """`[seeds, clips]`; as many trainings at a time as there are devices."""
    over, shield = parallel.mesh(), problem.shield
    schedule = dataclasses.replace(  # nothing is recorded
        problem.schedule,
        recorded_rounds=problem.schedule.recorded_rounds[:, :0],
        recorded_clients=problem.schedule.recorded_clients[:, :0],
    )

    def one(item, shared):
        seed, clip = item
        key, rows, mine, test, mask = jax.tree.map(lambda leaf: leaf[seed], shared)
        mine = dataclasses.replace(mine, breaks=schedule.breaks)  # those of all seeds
        numbers = shield.numbers._replace(clip=jnp.full(len(keys), clip))
        chosen = problem._replace(shield=shield._replace(numbers=numbers))
        params = federation.train_one(chosen, seed, key, rows, mine)
        return federation.mean_loss(problem, params, test, mask)

    run = jax.jit(lambda items, shared: parallel.map_items(one, items, shared, over))
    shared = (keys, clients.rows, schedule, clients.test, clients.test_mask)
    pairs = np.meshgrid(np.arange(len(keys)), np.float32(clips), indexing="ij")
    seeds, values = (leaf.ravel() for leaf in pairs)
    found, count = [], len(seeds)
    for begin in range(0, count, over.size):
        now = np.minimum(np.arange(begin, begin + over.size), count - 1)
        found.append(np.asarray(run((seeds[now], values[now]), shared)))
        progress(min(begin + over.size, count))
    return np.concatenate(found)[:count].reshape(len(keys), len(clips))

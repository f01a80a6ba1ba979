"""The clients' defense in a run: its noise from a budget, its clip from held-out rows.

The budget of a client covers every round of the training and every attacked round after
it, as if she took part in all of them (Diana et al., AAAI-25, appendix C.4: 100 and 50).
Divergence: there every client draws the same noise; here noises are independent.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments import federation
from experiments.clients import Clients
from experiments.config import ConfigError
from experiments.problem import Problem, Shield
from experiments.scoring import Labels
from experiments.settings import DefenseConfig, TrainConfig
from fljax import accounting, parallel
from fljax.defenses import dp_sgd
from fljax.results import Row
from fljax.schedule import Schedule
from fljax.types import Key

_UNCHARGED = "what the encoding learns from the training rows is not charged"
_CHOSEN = "nor is the choice among several clips, made on the held-out rows"
_ATTACKED = (
    "nor is the active server's tuning, whose trials all meet the same noise, nor "
    "isolation beside Adam: each reported attack is a world of its own"
)


class Numbers(NamedTuple):
    """Arguments of `dp_sgd`.

    Attributes:
      clip: `[seeds]`.
      noise_multiplier: `[seeds, C]`.
      sampling_rate: `[seeds, C]`.
      batch_size: `[seeds, C]` expected rows.
    """

    clip: np.ndarray
    noise_multiplier: np.ndarray
    sampling_rate: np.ndarray
    batch_size: np.ndarray


def maker(
    config: DefenseConfig, train: TrainConfig, active_rounds: int
) -> Callable[[Schedule], Shield] | None:
    """What `problem.pose` takes as its defense: noise for the budget, the first clip.

    Args:
      config: which defense; None comes back for none.
      train: how clients train.
      active_rounds: attacked rounds after the training, which the budget covers too.

    Raises:
      ConfigError: without a clip, or with one given twice.
    """
    if config.name == "none":
        return None
    if not config.clip or len(set(config.clip)) < len(config.clip):
        given = ",".join(f"{clip:g}" for clip in config.clip) or "none"
        raise ConfigError(f"--defense_clip: expected distinct numbers, got {given}")
    num_rounds = train.num_rounds + active_rounds

    def make(schedule: Schedule) -> Shield:
        sizes, rates = schedule.sizes[:, :-1], schedule.sampling_rate[:, :-1]
        steps = num_rounds * _steps_per_round(train, rates)
        numbers = Numbers(
            clip=np.full(len(sizes), config.clip[0]),
            noise_multiplier=_noise_multiplier(config, rates, steps),
            sampling_rate=rates,
            batch_size=sizes * rates,
        )
        return Shield(_build, numbers, steps)

    return make


def for_epochs(shield: Shield, config: DefenseConfig, epochs: int) -> Shield:
    """The same defense of clients who spend the budget on `epochs` epochs."""
    rates = shield.numbers.sampling_rate
    steps = epochs * np.rint(1 / rates).astype(int)
    noise = _noise_multiplier(config, rates, steps)
    numbers = shield.numbers._replace(noise_multiplier=noise)
    return shield._replace(numbers=numbers, steps=steps)


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
      rows `[seeds, clips]`, not finite where training diverged; with a single clip the
      problem as it is, and NaN.

    Raises:
      ConfigError: if there are several clips and no held-out rows.
      Diverged: if a seed's training diverged with every clip.
    """
    if len(config.clip) == 1:
        return problem, np.full((len(keys), 1), np.nan)
    if clients.test is None:
        raise ConfigError("--defense_clip: choosing one needs held-out rows, give one")
    loss = _held_out_losses(problem, clients, keys, config.clip, progress)
    cost = np.where(np.isfinite(loss), loss, np.inf)
    if np.isinf(cost).all(axis=1).any():
        raise federation.Diverged(
            f"training diverged with every --defense_clip and "
            f"--learning_rate={problem.learning_rate:g}; try a smaller rate"
        )
    best = np.array(config.clip)[cost.argmin(axis=1)]
    shield = problem.shield
    shield = shield._replace(numbers=shield.numbers._replace(clip=best))
    return problem._replace(shield=shield), loss


def rows(labels: Labels, problem: Problem, config: DefenseConfig) -> list[Row]:
    """Noise, clip and both epsilons of every client; of all clients the largest."""
    found = []
    for seed in range(len(labels.seeds)):
        spent, numbers = _guarantee(problem, config, seed), _numbers(problem, seed)
        sizes = problem.schedule.sizes[seed, :-1]
        for metric, values in (
            ("epsilon_rdp", spent.epsilon_rdp),
            ("epsilon_pld", spent.epsilon_pld),
            ("noise_multiplier", numbers.noise_multiplier),
            ("clip", np.full(len(sizes), numbers.clip)),
        ):
            each = [*zip(range(len(sizes)), values, sizes, strict=True)]
            each.append(("all", values.max(), sizes.sum()))
            for client, value, count in each:
                found.append(
                    labels.row(seed, "none", "defense", client, metric, value, count)
                )
    return found


def describe(
    problem: Problem, config: DefenseConfig, loss: np.ndarray, *, active: bool
) -> dict[str, Any]:
    """What the manifest says of the defense.

    Args:
      problem: with the chosen clips.
      config: which defense.
      loss: from `choose_clip`.
      active: whether there is an active server.
    """
    numbers, steps = problem.shield.numbers, problem.shield.steps
    spent = [_guarantee(problem, config, seed) for seed in range(len(steps))]
    several = len(config.clip) > 1
    uncharged = [_UNCHARGED, *([_CHOSEN] * several), *([_ATTACKED] * active)]
    held_out = np.where(np.isfinite(loss), loss, None).tolist()
    return {
        "name": config.name,
        "clip": numbers.clip.tolist(),
        "held_out_loss": held_out if several else None,
        "noise_multiplier": numbers.noise_multiplier.tolist(),
        "sampling_rate": numbers.sampling_rate.tolist(),
        "steps": steps.tolist(),
        "delta": config.delta,
        "epsilon_rdp": [each.epsilon_rdp.tolist() for each in spent],
        "epsilon_pld": [each.epsilon_pld.tolist() for each in spent],
        "assumption": ["; ".join([each.assumption, *uncharged]) for each in spent],
    }


def _build(loss_fn, numbers: Numbers):
    return dp_sgd.dp_sgd(loss_fn, **numbers._asdict())


def _steps_per_round(train: TrainConfig, rates: np.ndarray) -> np.ndarray:
    if train.algorithm == "fed_sgd":
        return np.ones(rates.shape, int)
    if train.local_steps is not None:
        return np.full(rates.shape, train.local_steps)
    return train.local_epochs * np.rint(1 / rates).astype(int)


def _noise_multiplier(config: DefenseConfig, rates, steps) -> np.ndarray:
    return np.vectorize(
        lambda rate, number: accounting.noise_multiplier_for(
            config.epsilon, config.delta, rate, number, config.accountant
        )
    )(rates, steps)


def _numbers(problem: Problem, seed: int) -> Numbers:
    return jax.tree.map(lambda leaf: leaf[seed], problem.shield.numbers)


def _guarantee(problem: Problem, config, seed: int) -> accounting.Guarantee:
    """Read from the object that adds the noise."""
    defense = problem.shield.build(problem.loss_fn, _numbers(problem, seed))
    (noise,) = defense.noise
    return accounting.guarantee(noise, problem.shield.steps[seed], config.delta)


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

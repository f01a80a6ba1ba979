"""Who trains when: how far a client goes in a round, and who is in which round."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from experiments.tabular.settings import TrainConfig
from fljax import participation, stacking
from fljax import schedule as schedule_lib
from fljax.driver.config import ConfigError
from fljax.schedule import Schedule


class LocalWork(NamedTuple):
    """How far a client trains in a round, as `schedule.build` takes it.

    Attributes:
      batch_size: rows in a mini-batch; None takes all at once.
      epochs: local epochs.
      steps: local steps in place of epochs, or None.
      drop_last: whether rows behind the last full batch of an epoch are left out.
    """

    batch_size: int | None
    epochs: int
    steps: int | None
    drop_last: bool = False


def local_work(train: TrainConfig, epochs: int | None = None) -> LocalWork:
    """How far a client trains in a round; FedSGD is one step on all of its rows.

    Args:
      train: how clients train.
      epochs: so many local epochs in place of what that says.
    """
    one_step = train.algorithm == "fed_sgd"
    batch_size = None if one_step else train.batch_size
    if epochs is not None or one_step:
        return LocalWork(
            batch_size, epochs or 1, None, train.drop_last and not one_step
        )
    return LocalWork(batch_size, train.local_epochs, train.local_steps, train.drop_last)


def build(
    sizes: Sequence[np.ndarray],
    train: TrainConfig,
    seeds: Sequence[int],
    *,
    poisson: bool,
    record_rounds: Sequence[int] | None = None,
    most_clients: int | None = None,
    keep: Callable[[int, np.ndarray], np.ndarray] | None = None,
    trial: int | None = None,
) -> Schedule:
    """The schedule of every seed, joined.

    Args:
      sizes: rows of each client `[C]`, of each seed.
      train: how clients train.
      seeds: one run each.
      poisson: whether batches are Poisson samples.
      record_rounds: rounds that the transcript keeps; None keeps all.
      most_clients: clients that it keeps, drawn for each seed; None keeps all.
      keep: `(position of a seed, who is drawn [T, C]) -> [T, C]`, who of them comes.
      trial: another one draws others; None for the first.

    Raises:
      ConfigError: if nobody takes part in any round, or all that somebody has is dropped.
    """
    each, work, fewest = [], local_work(train), min(own.min() for own in sizes)
    if work.drop_last and work.batch_size and fewest < work.batch_size:
        raise ConfigError(
            f"--drop_last: expected clients with --batch_size={work.batch_size} rows or "
            f"more, one has {fewest}"
        )
    for at, (own, seed) in enumerate(zip(sizes, seeds, strict=True)):
        chosen = _participants(len(own), train, seed, trial)
        if keep is not None:
            drawn = participation.table(chosen, len(own), train.num_rounds)
            whole = np.broadcast_to(drawn, (train.num_rounds, len(own)))
            chosen = [np.flatnonzero(row) for row in keep(at, whole)]
        plan = schedule_lib.build(
            own,
            num_rounds=train.num_rounds,
            **work._asdict(),
            participants=chosen,
            lanes=train.lanes,
            weights=train.weights,
            shuffle=train.shuffle and train.algorithm != "fed_sgd",
            poisson=poisson,
            record_rounds=record_rounds,
            record_clients=_recorded(len(own), most_clients, seed),
        )
        each.append(plan)
    return stacking.stack(each)[0]


def _participants(
    count: int, train: TrainConfig, seed: int, trial: int | None
) -> list[np.ndarray] | None:
    """Of each round, as they are drawn; None for everybody."""
    if train.participation == "all":
        return None
    draw = getattr(participation, train.participation)
    rng = np.random.default_rng([seed, 2] if trial is None else [seed, 2, trial])
    chosen = draw(rng, count, train.num_rounds, train.fraction)
    if not any(map(len, chosen)):
        raise ConfigError(
            f"--fraction: expected a share with which somebody takes part in one of "
            f"--num_rounds={train.num_rounds}, got {train.fraction:g}"
        )
    return chosen


def _recorded(count: int, most: int | None, seed: int) -> np.ndarray | None:
    """So many of all clients, or None where that is everyone."""
    if most is None or most >= count:
        return None
    return np.random.default_rng([seed, 3]).choice(count, most, replace=False)

"""Chooses hyper-parameters: all trials of a design at once, or Optuna's one by one.

Both minimise, for each group of clients, the mean of their losses weighted by rows.
"""

import importlib.util
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fljax.attacks.attribute.active import Range, design
from fljax.driver.config import ConfigError

Evaluate = Callable[[np.ndarray], np.ndarray]
# settings [seeds, C, K, D] of K trials -> losses [seeds, C, K]


class Choice(NamedTuple):
    """What was chosen.

    Attributes:
      setting: `[seeds, C, D]`.
      loss: `[seeds, C]` objective of its group.
    """

    setting: np.ndarray
    loss: np.ndarray


def check(tuner: str, flag: str) -> None:
    """Refuses Optuna where it is not installed.

    Raises:
      ConfigError: naming the flag.
    """
    if tuner == "optuna" and importlib.util.find_spec("optuna") is None:
        raise ConfigError(
            f"{flag}=optuna: needs the package optuna: pip install -e '.[tune]'"
        )


def designs(
    ranges: dict[str, Range], trials: int, seeds: Sequence[int], num_clients: int
) -> np.ndarray:
    """`[seeds, C, trials, D]`: a design per seed, the same for all of its clients."""
    each = np.stack([design(ranges, trials, seed) for seed in seeds])
    return np.repeat(each[:, None], num_clients, axis=1)


def choose(
    evaluate: Evaluate,
    ranges: dict[str, Range],
    trials: int,
    seeds: Sequence[int],
    weights: np.ndarray,
    *,
    tuner: str,
    shared: bool,
) -> Choice:
    """The best of a number of trials.

    Args:
      evaluate: the objective of every client.
      ranges: name -> range of each hyper-parameter.
      trials: how many.
      seeds: of the runs, also of design or sampler.
      weights: `[seeds, C]` rows of the clients, 0 for those who do not count.
      tuner: 'design' or 'optuna'.
      shared: one setting for all clients of a seed, or one for each client.
    """
    lead = weights.shape
    number = np.arange(weights.size).reshape(lead)
    group = number // lead[1] if shared else number  # [seeds, C]
    if tuner == "optuna":
        ask, tell = _studies(ranges, group, seeds)
        tried, losses = [], []
        for _ in range(trials):
            settings = ask()
            loss = _group_mean(evaluate(settings[:, :, None])[..., 0], weights, group)
            tell(loss)
            tried.append(settings)
            losses.append(loss)
        settings, loss = np.stack(tried, axis=2), np.stack(losses, axis=2)
    else:
        settings = designs(ranges, trials, seeds, lead[1])
        each = np.moveaxis(evaluate(settings), 2, 0)
        loss = np.stack([_group_mean(v, weights, group) for v in each], axis=2)
    best = loss.argmin(axis=2)[..., None]
    return Choice(
        np.take_along_axis(settings, best[..., None], axis=2)[:, :, 0],
        np.take_along_axis(loss, best, axis=2)[..., 0],
    )


def _group_mean(losses, weights, group) -> np.ndarray:
    """`[seeds, C]`: each client gets the mean of its group; infinite if any diverged."""
    heavy = np.where(weights > 0, weights, 0)
    finite = np.where(np.isfinite(losses), losses, math.inf)
    cost = np.where(heavy > 0, finite, 0) * np.where(heavy > 0, heavy, 1)
    total = np.bincount(group.ravel(), cost.ravel())
    share = np.maximum(np.bincount(group.ravel(), heavy.ravel()), 1)
    return (total / share)[group]


def _studies(ranges: dict[str, Range], group: np.ndarray, seeds):
    """Optuna's ask and tell, one study per group."""
    import optuna  # optional: costs a second, and most runs do without it

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    spaces = {
        name: optuna.distributions.FloatDistribution(r.low, r.high, log=r.logarithmic)
        for name, r in ranges.items()
    }
    first = [np.argwhere(group == g)[0] for g in range(group.max() + 1)]
    studies = [
        optuna.create_study(
            sampler=optuna.samplers.TPESampler(
                seed=int(
                    np.random.SeedSequence([seeds[seed], client]).generate_state(1)[0]
                )
            )
        )
        for seed, client in first
    ]
    asked: list = []

    def ask():
        asked[:] = [study.ask(spaces) for study in studies]
        drawn = [[trial.params[name] for name in ranges] for trial in asked]
        return np.array(drawn, np.float32)[group]

    def tell(loss):
        for study, trial, at in zip(studies, asked, first, strict=True):
            study.tell(trial, float(loss[tuple(at)]))

    return ask, tell

"""Which rounds and start give last returned models like the printed ones.

The first T rounds of a training are those of a training of T rounds, so every case is
trained once and looked at after each number of rounds.
"""

import math
from typing import NamedTuple

import jax
import numpy as np

from experiments.lmra import published
from experiments.lmra.clients import Clients
from experiments.lmra.federation import Trained
from experiments.lmra.scores import Judge
from experiments.lmra.settings import Case, Config, cases
from fljax.attacks.reconstruction import decoding


class Trial(NamedTuple):
    """One number of rounds and one start.

    Attributes:
      num_rounds: T.
      start_scale: standard deviation of the first model.
      accuracy: local steps -> `[seeds, A]` accuracy of the last returned models.
      gap: root mean square distance of the means to the printed ones, in points; NaN
        where a number of local steps is not printed.
    """

    num_rounds: int
    start_scale: float
    accuracy: dict[int, np.ndarray]
    gap: float


def search(run: Config, clients: Clients, trained: Trained) -> list[Trial]:
    """All pairs of rounds and start, the nearest to the printed numbers first.

    Args:
      run: with the rounds and starts.
      clients: whose rows the models are judged on.
      trained: from `federation.train`.
    """
    judge = Judge(clients, np.ones_like(trained.last[0]), run.attacked)
    every, found = cases(run), []
    for num_rounds in run.search_rounds:
        seen = trained.messages._replace(
            mask=np.asarray(trained.messages.mask)
            & (np.arange(run.num_rounds) < num_rounds)
        )
        last = jax.vmap(jax.vmap(jax.vmap(decoding.last_returned)))(seen)
        accuracy = judge(np.asarray(last)).train_accuracy_percent
        for scale in run.start_scales:
            by_steps = {
                case.local_steps: accuracy[at]
                for at, case in enumerate(every)
                if case.start_scale == scale
            }
            gap = _gap(by_steps)
            found.append(Trial(num_rounds, scale, by_steps, gap))
    return sorted(found, key=lambda each: each.gap)


def case_setting(steps: int, run: Config) -> str:
    """Setting of the rows."""
    return Case(steps, run.batch_sizes[0], 0.0).setting(run).partition(";")[0]


def _gap(by_steps: dict[int, np.ndarray]) -> float:
    printed = published.numbers()
    gaps = [
        values.mean()
        - printed.get((f"local_steps={e};mean", "last_returned"), math.nan)
        for e, values in by_steps.items()
    ]
    return float(np.sqrt(np.mean(np.square(gaps))))

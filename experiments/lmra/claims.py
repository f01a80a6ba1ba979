"""What section 4 of Xu & Neglia (2021) says of Table 1, as numbers of each draw.

That decoding beats the last returned model, and whether it beats always naming a client's
most frequent label, which the paper does not show; that local steps hardly matter; and
that the client that is least like the others gains most.
"""

import numpy as np

from experiments.lmra import scores
from experiments.lmra.clients import Clients
from experiments.lmra.published import OVER_LAST
from experiments.lmra.reporting import EXPERIMENT, MODEL, Attacked
from experiments.lmra.settings import Settings, cases
from fljax.results import Labels, Row

OVER_MAJORITY = "gain_over_majority_points"
OVER_OTHERS = "gain_of_least_alike_over_others_points"
BY_STEPS = "most_local_steps_over_fewest_points"


def rows(settings: Settings, clients: Clients, attacked: Attacked) -> list[Row]:
    """Of every decoder, each draw's number, a mean over its clients."""
    run, found = settings.run, []
    labels = Labels(EXPERIMENT, clients.task.name, MODEL)
    majority = scores.label_majority(clients, run.attacked)
    last = attacked.scores["last_returned"].train_accuracy_percent
    every = cases(run)
    for attack in attacked.decoded:
        own = attacked.scores[attack].train_accuracy_percent
        told = {
            case.setting(run): of_draws(own[at], last[at], majority, attacked.distances)
            for at, case in enumerate(every)
        }
        if len(run.local_steps) > 1:
            told["all local steps"] = {BY_STEPS: by_steps(run.local_steps, own)}
        found += [
            labels.row(attack, setting, seed, metric, value, run.attacked)
            for setting, numbers in told.items()
            for metric, values in numbers.items()
            for seed, value in zip(run.seeds, values, strict=True)
        ]
    return found


def of_draws(own, last, majority, distances) -> dict[str, np.ndarray]:
    """Metric -> `[seeds]` points, of one setting.

    Args:
      own: `[seeds, A]` accuracy of decoded models in percent.
      last: of last returned models.
      majority: of each client's most frequent label.
      distances: `[seeds, C, C]` between local optima; the least alike of the attacked
        is farthest from all others in the mean.
    """
    gain = own - last
    least = distances.mean(axis=2)[:, : own.shape[1]].argmax(axis=1)
    chosen = np.arange(own.shape[1]) == least[:, None]
    found = {
        OVER_LAST: gain.mean(axis=1),
        OVER_MAJORITY: (own - majority).mean(axis=1),
    }
    if own.shape[1] > 1:
        others = np.where(chosen, 0, gain).sum(axis=1) / (own.shape[1] - 1)
        found[OVER_OTHERS] = np.where(chosen, gain, 0).sum(axis=1) - others
    return found


def by_steps(local_steps, own) -> np.ndarray:
    """`[seeds]` points of the most local steps over the fewest; `own [cases, seeds, A]`.

    Where more than local steps is swept, the means of all cases with as many.
    """
    steps = np.resize(local_steps, len(own))
    means = [
        own[steps == at].mean(axis=(0, 2))
        for at in (max(local_steps), min(local_steps))
    ]
    return means[0] - means[1]

"""How sure an attack is of each row, and how rightly: rows of results.

Scores of a client are over its rows; those of all clients are over all rows together,
since a few rows cannot show whether a posterior is right.
"""

from collections.abc import Iterator

import numpy as np

from experiments.tabular.targets import Targets
from fljax import certainty
from fljax.results import Labels, Row


def rows(
    labels: Labels, attack: str, setting: str, probability: np.ndarray, targets: Targets
) -> list[Row]:
    """Of posteriors `[seeds, C, n, K]`: scores, and the calibration plot of each seed."""
    found = []
    for at, seed in enumerate(targets.seeds):
        given = probability[at], targets.value[at], targets.mask[at]
        about = attack, setting, seed
        for client in np.flatnonzero(targets.weights[at] > 0):
            mine = certainty.posterior(*(each[client] for each in given))
            found += _scores(labels, about, mine, int(client))
        everyone = certainty.posterior(*given)
        found += _scores(labels, about, everyone, "all")
        found += _plot(labels, about, everyone)
    return found


def _scores(
    labels: Labels, about, given: certainty.Posterior, client: int | str
) -> Iterator[Row]:
    for metric, value in certainty.scores(given).items():
        yield labels.row(*about, metric, value, len(given.truth), client)


def _plot(labels: Labels, about, given: certainty.Posterior) -> Iterator[Row]:
    """Accuracy of the rows of each bin of confidence."""
    for metric, percent, count in certainty.plotted(certainty.bins(given)):
        yield labels.row(*about, metric, percent, count)

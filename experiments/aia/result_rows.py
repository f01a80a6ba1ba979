"""From numbers of every client and seed to rows of results."""

import numpy as np

from experiments.tabular.targets import Targets
from fljax import metrics
from fljax.results import Labels, Row


def by_client(
    labels: Labels, attack: str, setting: str, metric: str, values: np.ndarray,
    targets: Targets,
) -> list[Row]:  # fmt: skip
    """Rows of numbers `[seeds, C]`: each client's, and their mean weighted by rows.

    A client who sent no message has no row. A number that is not finite stays one, in
    its row and in the mean.
    """
    return _rows(labels, (attack, setting), metric, values, targets, _mean)


def half_widths(
    labels: Labels, attack: str, setting: str, metric: str, values: np.ndarray,
    targets: Targets,
) -> list[Row]:  # fmt: skip
    """The same of half widths of intervals, and that of the weighted mean."""
    return _rows(labels, (attack, setting), metric, values, targets, _of_mean)


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    return metrics.weighted_mean(values, weights)


def _of_mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Clients' errors are independent of each other."""
    return float(np.sqrt(np.square(weights * values).sum()) / weights.sum())


def _rows(labels: Labels, about, metric, values, targets: Targets, combined):
    counts = targets.mask.sum(axis=-1)
    rows = []
    for at, each in enumerate(values):
        present = np.flatnonzero(targets.weights[at] > 0)
        if not len(present):
            continue
        where = *about, targets.seeds[at], metric
        rows += [
            labels.row(*where, each[client], counts[at, client], int(client))
            for client in present
        ]
        total = combined(each[present], targets.weights[at][present])
        rows.append(labels.row(*where, total, counts[at][present].sum()))
    return rows

"""Compares guesses with the truth: from predictions to rows of results.

This is the only stage of an experiment that sees the sensitive attribute.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.clients import Clients
from experiments.passive import Grid
from fljax import metrics
from fljax.attacks import attribute
from fljax.results import Row

ACCURACY = "aia_accuracy_percent"
ERROR = "aia_mean_absolute_error"
BOUND = "aia_accuracy_bound_percent"


class Labels(NamedTuple):
    """What every row of one run has in common.

    Attributes:
      experiment, data, model, defense, point: as in `results.Row`.
      seeds: seed of each repetition.
    """

    experiment: str
    data: str
    model: str
    defense: str
    point: str
    seeds: Sequence[int]

    def row(self, seed: int, attack, setting, client, metric, value, n) -> Row:
        return Row(
            self.experiment, self.data, self.model, self.defense, attack, setting,
            self.point, int(self.seeds[seed]), client, metric, float(value), int(n),
        )  # fmt: skip


class Target(NamedTuple):
    """The truth that guesses are scored against.

    Attributes:
      truth: `[seeds, C, n]`.
      mask: `[seeds, C, n]`.
      weights: `[seeds, C]` rows of each client, for the weighted mean.
      continuous: whether the attribute is continuous.
    """

    truth: np.ndarray
    mask: np.ndarray
    weights: np.ndarray
    continuous: bool


def target(clients: Clients, seen: np.ndarray, *, pooled: bool) -> Target:
    """Each client's own rows, or all clients' rows for every client.

    Args:
      clients: from `clients.gather`.
      seen: `[seeds, C]` bool, False for clients who sent no message: nothing is scored.
      pooled: which rows.
    """
    truth, mask = clients.truth, clients.known.mask
    if pooled:
        truth, mask = pool(truth), pool(mask)
    continuous = clients.datasets[0].attribute.kind == "continuous"
    return Target(truth, mask & seen[..., None], clients.sizes * seen, continuous)


def pool(leaf: np.ndarray) -> np.ndarray:
    """`[seeds, C, n, ...]` -> `[seeds, C, C n, ...]`: everyone's rows for everyone."""
    seeds, count, rows = leaf.shape[:3]
    flat = leaf.reshape(seeds, 1, count * rows, *leaf.shape[3:])
    return np.broadcast_to(flat, (seeds, count, *flat.shape[2:]))


def guesses(
    labels: Labels, attack: str, setting: str, guess: np.ndarray, goal: Target
) -> list[Row]:
    """Rows of one attack from `guess [seeds, C, n]`."""
    measure = metrics.mean_absolute_error if goal.continuous else metrics.accuracy
    scale = 1 if goal.continuous else 100
    values = np.array(
        [[scale * measure(*one) for one in zip(*seed, strict=True)]
         for seed in zip(guess, goal.truth, goal.mask, strict=True)]
    )  # fmt: skip
    metric = ERROR if goal.continuous else ACCURACY
    return by_client(labels, attack, setting, metric, values, goal)


def baseline(labels: Labels, goal: Target) -> list[Row]:
    """Each client's most frequent value, or her median for a continuous attribute."""
    guess = np.zeros_like(goal.truth)
    for seed, client in np.ndindex(goal.truth.shape[:2]):
        known = goal.truth[seed, client][goal.mask[seed, client]]
        if not len(known):
            continue
        if goal.continuous:
            guess[seed, client] = np.median(known)
        else:
            guess[seed, client] = np.bincount(known).argmax()
    return guesses(labels, "majority", "baseline", guess, goal)


def grid(labels: Labels, found: Grid, goal: Target) -> list[Row]:
    """`grad` (best cosine similarity) and `grad_oracle` (best accuracy).

    As in the authors' code one setting is chosen for all clients, on their mean
    weighted by rows.
    """
    hits = found.index == goal.truth[:, :, None, None, :]
    mask = goal.mask[:, :, None, None, :]
    accuracy = (hits & mask).sum(-1) / np.maximum(mask.sum(-1), 1)  # [seeds, C, F, L]
    weights = goal.weights[..., None, None]
    total = np.maximum(weights.sum(axis=1), 1)
    mean_accuracy = (weights * accuracy).sum(axis=1) / total
    distance = np.where(weights > 0, found.dissimilarity, 0)
    mean_distance = (weights * distance).sum(axis=1) / total
    rows = []
    choices = {
        "grad": np.where(np.isnan(mean_distance), np.inf, mean_distance),
        "grad_oracle": -mean_accuracy,
    }
    for attack, cost in choices.items():
        best = cost.reshape(len(cost), -1).argmin(axis=1)
        flat = accuracy.reshape(*accuracy.shape[:2], -1)
        values = np.take_along_axis(flat, best[:, None, None], axis=2)[..., 0]
        rows += by_client(labels, attack, "passive", ACCURACY, 100 * values, goal)
    return rows


def bounds(
    labels: Labels, attack: str, setting: str, weight: np.ndarray, gap: np.ndarray,
    mean_squared_error: np.ndarray, goal: Target,
) -> list[Row]:  # fmt: skip
    """Proposition 1 beside a model-based result; arguments `[seeds, C]`."""
    bound = attribute.least_squares_bound(mean_squared_error, weight, gap)
    values = 100 * np.asarray(bound)
    return by_client(labels, attack, setting, BOUND, values, goal)


def by_client(
    labels: Labels, attack: str, setting: str, metric: str, values: np.ndarray,
    goal: Target,
) -> list[Row]:  # fmt: skip
    """Rows of numbers `[seeds, C]`: each client's, and their mean weighted by rows.

    A client who sent no message has no row. A number that is not finite stays one, in
    her row and in the mean.
    """
    counts = goal.mask.sum(axis=-1)
    rows = []
    for seed, each in enumerate(values):
        heard = np.flatnonzero(goal.weights[seed] > 0)
        for client in heard:
            number = counts[seed, client]
            rows.append(
                labels.row(
                    seed, attack, setting, int(client), metric, each[client], number
                )
            )
        if len(heard):
            mean = metrics.weighted_mean(each[heard], goal.weights[seed][heard])
            number = counts[seed][heard].sum()
            rows.append(labels.row(seed, attack, setting, "all", metric, mean, number))
    return rows

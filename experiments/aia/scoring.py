"""Compares guesses with the truth: from predictions to rows of results.

This is the only stage of an experiment that sees the sensitive attribute.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.aia.clients import Clients
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
      unit: `[seeds]` of one encoded unit of it, in units of the data set.
    """

    truth: np.ndarray
    mask: np.ndarray
    weights: np.ndarray
    continuous: bool
    unit: np.ndarray


class Grid(NamedTuple):
    """Gradient-based attack for every setting `F` and learning rate `L`.

    Attributes:
      index: `[seeds, C, F, L, n]` int16 inferred candidates.
      dissimilarity: `[seeds, C, F, L]`.
    """

    index: np.ndarray
    dissimilarity: np.ndarray


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
    unit = np.array([float(each.encoder.scale[-1]) for each in clients.datasets])
    mask = mask & seen[..., None]
    return Target(truth, mask, clients.sizes * seen, continuous, unit)


def only(goal: Target, reached: np.ndarray) -> Target:
    """The same without the clients outside `reached [seeds, C]`."""
    mask = goal.mask & reached[..., None]
    return goal._replace(mask=mask, weights=goal.weights * reached)


def pool(leaf: np.ndarray) -> np.ndarray:
    """`[seeds, C, n, ...]` -> `[seeds, C, C n, ...]`: everyone's rows for everyone."""
    seeds, count, rows = leaf.shape[:3]
    flat = leaf.reshape(seeds, 1, count * rows, *leaf.shape[3:])
    return np.broadcast_to(flat, (seeds, count, *flat.shape[2:]))


def guesses(
    labels: Labels, attack: str, setting: str, guess: np.ndarray, goal: Target
) -> list[Row]:
    """Rows of one attack from `guess [seeds, C, n]`; errors in units of the data set."""
    measure = metrics.mean_absolute_error if goal.continuous else metrics.accuracy
    values = np.array(
        [[measure(*one) for one in zip(*seed, strict=True)]
         for seed in zip(guess, goal.truth, goal.mask, strict=True)]
    )  # fmt: skip
    values *= goal.unit[:, None] if goal.continuous else 100
    metric = ERROR if goal.continuous else ACCURACY
    return by_client(labels, attack, setting, metric, values, goal)


def posterior(
    labels: Labels, attack: str, setting: str, probability: np.ndarray, goal: Target
) -> list[Row]:
    """How good and how honest `probability [seeds, C, n, K]` is."""
    rows = []
    for measure in (metrics.brier_score, metrics.calibration_error):
        values = np.array(
            [[measure(*one) for one in zip(*seed, strict=True)]
             for seed in zip(probability, goal.truth, goal.mask, strict=True)]
        )  # fmt: skip
        rows += by_client(labels, attack, setting, measure.__name__, values, goal)
    return rows


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


def grid(
    labels: Labels, found: Grid, goal: Target, setting: str, allowed: np.ndarray
) -> list[Row]:
    """`grad` (best cosine similarity) and `grad_oracle` (best accuracy).

    As in the authors' code one setting is chosen for all clients, on their mean
    weighted by rows, here among those that are `allowed [F]`.
    """
    index = found.index[:, :, allowed]
    hits = index == goal.truth[:, :, None, None, :]
    mask = goal.mask[:, :, None, None, :]
    accuracy = (hits & mask).sum(-1) / np.maximum(mask.sum(-1), 1)  # [seeds, C, F, L]
    weights = goal.weights[..., None, None]
    total = np.maximum(weights.sum(axis=1), 1)
    mean_accuracy = (weights * accuracy).sum(axis=1) / total
    distance = np.where(weights > 0, found.dissimilarity[:, :, allowed], 0)
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
        rows += by_client(labels, attack, setting, ACCURACY, 100 * values, goal)
    return rows


def better(
    rows: Sequence[Row], attack: str, one: tuple[str, str], other: tuple[str, str]
) -> list[Row]:
    """Seed by seed the more accurate of two attacks, as rows of another name.

    Args:
      rows: of one point.
      attack: the new name; the setting is that of `one`.
      one: attack and setting.
      other: attack and setting.
    """
    found: dict[int, dict[tuple[str, str], list[Row]]] = {}
    for row in rows:
        if row.metric == ACCURACY and (row.attack, row.setting) in (one, other):
            both = found.setdefault(row.seed, {})
            both.setdefault((row.attack, row.setting), []).append(row)

    def mean(each: list[Row]) -> float:
        return next(row.value for row in each if row.client == "all")

    return [
        row._replace(attack=attack, setting=one[1])
        for both in found.values()
        for row in max(both.values(), key=mean)
    ]


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

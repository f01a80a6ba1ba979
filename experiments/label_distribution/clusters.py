"""Figures 2 to 4: what the principal components of clients' messages look like.

Clients of two kinds, as many of each dominant label: `80_20` has 80 % of it and the rest
evenly, `dirichlet` proportions from a symmetric Dirichlet whose largest entry is put at
the dominant label. Two components of the whole message and of each layer, with two
numbers for what the eye sees: the silhouette of the dominant labels (scikit-learn; 1 is
best, about 0 without clusters), and how often the centroid of the other clients of its
label is the nearest to a client (leave-one-out). Baselines are the means of both over
shuffled labels. On CIFAR-10 (Figure 3) also for animals against vehicles, and how near to
each other the centroids of the labels are that the paper calls similar: their mean distance
over that of any two labels, which is 1 on average where labels change names.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.label_distribution.settings import Config
from experiments.label_distribution.task import Task
from experiments.label_distribution.training import Programs
from fljax.attacks.label_distribution import pca, shadow_clients
from fljax.defenses.specs import NONE
from fljax.types import Params

KINDS = ("80_20", "dirichlet")
WHOLE = "all_layers"
_SHARES, _CLIENTS = 20, 21  # streams of a seed
_SHARE, _SHUFFLES = 0.8, 20
_VEHICLES = ("airplane", "automobile", "ship", "truck")
_SIMILAR = (("cat", "dog"), ("automobile", "truck"), ("airplane", "ship"))


class Cloud(NamedTuple):
    """One layer's messages of one kind of clients.

    Attributes:
      seed: of their draws and model.
      kind: of `KINDS`.
      layer: its name, or `WHOLE`.
      points: `[n, 2]` principal components.
      label: `[n]` each client's dominant label.
      share: `[n]` of that label among its rows.
    """

    seed: int
    kind: str
    layer: str
    points: np.ndarray
    label: np.ndarray
    share: np.ndarray


def clouds(run: Config, task: Task) -> Iterator[Cloud]:
    """Trains the clients of every seed and kind and yields their clouds."""
    programs = Programs(run, task)
    program, pool = programs.of(NONE), programs.placed(task.proxy)
    for seed, (number, kind) in itertools.product(run.seeds, enumerate(KINDS)):
        key, sent = jax.random.key(seed), task.init(seed)
        shares = proportions(
            jax.random.fold_in(key, _SHARES), kind, run, len(task.classes)
        )
        found = shadow_clients.chunks(
            program, jax.random.fold_in(key, _CLIENTS + number),
            np.arange(run.cluster_clients), shares, sent, pool, (),
            size=run.chunk,
        )  # fmt: skip
        deltas, labels = map(np.concatenate, zip(*jax.device_get(list(found))))
        for layer, places in _layers(sent).items():
            chosen = jnp.asarray(deltas[:, places])
            points = np.asarray(pca.project(pca.fit(chosen, 2), chosen))
            yield Cloud(seed, kind, layer, points, labels.argmax(1), labels.max(1))


def proportions(key, kind: str, run: Config, num_labels: int) -> np.ndarray:
    """`[n, K]`, the largest entry of client i at label i modulo K."""
    count = run.cluster_clients
    dominant = np.arange(count) % num_labels
    if kind == "80_20":
        rest = (1 - _SHARE) / (num_labels - 1)
        shares = np.full((count, num_labels), rest, np.float32)
        shares[np.arange(count), dominant] = _SHARE
        return shares
    drawn, _ = shadow_clients.dirichlet(key, (run.cluster_alpha,), count, num_labels)
    shares = np.array(drawn)
    largest = shares.argmax(1)
    at = np.arange(count)
    shares[at, largest], shares[at, dominant] = (
        shares[at, dominant],
        shares[at, largest],
    )
    return shares


def measures(cloud: Cloud, classes: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Metric -> value and its mean over shuffled labels."""
    rng = np.random.default_rng([cloud.seed, 3])
    found = _separations(cloud.points, cloud.label, rng)
    if not set(_VEHICLES) < set(classes):
        return found
    vehicles = np.isin(cloud.label, [classes.index(name) for name in _VEHICLES])
    apart = _separations(cloud.points, vehicles.astype(int), rng)
    found |= {f"{name}_vehicles": value for name, value in apart.items()}
    if len(np.unique(cloud.label)) < len(classes):
        return found
    pairs = np.array([[classes.index(name) for name in pair] for pair in _SIMILAR])
    renamed = [rng.permutation(len(classes))[pairs] for _ in range(_SHUFFLES)]
    near = [pair_distance(cloud.points, cloud.label, one) for one in (pairs, *renamed)]
    return found | {"distance_of_similar_labels": (near[0], float(np.mean(near[1:])))}


def _separations(points, label, rng) -> dict[str, tuple[float, float]]:
    """How far labels are apart, and its mean over shuffled ones."""
    found = {}
    for name, measure in (
        ("silhouette", silhouette),
        ("nearest_centroid_percent", nearest_centroid),
    ):
        chance = [measure(points, rng.permutation(label)) for _ in range(_SHUFFLES)]
        found[name] = measure(points, label), float(np.mean(chance))
    return found


def pair_distance(points: np.ndarray, label: np.ndarray, pairs: np.ndarray) -> float:
    """Mean distance of the centroids of pairs of labels over that of any two.

    Args:
      points: `[n, 2]`.
      label: `[n]` from 0 to K - 1, each of which occurs.
      pairs: `[P, 2]` labels.
    """
    member = label[None] == np.arange(label.max() + 1)[:, None]  # [K, n]
    centroids = member @ points / member.sum(1, keepdims=True)
    distance = np.linalg.norm(centroids[:, None] - centroids[None], axis=2)
    any_two = distance[np.triu_indices(len(distance), 1)]
    return float(distance[pairs[:, 0], pairs[:, 1]].mean() / any_two.mean())


def silhouette(points: np.ndarray, label: np.ndarray) -> float:
    """Mean silhouette of labelled points `[n, 2]`, from -1 to 1."""
    from sklearn.metrics import silhouette_score  # slow import

    return float(silhouette_score(points, label))


def nearest_centroid(points: np.ndarray, label: np.ndarray) -> float:
    """Percent of points nearest to the centroid of the others of their label."""
    points = np.asarray(points, np.float64)
    names = np.unique(label)
    member = (label[:, None] == names[None]).astype(float)  # [n, K]
    sums, counts = member.T @ points, member.sum(0)
    left = np.maximum(counts[None] - member, 1)
    centroids = (sums[None] - member[..., None] * points[:, None]) / left[..., None]
    distance = np.linalg.norm(points[:, None] - centroids, axis=2)
    alone = member * (counts[None] == 1)
    distance = np.where(alone > 0, np.inf, distance)
    return float(100 * np.mean(names[distance.argmin(1)] == label))


def _layers(params: Params) -> dict[str, np.ndarray]:
    """Name of a layer -> its places in a raveled message, from the input on."""
    found: dict[str, list[np.ndarray]] = {}
    begin = 0
    for where, leaf in jax.tree_util.tree_leaves_with_path(params):
        name = jax.tree_util.keystr(where[:1], simple=True)
        found.setdefault(name, []).append(np.arange(begin, begin + leaf.size))
        begin += leaf.size
    order = sorted(found, key=lambda name: (name.startswith("Dense"), name))
    whole = {WHOLE: np.arange(begin)}
    return whole | {name: np.concatenate(found[name]) for name in order}

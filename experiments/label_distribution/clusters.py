"""Figures 2 to 4: what the principal components of clients' messages look like.

Clients of two kinds, as many of each dominant label: `80_20` has 80 % of it and the rest
evenly, `dirichlet` proportions from a symmetric Dirichlet whose largest entry is put at
the dominant label. Two components of the whole message and of each layer, with two
numbers for what the eye sees: the silhouette of the dominant labels (scikit-learn; 1 is
best, about 0 without clusters), and how often the centroid of the other clients of its
label is the nearest to a client (leave-one-out). Baselines are the means of both over
shuffled labels. On CIFAR-10 also for animals against vehicles (Figure 3).
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
    groups = {"": cloud.label}
    if set(_VEHICLES) < set(classes):
        vehicles = [classes.index(name) for name in _VEHICLES]
        groups["_vehicles"] = np.isin(cloud.label, vehicles).astype(int)
    rng = np.random.default_rng([cloud.seed, 3])
    found = {}
    for suffix, label in groups.items():
        for name, measure in (
            ("silhouette", silhouette),
            ("nearest_centroid_percent", nearest_centroid),
        ):
            chance = [
                measure(cloud.points, rng.permutation(label)) for _ in range(_SHUFFLES)
            ]
            found[name + suffix] = measure(cloud.points, label), float(np.mean(chance))
    return found


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

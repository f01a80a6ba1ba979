"""Clouds of messages: who is drawn, and how far labels are apart."""

import jax
import numpy as np
import pytest

from experiments.label_distribution import clusters
from experiments.label_distribution.settings import Config


@pytest.mark.parametrize("kind", clusters.KINDS)
def test_dominant_labels_are_equally_many(kind):
    run = Config(cluster_clients=40)
    shares = clusters.proportions(jax.random.key(0), kind, run, 10)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-5)
    assert np.bincount(shares.argmax(1)).tolist() == [4] * 10
    if kind == "80_20":
        assert np.allclose(shares.max(1), 0.8)


def test_centroids_leave_the_client_out():
    points = np.array([[0.0, 0], [1, 0], [10, 0], [11, 0]])
    assert clusters.nearest_centroid(points, np.array([0, 0, 1, 1])) == 100
    assert clusters.nearest_centroid(points, np.array([0, 1, 0, 1])) == 0
    # A client that is alone with its label cannot be nearest to it.
    points = np.array([[10.0, 0], [11, 0], [0, 0]])
    assert clusters.nearest_centroid(points, np.array([0, 0, 1])) == pytest.approx(
        200 / 3
    )


def test_pairs_of_labels_are_near_where_their_clients_are():
    points = np.array([[0.0, 0], [2, 0], [1, 1], [1, -1], [10, 0]])
    label = np.array([0, 0, 1, 1, 2])  # two labels share a centroid, 9 from the third
    near = clusters.pair_distance(points, label, np.array([[0, 1]]))
    assert near == 0
    far = clusters.pair_distance(points, label, np.array([[0, 1], [1, 2]]))
    assert far == pytest.approx(4.5 / 6)


def test_similar_labels_of_cifar_are_measured_where_all_occur():
    classes = [
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship",
        "truck",
    ]  # fmt: skip
    places = np.arange(10.0)
    for one, two in (("cat", "dog"), ("automobile", "truck"), ("airplane", "ship")):
        places[classes.index(two)] = places[classes.index(one)]
    label = np.tile(np.arange(10), 3)
    points = np.stack([places[label], np.zeros(30)], axis=1)
    cloud = clusters.Cloud(0, "80_20", "all_layers", points, label, label * 0 + 0.8)
    value, chance = clusters.measures(cloud, classes)["distance_of_similar_labels"]
    assert value == 0 and chance == pytest.approx(1, abs=0.3)
    some = cloud._replace(points=points[:8], label=np.arange(8) // 2)
    assert "distance_of_similar_labels" not in clusters.measures(some, classes)

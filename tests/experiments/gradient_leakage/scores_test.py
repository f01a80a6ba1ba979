"""Scores of a reconstruction: success, iterations, distances and labels."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.gradient_leakage import program, scores, truth
from fljax.attacks.inversion import Inversion


def test_success_counts_iterations_and_all_images(completed):
    x = np.zeros((2, 4, 4, 1), np.float32)
    x[1] = 1
    guess = x[::-1] + 0.001  # in another order
    path = np.stack([guess + 1, guess, guess])
    found = Inversion(guess, np.array([1, 0]), 0.5, None, path, 0, 3)
    run = completed("--iterations=5", "--record_every=2")
    everything = np.ones(x.shape[1:], bool)
    score = scores.score(run, found, x, np.array([0, 1]), everything)
    assert score.values["attack_success"] == 1
    assert score.values["attack_iterations"] == 4
    assert score.values["reconstruction_distance"] == pytest.approx(0.001, rel=1e-3)
    assert score.values["label_accuracy"] == 1
    np.testing.assert_allclose(score.x, x, atol=0.0011)
    assert score.path.shape == (3, 4, 4, 1)
    half = found._replace(path=np.stack([x + np.array([0, 1]).reshape(2, 1, 1, 1)] * 3))
    missed = scores.score(run, half, x, np.array([0, 0]), everything)
    assert missed.values["attack_success"] == 0
    assert missed.values["attack_iterations"] == 5
    assert missed.values["iterations_run"] == 3
    assert missed.values["label_accuracy"] == 0.5


def test_labels_are_compared_whatever_image_each_is_of(completed):
    x = np.zeros((2, 4, 4, 1), np.float32)
    x[1] = 1
    everything = np.ones(x.shape[1:], bool)
    for labels, share in (([1, 0], 1), ([0, 1], 1), ([1, 1], 0.5), ([2, 2], 0)):
        found = Inversion(x, np.array(labels), 0.5, None, x[None], 0, 3)
        score = scores.score(completed(), found, x, np.array([0, 1]), everything)
        assert score.values["label_accuracy"] == share


def test_pixels_that_the_network_never_reads_do_not_count_where_it_reads(completed):
    x = np.zeros((1, 4, 4, 1), np.float32)
    guess = x.copy()
    guess[:, -1] = 1
    read = np.ones((4, 4, 1), bool)
    read[-1] = False
    found = Inversion(guess, np.array([0]), 0.5, None, guess[None], 0, 3)
    score = scores.score(completed(), found, x, np.array([0]), read)
    assert score.values["distance_cut_to_range"] == pytest.approx(0.5)
    assert score.values["distance_where_read"] == 0


def test_every_measure_of_an_image_and_its_label_has_a_level_of_chance(completed):
    """Computed by the code that scores an attack, so that they can be compared."""
    run = completed("--clients=3", "--success_rmse=0.6")
    x = np.random.default_rng(0).uniform(size=(3, 2, 8, 8, 1)).astype(np.float32)
    y = np.array([[1, 1], [2, 1], [0, 3]], np.int32)
    mean = np.full((8, 8, 1), 0.5, np.float32)
    read = np.zeros((8, 8, 1), bool)
    read[:4] = True
    attacked = truth.Truth(x, y)
    levels = scores.baselines(run, attacked, mean, read)
    begun = scores._begun(run, x.shape, None)
    for client, name in itertools.product(range(3), ("mean_image", "seed_images")):
        guess = np.stack([mean, mean]) if name == "mean_image" else begun[client]
        found = Inversion(guess, y[client], 0.0, None, guess[None], 0, 1)
        score = scores.score(run, found, x[client], y[client], read).values
        without = {
            "attack_iterations", "iterations_run", "label_accuracy", "matching_loss"
        }  # fmt: skip
        assert levels[name].keys() == score.keys() - without
        for metric, values in levels[name].items():
            assert values[client] == pytest.approx(score[metric]), metric
    assert len(np.unique(levels["seed_image"]["mse"])) == 3
    assert levels["majority_class"]["label_accuracy"].tolist() == [1, 0.5, 0]


def test_labels_without_a_message_are_those_that_are_right_most_often(completed):
    rng, mean = np.random.default_rng(0), np.zeros((8, 8, 1), np.float32)
    attacked = truth.Truth(
        np.zeros((400, 3, 8, 8, 1), np.float32), rng.integers(5, size=(400, 3))
    )
    read = np.ones((8, 8, 1), bool)
    told = [attacked, mean, read]
    levels = scores.baselines(completed("--images=3", "--types=0"), *told)
    found = levels["frequent_classes"]["label_accuracy"].mean()
    distinct = (attacked.y[..., None] == np.arange(3)).any(axis=1).sum(
        axis=1
    ).mean() / 3
    assert found == pytest.approx(distinct, abs=0.03)
    assert found > 1.5 * levels["majority_class"]["label_accuracy"].mean()
    alone = truth.first(attacked, 1), mean, read
    assert "frequent_classes" not in scores.baselines(completed("--types=2"), *alone)


def test_a_level_of_chance_succeeds_where_every_image_does(completed):
    run = completed("--clients=3", "--success_rmse=0.3")
    x = np.full((3, 2, 8, 8, 1), 0.5, np.float32)
    x[1, 1] = x[2] = 1.0  # one image of a client is far from the mean, and both
    mean, read = np.full((8, 8, 1), 0.5, np.float32), np.ones((8, 8, 1), bool)
    attacked = truth.Truth(x, np.zeros((3, 2), np.int32))
    found = scores.baselines(run, attacked, mean, read)["mean_image"]
    assert found["attack_success"].tolist() == [1, 0, 0]


def test_chance_is_of_as_many_images_as_an_attack_seeks(completed):
    run = completed("--images=4", "--types=0,2", "--success_rmse=0.25")
    x = np.random.default_rng(0).uniform(size=(60, 4, 8, 8, 1)).astype(np.float32)
    mean, read = np.full((8, 8, 1), 0.5, np.float32), np.ones((8, 8, 1), bool)
    x = mean + (x - 0.5) * np.linspace(0, 1.8, 60)[:, None, None, None, None]
    attacked = truth.Truth(x, np.zeros((60, 4), np.int32))
    given = (
        SimpleNamespace(mean=mean, public=None),
        attacked,
        SimpleNamespace(read=read),
    )
    levels = program._chance(run, *given)
    for name, count in (("mean_image", 4), ("mean_image_of_one", 1)):
        found = [
            scores.score(
                run,
                Inversion(guess, labels[:count], 0.0, None, guess[None], 0, 1),
                images[:count],
                labels[:count],
                read,
            ).values
            for images, labels in zip(*attacked, strict=True)
            for guess in [np.broadcast_to(mean, (count, *mean.shape))]
        ]
        for metric in ("attack_success", "reconstruction_distance"):
            wanted = [each[metric] for each in found]
            np.testing.assert_allclose(levels[name][metric], wanted, rtol=1e-6)
    alone = program._chance(completed("--images=4", "--types=2"), *given)
    assert "mean_image_of_one" not in alone
    assert len(alone["mean_image"]["attack_success"]) == 60

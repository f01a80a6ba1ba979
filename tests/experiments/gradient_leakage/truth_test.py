"""Images that are attacked, and the pixels of them that a network reads."""

import jax
import numpy as np
import pytest

from experiments.gradient_leakage import settings, targets, truth
from fljax import models
from fljax.driver.config import ConfigError


def test_pooling_leaves_out_the_last_two_rows_and_columns_of_28():
    model = models.cnn((28, 28, 1), 10)
    read = targets.pixels_read(model, model.init(jax.random.key(0)), (28, 28, 1))[
        ..., 0
    ]
    assert read[:26, :26].all()
    assert not read[26:].any() and not read[:, 26:].any()


def test_one_half_of_cifar10_has_a_name_of_its_own(told, images_by_name):
    asked = told("--data_name=cifar10", "--data_subset=half", "--clients=3")
    assert truth.load(*settings.complete(asked))[0].name == "cifar10_half"


def test_no_image_is_attacked_twice(told):
    _, found = truth.load(*settings.complete(told("--clients=60", "--images=5")))
    assert found.x.shape == (60, 5, 8, 8, 1)
    assert 0 <= found.x.min() < found.x.max() == 1
    rows = found.x.reshape(300, -1)
    assert len(np.unique(rows, axis=0)) == 300
    classes = [len(np.unique(labels)) for labels in found.y]
    assert max(classes) <= 2


def test_images_of_one_label_are_of_the_clients_most_frequent_one(told):
    asked = told("--clients=9", "--images=4", "--one_label")
    _, found = truth.load(*settings.complete(asked))
    assert (found.y == found.y[:, :1]).all()
    assert len(np.unique(found.x.reshape(36, -1), axis=0)) > 30  # images of nobody else
    asked = told("--clients=60", "--images=50", "--one_label")
    with pytest.raises(ConfigError, match="--images=50 images of one label each"):
        truth.load(*settings.complete(asked))

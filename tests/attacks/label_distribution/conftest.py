"""A small network on digits, the attacker's proxy rows and the clients' own."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import optax
import pytest

from fljax import data, local, losses, models, parallel
from fljax.attacks.label_distribution import shadow_clients
from fljax.defenses import noise
from fljax.types import Features


class Digits(NamedTuple):
    """Loss, parameters sent, proxy pool and the clients' pool, of one size."""

    loss_fn: Callable
    sent: dict
    proxy: shadow_clients.Pool
    own: shadow_clients.Pool


def _features(x):
    flat = np.asarray(x, np.float32).reshape(len(x), -1) / 16
    return Features(flat, np.zeros((len(x), 0), np.int32))


@pytest.fixture(scope="session")
def digits():
    images = data.load_images("digits")
    x, y = images.train
    model = models.mlp(64, hidden=(32,), outputs=10)
    return Digits(
        losses.example_loss(model.apply, losses.cross_entropy),
        jax.jit(model.init)(jax.random.key(0)),
        shadow_clients.pool(_features(x[:700]), y[:700], 10),
        shadow_clients.pool(_features(x[700:1400]), y[700:1400], 10),
    )


@pytest.fixture(scope="session")
def rate():
    """The clients' learning rate."""
    return 0.01


@pytest.fixture(scope="session")
def recipe(digits, rate):
    """Makes a recipe; its number is the deviation of noise on the message."""

    # The same object for the same arguments: programs are compiled per recipe.
    @functools.cache
    def make(rows=72, batch_size=16, epochs=2):
        def train_with(scale):
            noisy = noise.gaussian(scale).encode
            return local.sgd(digits.loss_fn, optax.sgd(rate), encode=noisy)

        return shadow_clients.Recipe(train_with, rows, batch_size, epochs)

    return make


@pytest.fixture(scope="session")
def program(recipe):
    """Makes the program that trains one chunk of clients."""

    @functools.cache
    def make(lanes=4, devices=2):
        return shadow_clients.compiled(recipe(), parallel.mesh(devices), lanes)

    return make


@pytest.fixture(scope="session")
def train():
    """Trains one client; compiled once per recipe."""
    return jax.jit(shadow_clients.train, static_argnames="recipe")


@pytest.fixture(scope="session")
def one_row_each(digits):
    """A pool with a single row of each label."""
    x = jax.tree.map(lambda leaf: leaf[digits.proxy.first], digits.proxy.x)
    return shadow_clients.pool(x, np.arange(10), 10)

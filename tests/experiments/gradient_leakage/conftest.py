"""What the program is told, from flags; a model that compiles at once, its views."""

import jax
import numpy as np
import pytest

from experiments.gradient_leakage import program, settings, views
from fljax import losses, models
from fljax.defenses import clipping


@pytest.fixture(scope="session")
def told(parsed):
    """Reads flags as the program does."""

    def read(*arguments):
        return parsed(program.PROGRAM, *arguments)

    return read


@pytest.fixture(scope="session")
def completed(told):
    """The configuration of a run on two images, from further flags."""

    def complete(*arguments):
        return settings.complete(told("--images=2", *arguments)).run

    return complete


@pytest.fixture
def linear():
    """Loss, params and images of a softmax regression, of two layers for a clip."""
    module = models.cnn((4, 4, 1), 3, channels=(), use_bias=True)
    params = jax.jit(module.init)(jax.random.key(3))
    x = np.random.default_rng(0).uniform(size=(2, 4, 4, 1)).astype(np.float32)
    y = np.array([2, 0], np.int32)
    return losses.example_loss(module.apply, losses.cross_entropy), params, x, y


@pytest.fixture
def see_view(linear):
    """What a view of its images shows."""

    def see(run, view, pruned=0.0):
        loss_fn, params, x, y = linear
        observe = views.observe(run, view, loss_fn, clipping.num_layers(params))
        clips = views.clips(run, view.shown)
        return jax.jit(observe)(jax.random.key(5), params, x, y, clips, pruned)

    return see


@pytest.fixture(scope="session")
def distance():
    """The largest difference of an entry of two messages."""

    def largest(one, other):
        one, other = jax.device_get((one, other))
        difference = jax.tree.map(lambda a, b: np.abs(a - b).max(), one, other)
        return max(map(float, jax.tree.leaves(difference)))

    return largest

"""A small network, its messages, images to plant and attacks compiled once."""

import functools
import itertools

import jax
import numpy as np
import pytest

from fljax import losses
from fljax.attacks.inversion import Budget, points, presets, solvers
from fljax.types import Model


class Images:
    """Called with a number: that many images of noise, and their labels."""

    shape, classes = (8, 8, 1), 4

    def __call__(self, count, seed=0):
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=(count, *self.shape)).astype(np.float32)
        return x, np.arange(count, dtype=np.int32) % self.classes


@pytest.fixture(scope="session")
def images():
    return Images()


@pytest.fixture(scope="session")
def sigmoid_net():
    """Makes dense layers with sigmoids between, without compiling for long."""

    def make(sizes):
        def init(key):
            params = {}
            for i, shape in enumerate(itertools.pairwise(sizes)):
                key_w, key_b = jax.random.split(jax.random.fold_in(key, i))
                params[f"Dense_{i}"] = {
                    "kernel": jax.random.uniform(key_w, shape, minval=-0.5, maxval=0.5),
                    "bias": jax.random.uniform(
                        key_b, shape[1:], minval=-0.5, maxval=0.5
                    ),
                }
            return params

        def apply(params, x):
            x = x.ravel()
            for i in range(len(sizes) - 1):
                layer = params[f"Dense_{i}"]
                x = jax.nn.sigmoid(x) if i else x
                x = x @ layer["kernel"] + layer["bias"]
            return x

        return Model(init, apply)

    return make


@pytest.fixture(scope="session")
def victim(sigmoid_net, images):
    """Params, loss of one example, and its mean gradient."""
    model = sigmoid_net((64, 24, images.classes))
    params = model.init(jax.random.key(3))
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    return params, loss_fn, jax.jit(points.gradient_of(loss_fn))


@pytest.fixture(scope="session")
def cpl(victim, images):
    """Makes an attack on the victim; one for several tests, which is compiled once."""

    @functools.cache
    def make(count=1, whitened=False, **budget):
        solver = solvers.whitened_lbfgs() if whitened else solvers.lbfgs()
        budget = Budget(tolerance=1e-9, **budget)
        return jax.jit(
            presets.cpl(victim[2], (count, *images.shape), solver=solver, budget=budget)
        )

    return make

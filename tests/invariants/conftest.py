"""What must not change a training: a small one, and how near two must come."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local, rounds
from fljax.types import Rows


class Training:
    """Nine ragged clients with 78 rows, and a network with four hidden units."""

    sizes = (10, 7, 3, 20, 1, 9, 5, 15, 8)
    rate = 0.05
    average = optax.sgd(1.0)
    advance = staticmethod(
        jax.jit(rounds.advance, static_argnames=("local", "server_optimiser"))
    )

    def __init__(self):
        self.sgd = local.sgd(self.loss, optax.sgd(self.rate))
        self.stored = {"num_rounds": 2, "batch_size": 4, "shuffle": False}
        # The shuffle takes long to compile, so tests with it share one shape.
        self.shuffled = {"num_rounds": 20, "batch_size": 4, "lanes": 8}

    @staticmethod
    def loss(params, x, y):
        hidden = jnp.tanh(x @ params["first"])
        return jnp.square(jnp.sum(hidden * params["second"]) - y)

    def params(self):
        rng = np.random.default_rng(1)
        return {
            "first": jnp.asarray(rng.normal(size=(3, 4)), jnp.float32),
            "second": jnp.asarray(rng.normal(size=4), jnp.float32),
        }

    def rows(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(78, 3))
        y = x.sum(axis=1)
        return Rows(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))

    def train(self, plan, rows=None, key=None, run=None, stop=None):
        return self.advance(
            jax.random.key(0) if key is None else key,
            rounds.start(self.params(), plan, self.average) if run is None else run,
            self.rows() if rows is None else rows,
            plan,
            plan.num_rounds if stop is None else stop,
            local=self.sgd,
            server_optimiser=self.average,
        )


@pytest.fixture(scope="session")
def training():
    return Training()


@pytest.fixture(scope="session")
def assert_close():
    """Compares every leaf to `rtol` of its largest entry."""

    def check(found, expected, rtol):
        def leaf(a, b):
            a, b = np.asarray(a), np.asarray(b)
            np.testing.assert_allclose(a, b, rtol=0, atol=rtol * np.abs(b).max())

        jax.tree.map(leaf, found, expected)

    return check

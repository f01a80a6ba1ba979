"""Five clients with a few rows each, a linear model, and messages that tell rows."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local, rounds
from fljax.types import Message, Rows


@functools.cache
def _recorder(length, batch):
    """A local update whose message is the rows of each of its steps, -1 if masked."""

    def init(sent):
        return jnp.full((length, batch), -1.0), jnp.zeros((), jnp.int32)

    def step(key, carry, sent, batch):
        del key, sent
        seen, at = carry
        return seen.at[at].set(jnp.where(batch.mask, batch.x, -1.0)), at + 1

    def final(key, carry, sent, sender):
        del key, sent, sender
        return Message(carry[0], jnp.zeros(()))

    return local.LocalUpdate(init, step, final)


class Federation:
    """Clients who fit a plane by squared error, and a server that averages."""

    sizes = (7, 3, 5, 1, 4)
    rate = 0.05
    average = optax.sgd(1.0)
    # One program for all tests whose tables have the same shapes.
    advance = staticmethod(
        jax.jit(rounds.advance, static_argnames=("local", "server_optimiser"))
    )
    recorder = staticmethod(_recorder)

    def __init__(self):
        self.sgd = local.sgd(self.loss, optax.sgd(self.rate))

    @staticmethod
    def loss(params, x, y):
        return jnp.square(jnp.sum(x * params["w"]) + params["b"] - y)

    def rows(self, sizes=sizes):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(sum(sizes), 3))
        y = x @ [1.0, -2.0, 0.5] + rng.normal(size=len(x))
        return Rows(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))

    def params(self):
        return {"w": jnp.array([0.3, -0.1, 0.2]), "b": jnp.array(0.5)}

    def train(
        self, plan, update=None, server=average, seed=0, rows=None, params=None,
        stop=None,
    ):  # fmt: skip
        params = self.params() if params is None else params
        return self.advance(
            jax.random.key(seed),
            rounds.start(params, plan, server),
            self.rows() if rows is None else rows,
            plan,
            plan.num_rounds if stop is None else stop,
            local=self.sgd if update is None else update,
            server_optimiser=server,
        )

    @staticmethod
    def flat(params):
        """All parameters in the last axis."""
        return np.concatenate(
            [np.asarray(params["w"]), np.asarray(params["b"])[..., None]], -1
        )

    def mean_delta(self, run, t, weights=sizes):
        return np.average(self.flat(run.transcript.delta)[t], axis=0, weights=weights)


@pytest.fixture(scope="session")
def federation():
    return Federation()

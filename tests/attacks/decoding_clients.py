"""Clients of a small logistic regression, whose messages are decoded."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fljax import losses
from fljax.attacks.reconstruction import decoding
from fljax.attacks.reconstruction.decoding import Messages, ensemble, messages


def simulation(num_rows=4, **told):
    def loss(params, x, y):
        return losses.logistic(x @ params[:-1] + params[-1], y)

    unravel = ravel_pytree(jnp.zeros(3))[1]
    told = {"rate": 1.0, "shared_spread": 0.5} | told
    return decoding.simulated_client(loss, unravel, 2, num_rows=num_rows, **told)


def client(seed, num_messages=30, rate=1.0, steps=1):
    """Noise-free messages of a logistic client whose labels are of a line."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=(40, 2)), np.ones(40)])
    y = (x @ [1.0, -2.0, 0.5] > 0).astype(float)
    sent = np.linspace([-3.0, 1, 0], [3.0, -1, 1], num_messages)
    sent = sent + 0.3 * rng.normal(size=sent.shape)
    theta = sent
    for _ in range(steps):
        theta = theta - rate * (1 / (1 + np.exp(-theta @ x.T)) - y) @ x / len(y)
    seen = jnp.ones(num_messages, bool)
    return Messages(jnp.asarray(sent), jnp.asarray(sent - theta), seen)


def learn(seen, simulation, noise, iterations=40, count=3, key=0, run=1):
    """Members, whose messages have this noise before they are averaged."""
    runs = messages.averaged(seen, run)
    noise = noise / jnp.sqrt(jnp.maximum(runs.count, 1))
    key = jax.random.key(key)
    return ensemble.learn(
        key, runs, simulation, noise, iterations=iterations, count=count
    )

"""A loss whose gradient is the row itself, for two clients and two arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.defenses.dp_sgd import dp_sgd
from fljax.types import Batch


def _loss(params, x, y):
    """Its gradient is the row itself."""
    del y
    return jnp.sum(params["a"] * x[:2]) + jnp.sum(params["b"] * x[2:])


class Linear:
    """Two clients with noise multipliers `sigma` and `expected` rows in a batch."""

    loss = staticmethod(_loss)

    def __init__(self):
        self.params = {"a": jnp.zeros(2), "b": jnp.zeros(2)}
        self.sigma, self.expected = np.array([0.5, 2.0]), np.array([4.0, 2.5])

    @staticmethod
    def defense(loss_fn=_loss, **changed):
        numbers = {
            "clip": 1.0,
            "noise_multiplier": np.zeros(2),
            "sampling_rate": np.full(2, 0.1),
            "batch_size": np.ones(2),
        }
        return dp_sgd(loss_fn, **(numbers | changed))

    @staticmethod
    def batch(rows, mask=None, client=0):
        x = jnp.asarray(rows, jnp.float32).reshape(-1, 4)
        mask = jnp.ones(len(x), bool) if mask is None else jnp.asarray(mask, bool)
        return Batch(x, jnp.zeros(len(x)), mask, jnp.int32(client))

    def clipped_sum(self, rows, mask=None, **changed):
        """Clipped sum without noise, all parameters in one vector."""
        grads, _ = self.defense(**changed).gradient(
            jax.random.key(0), self.params, self.batch(rows, mask)
        )
        return np.concatenate([grads["a"], grads["b"]])


@pytest.fixture(scope="session")
def linear():
    return Linear()

"""The predictor: from principal components of a message to a label distribution.

Lines 10 to 14 of Algorithm 1 of Rajani et al. 2023: eight hidden layers of 1000 units
with ReLU and a softmax. OPEN in the paper, chosen here: the loss is the cross-entropy
with soft labels (KL differs from it by a constant); the optimiser is Adam with a cosine
decay to 0; weights are He normal, for which eight layers of ReLU keep the scale.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax

from fljax import precision
from fljax.types import Array, Key, Params


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How a predictor is made.

    Attributes:
      hidden: units of each hidden layer.
      learning_rate: of Adam, at its start.
      epochs: passes over the shadow clients.
      batch_size: shadow clients of a step.
    """

    hidden: Sequence[int] = (1000,) * 8
    learning_rate: float = 1e-3
    epochs: int = 20
    batch_size: int = 64


class _Network(nn.Module):
    """Fully connected, with ReLU; returns logits."""

    hidden: Sequence[int]
    outputs: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        init = nn.initializers.he_normal()
        for units in self.hidden:
            x = nn.relu(nn.Dense(units, kernel_init=init)(x))
        return nn.Dense(self.outputs)(x)


def fit(key: Key, x: Array, y: Array, settings: Settings) -> Params:
    """Trains a predictor in one compiled program.

    Args:
      key: consumed.
      x: `[n, k]` components.
      y: `[n, K]` label distributions.
      settings: how.

    Returns:
      Parameters for `predict` with the same settings.

    Raises:
      ValueError: there are no shadow clients.
    """
    if not len(x):
        raise ValueError("x: expected at least one shadow client, got none")
    settings = dataclasses.replace(
        settings,
        hidden=tuple(settings.hidden),
        batch_size=min(settings.batch_size, len(x)),
    )
    return _fit(key, jnp.asarray(x), jnp.asarray(y), settings)


@functools.partial(jax.jit, static_argnums=3)
@precision.full
def _fit(key, x, y, settings: Settings) -> Params:
    network = _Network(settings.hidden, y.shape[1])
    size, steps = settings.batch_size, len(x) // settings.batch_size
    optimiser = optax.adam(
        optax.cosine_decay_schedule(settings.learning_rate, settings.epochs * steps)
    )

    def loss(params, at):
        logits = cast(jax.Array, network.apply({"params": params}, x[at]))
        return jnp.mean(optax.softmax_cross_entropy(logits, y[at]))

    def step(state, at):
        params, opt_state = state
        updates, opt_state = optimiser.update(jax.grad(loss)(params, at), opt_state)
        return (optax.apply_updates(params, updates), opt_state), None

    def epoch(state, e):
        order = jax.random.permutation(jax.random.fold_in(key, 1 + e), len(x))
        return lax.scan(step, state, order[: steps * size].reshape(steps, size))

    params = network.init(jax.random.fold_in(key, 0), x[0])["params"]
    state = (params, optimiser.init(params))
    return lax.scan(epoch, state, jnp.arange(settings.epochs))[0][0]


def predict(params: Params, x: Array) -> jax.Array:
    """Distributions `[n, K]` of components `[n, k]`, uniform for what is no number."""
    hidden = [params[f"Dense_{i}"]["kernel"].shape[1] for i in range(len(params))]
    network = _Network(tuple(hidden[:-1]), hidden[-1])
    logits = network.apply({"params": params}, jnp.asarray(x))
    found = jax.nn.softmax(cast(jax.Array, logits))
    told = jnp.isfinite(found).all(axis=-1, keepdims=True)
    return jnp.where(told, found, 1 / found.shape[-1])

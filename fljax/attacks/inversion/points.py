"""Attack points: what an attacker simulates to match what it observed.

Wei et al. 2021 attack at the server (type 0) and at the client (type 1) the mean
gradient of one local step, and inside the local training (type 2) the gradient of one
example: both are `gradient_of`. `steps_of` is the message that really travels, after
all local steps. A variant that knows more, e.g. of a defense, is one line around them:

    lambda params, x, y: clip(simulate(params, x, y))
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from fljax import losses
from fljax.types import Array, Params, PyTree

Simulate = Callable[[Params, PyTree, Array], Params]
# (params, examples with leaves [B, ...], labels [B, ...]) -> message in shape of params


def gradient_of(loss_fn: losses.LossFn) -> Simulate:
    """The gradient of the mean loss of the examples; types 0, 1 and 2."""

    def simulate(params, x, y):
        return jax.grad(lambda p: _mean_loss(loss_fn, p, x, y))(params)

    return simulate


def steps_of(
    gradient: Simulate,
    learning_rate: float | Array,
    num_steps: int,
    batch_size: int | None = None,
) -> Simulate:
    """Sent minus returned params after `num_steps` steps on the examples.

    Args:
      gradient: of a step; `gradient_of(loss_fn)` is that of plain SGD, others may be
        clipped, say.
      learning_rate: of the client, which the attacker knows.
      num_steps: local steps.
      batch_size: examples in a step; steps go through the examples in their order,
        again and again, as far as whole batches go. None takes all in each step.

    Raises:
      ValueError: `num_steps` or `batch_size` is below 1, or, when called, there are
        fewer examples than `batch_size`.
    """
    if num_steps < 1 or (batch_size is not None and batch_size < 1):
        raise ValueError(f"expected 1 or more, got {num_steps=}, {batch_size=}")

    def simulate(params, x, y):
        count = len(y)
        size = count if batch_size is None else batch_size
        if size > count:
            raise ValueError(f"{batch_size=} of only {count} examples")

        def step(current, number):
            start = number % (count // size) * size
            batch = jax.tree.map(
                lambda leaf: lax.dynamic_slice_in_dim(leaf, start, size), (x, y)
            )
            slope = gradient(current, *batch)
            move = jax.tree.map(lambda p, g: p - learning_rate * g, current, slope)
            return move, None

        # The backward pass repeats the steps, and holds only their params.
        end, _ = lax.scan(jax.checkpoint(step), params, jnp.arange(num_steps))
        return jax.tree.map(jnp.subtract, params, end)

    return simulate


def where_sent(simulate: Simulate, observed: Params) -> Simulate:
    """Compares only where `observed` is not zero: the attacker sees what was pruned."""

    def masked(params, x, y):
        return jax.tree.map(
            lambda found, seen: jnp.where(seen != 0, found, 0.0),
            simulate(params, x, y),
            observed,
        )

    return masked


def _mean_loss(loss_fn, params, x, y):
    return jnp.mean(jax.vmap(loss_fn, (None, 0, 0))(params, x, y))

"""Algorithm 3 of Xu & Neglia (2021) with any mapping, both problems solved by Adam.

The paper names one hidden layer of 1000 ReLU units and Adam. OPEN in the paper, and
arguments here: rates, iterations, scaling, and where eq. (7) starts. The start is the
last model that the client was sent. `scaling='standardised'` gives the mapping inputs
and targets of mean 0 and deviation 1, parameter by parameter, and lets Adam move theta
in units of the inputs' deviation; 'raw' leaves everything as it is.

Divergence: eq. (7) divides by the mean square of the deltas, which moves no minimum.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax

from fljax import precision
from fljax.attacks.reconstruction.decoding import messages as messages_lib
from fljax.attacks.reconstruction.decoding.messages import (
    Decoded,
    Messages,
    Moments,
)
from fljax.attacks.reconstruction.least_squares import matmul
from fljax.types import Key, PyTree

Scaling = Literal["standardised", "raw"]


class Mapping(NamedTuple):
    """A family of functions from a sent model to a delta.

    Attributes:
      init: `(key) -> weights`; the key is consumed.
      apply: `(weights, theta [R, P]) -> delta [R, P]`.
    """

    init: Callable[[Key], PyTree]
    apply: Callable[[PyTree, jax.Array], jax.Array]


class Adam(NamedTuple):
    """How one of the two problems is solved.

    Attributes:
      rate: learning rate.
      iterations: of full batches, at least 1.
    """

    rate: float
    iterations: int


FIT = Adam(1e-3, 2000)
DECODE = Adam(1e-2, 2000)


def mlp(num_params: int, units: int = 1000) -> Mapping:
    """The paper's mapping: one hidden layer of ReLU units.

    Args:
      num_params: `P`.
      units: hidden units.
    """

    def init(key):
        normal = jax.nn.initializers.lecun_normal()
        keys = [jax.random.fold_in(key, layer) for layer in range(2)]
        return {
            "hidden": normal(keys[0], (num_params, units)),
            "hidden_bias": jnp.zeros((1, units)),
            "out": normal(keys[1], (units, num_params)),
            "out_bias": jnp.zeros((1, num_params)),
        }

    def apply(weights, theta):
        hidden = matmul(theta, weights["hidden"]) + weights["hidden_bias"]
        return matmul(jax.nn.relu(hidden), weights["out"]) + weights["out_bias"]

    return Mapping(init, apply)


@precision.full
def learned(
    key: Key,
    messages: Messages,
    mapping: Mapping,
    *,
    fit: Adam = FIT,
    decode: Adam = DECODE,
    scaling: Scaling = "standardised",
    rcond: float | None = None,
) -> Decoded:
    """Fits a mapping to the messages of ONE client and decodes its local optimum.

    Args:
      key: consumed.
      messages: of the client.
      mapping: to fit.
      fit: how eq. (6) is solved.
      decode: how eq. (7) is solved.
      scaling: of inputs and targets.
      rcond: cut-off of the directions that are counted, as in `affine`.

    Returns:
      A `Decoded`.

    Raises:
      ValueError: for a scaling that is not known or fewer than 1 iterations.
    """
    _check(fit, decode, scaling)
    if rcond is None:
        rcond = messages_lib.default_rcond(messages)
    rank, singular_values = messages_lib.directions(messages, rcond)
    seen = messages_lib.observed(messages)
    weight = seen.mask.astype(seen.sent.dtype)
    inputs = _scale(seen.sent, weight, scaling)
    targets = _scale(seen.delta, weight, scaling)
    x = (seen.sent - inputs.mean) / inputs.deviation
    y = (seen.delta - targets.mean) / targets.deviation
    moves = learnable = jnp.ones_like(targets.mean, bool)
    if scaling == "standardised":
        # What never varies is its mean: nothing is learned of it.
        moves, learnable = (
            _varied(values, moments.mean, seen.mask)
            for values, moments in ((seen.sent, inputs), (seen.delta, targets))
        )
        targets = targets._replace(deviation=targets.deviation * learnable)

    def mean_square(misfit):
        each = jnp.sum(jnp.square(misfit), axis=1)
        return jnp.sum(jnp.where(seen.mask, each, 0)) / jnp.maximum(weight.sum(), 1)

    def mapping_loss(weights):
        return mean_square(jnp.where(learnable, mapping.apply(weights, x) - y, 0))

    def mapped(weights, z):
        moved = mapping.apply(weights, jnp.where(moves, z[None], 0))
        return moved * targets.deviation + targets.mean

    weights = _minimise(mapping_loss, mapping.init(key), fit)
    size = mean_square(seen.delta)
    size = jnp.where(size > 0, size, 1)

    def leftover(z):
        return jnp.sum(jnp.square(mapped(weights, z))) / size

    count = seen.mask.shape[0]
    last = jnp.max(jnp.where(seen.mask, jnp.arange(count), 0))
    z = _minimise(leftover, x[last], decode)
    misfit = mapping.apply(weights, x) * targets.deviation + targets.mean - seen.delta
    return Decoded(
        estimate=z * inputs.deviation[0] + inputs.mean[0],
        loss=mean_square(misfit),
        left=jnp.linalg.norm(mapped(weights, z)),
        rank=rank,
        singular_values=singular_values,
        determined=rank == seen.sent.shape[1],
    )


def _minimise(objective: Callable, start: Any, how: Adam) -> Any:
    optimiser = optax.adam(how.rate)

    def step(carry, _):
        point, state = carry
        gradient = jax.grad(objective)(point)
        updates, state = optimiser.update(gradient, state, point)
        return (optax.apply_updates(point, updates), state), None

    begin = (start, optimiser.init(start))
    return lax.scan(step, begin, None, length=how.iterations)[0][0]


def _scale(values, weight, scaling: Scaling) -> Moments:
    if scaling == "standardised":
        return messages_lib.moments(values, weight)
    zeros = jnp.zeros_like(values[:1])
    return Moments(zeros, zeros + 1)


def _varied(values, mean, mask) -> jax.Array:
    """Which columns `[1, P]` are not constant over the messages."""
    away = jnp.abs(values - mean) > messages_lib.rounding(mean)
    return jnp.any(mask[:, None] & away, axis=0, keepdims=True)


def _check(fit: Adam, decode: Adam, scaling: str) -> None:
    if scaling not in ("standardised", "raw"):
        raise ValueError(f"scaling must be 'standardised' or 'raw', got {scaling!r}")
    for name, how in (("fit", fit), ("decode", decode)):
        if how.iterations < 1:
            raise ValueError(f"{name}: expected iterations >= 1, got {how.iterations}")

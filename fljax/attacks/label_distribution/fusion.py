"""All that is linear in a message, weighed together by what the shadow clients teach (fljax).

Not in the paper. Its predictor sees a message through principal components only, and each
closed form of `rules` through one window of its own: the last layer's bias is nearly
exact while nothing is added to it, the gradients of the labels average noise over all
parameters. A linear regression of the shadow clients' label distributions on all of these numbers
weighs them as the clients' noise demands; the one that learns it needs to know nothing of
the noise but how to train shadow clients with it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from fljax import precision
from fljax.attacks.label_distribution import pca, rules
from fljax.types import Array


class Readers(NamedTuple):
    """What is read of a message beside its components.

    Attributes:
      gradients: `[K, P]` of each label, from `rules.mean_gradients`.
      bias: `[b]` positions in a raveled message that are read as they are, those of the
        last layer's bias; empty where there is none.
    """

    gradients: Array
    bias: Array


class Fusion(NamedTuple):
    """A linear regression on standardised numbers `[F]`.

    Attributes:
      centre: `[F]`.
      scale: `[F]`, 1 where a number never varies.
      weights: `[F, K]`.
      mean: `[K]` mean distribution of the shadow clients.
    """

    centre: Array
    scale: Array
    weights: Array
    mean: Array


@jax.jit
def read(basis: pca.Basis, readers: Readers, messages: Array) -> jax.Array:
    """Numbers `[n, F]` of messages `[n, P]`, F = k + K + b."""
    along = jnp.matmul(messages, readers.gradients.T, precision="highest")
    parts = pca.project(basis, messages), along, messages[:, readers.bias]
    return jnp.concatenate(parts, axis=1)


@jax.jit
@precision.full
def fit(numbers: Array, labels: Array) -> Fusion:
    """Least squares of distributions `[n, K]` on `[n, F]`, the shortest if many."""
    centre, mean = jnp.mean(numbers, axis=0), jnp.mean(labels, axis=0)
    deviation = jnp.std(numbers, axis=0)
    scale = jnp.where(deviation > 0, deviation, 1)
    white = (numbers - centre[None]) / scale[None]
    weights, *_ = jnp.linalg.lstsq(white, labels - mean[None], rcond=1e-6)
    return Fusion(centre, scale, weights, mean)


@jax.jit
def predict(fusion: Fusion, numbers: Array) -> jax.Array:
    """Distributions `[n, K]` of clients with these numbers `[n, F]`."""
    white = (numbers - fusion.centre[None]) / fusion.scale[None]
    moved = jnp.matmul(white, fusion.weights, precision="highest")
    return rules.to_simplex(fusion.mean[None] + moved)

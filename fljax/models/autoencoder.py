"""A fully connected autoencoder of images, for training without labels.

Rajani et al. 2023, Figure 4, train one on MNIST and say nothing else of it; widths,
ReLU and a linear output are chosen here.
"""

import itertools
import math
from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp

from fljax.models.initialisers import initialisers
from fljax.models.seam import from_flax
from fljax.types import Model


class Autoencoder(nn.Module):
    """Dense layers with ReLU between, narrowing and widening again.

    Attributes:
      hidden: widths down to the code; on the way back the same in reverse order.
    """

    hidden: Sequence[int]

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        out = x.ravel()
        widths = [out.size, *self.hidden, *reversed(self.hidden[:-1]), out.size]
        for number, (fan_in, units) in enumerate(itertools.pairwise(widths)):
            out = nn.relu(out) if number else out
            out = nn.Dense(units, **initialisers("torch", fan_in))(out)
        return out.reshape(x.shape)


def autoencoder(shape: Sequence[int], *, hidden: Sequence[int] = (128, 32)) -> Model:
    """An autoencoder whose output has the shape of its input.

    Args:
      shape: `(height, width, channels)` of an image.
      hidden: widths down to the code, at least one.

    Returns:
      A `Model` for one float image; its loss does not need a label.

    Raises:
      ValueError: there is no hidden layer, or an image has no pixel.
    """
    if not hidden or not math.prod(shape):
        raise ValueError(f"hidden and shape: expected sizes, got {hidden} and {shape}")
    return from_flax(Autoencoder(tuple(hidden)), jnp.zeros(tuple(shape), jnp.float32))

"""Image classifiers: the network that is trained and the one that is usually attacked.

`cnn` is the network of Wei et al., "Gradient-Leakage Resilient Federated Learning",
2021. Their code lists Dropout before the last layer, but calls the model in inference
mode, where it does nothing; it is left out here. `lenet` is the victim of Wei et al.,
"A Framework for Evaluating Client Privacy Leakages in Federated Learning" (CPL), 2020:
sigmoids and large random parameters, which gradients are much easier to invert on.
"""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp

from fljax.models.convolution import PatchConv, Window, max_pool
from fljax.models.initialisers import uniform
from fljax.models.seam import from_flax
from fljax.types import Model

_GLOROT = nn.initializers.glorot_uniform()


class ConvNet(nn.Module):
    """3x3 convolutions, each with ReLU and 2x2 max-pooling, and a dense layer.

    Attributes:
      classes: outputs.
      channels: filters of each convolution.
      padding: rows and columns of zeros around the input of each convolution.
      use_bias: whether layers have biases.
    """

    classes: int
    channels: Sequence[int] = (32, 64)
    padding: int = 0
    use_bias: bool = False

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for filters in self.channels:
            out = PatchConv(
                filters,
                (3, 3),
                padding=_around(self.padding),
                use_bias=self.use_bias,
                kernel_init=_GLOROT,
            )(x)
            x = nn.relu(max_pool(out))
        dense = nn.Dense(self.classes, use_bias=self.use_bias, kernel_init=_GLOROT)
        return dense(x.ravel())


class SigmoidLeNet(nn.Module):
    """5x5 convolutions with sigmoids, and a dense layer, all U(-bound, bound).

    Attributes:
      classes: outputs.
      channels: filters of every convolution.
      strides: one per convolution.
      bound: of the initial weights and biases.
    """

    classes: int
    channels: int = 12
    strides: Sequence[int] = (2, 2, 1, 1)
    bound: float = 0.5

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        init = uniform(self.bound)
        for stride in self.strides:
            conv = PatchConv(
                self.channels,
                (5, 5),
                strides=(stride, stride),
                padding=_around(2),
                kernel_init=init,
                bias_init=init,
            )
            x = nn.sigmoid(conv(x))
        return nn.Dense(self.classes, kernel_init=init, bias_init=init)(x.ravel())


def cnn(
    shape: Sequence[int],
    classes: int,
    *,
    channels: Sequence[int] = (32, 64),
    padding: int = 0,
    use_bias: bool = False,
) -> Model:
    """The CNN that Wei et al. 2021 train; 34,720 parameters on MNIST.

    Args:
      shape: `(height, width, channels)` of an image.
      classes: outputs.
      channels: filters of each 3x3 convolution.
      padding: zeros around the input of each convolution. The paper's 0 needs 10 x 10
        pixels; 1 fits the 8 x 8 of `digits`.
      use_bias: biases, which the paper's code leaves out.

    Returns:
      A `Model` for one float image in [0, 1]; `init` raises ValueError where the image
      is too small.
    """
    return from_flax(
        ConvNet(classes, tuple(channels), padding, use_bias), _blank(shape)
    )


def lenet(
    shape: Sequence[int],
    classes: int,
    *,
    channels: int = 12,
    strides: Sequence[int] = (2, 2, 1, 1),
    bound: float = 0.5,
) -> Model:
    """CPL's untrained victim: four 5x5 convolutions with sigmoids, with biases.

    Args:
      shape: `(height, width, channels)` of an image.
      classes: outputs.
      channels: filters of every convolution.
      strides: one per convolution.
      bound: weights and biases are drawn from U(-bound, bound).

    Returns:
      A `Model` for one float image in [0, 1].
    """
    module = SigmoidLeNet(classes, channels, tuple(strides), bound)
    return from_flax(module, _blank(shape))


def _blank(shape: Sequence[int]) -> jax.Array:
    return jnp.zeros(tuple(shape), jnp.float32)


def _around(width: int) -> tuple[Window, Window]:
    return ((width, width), (width, width))

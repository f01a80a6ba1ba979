"""Initialisers of kernels and biases by name."""

import math
from collections.abc import Callable
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

Initialisation = Literal["torch", "lecun", "glorot"]


def uniform(bound: float) -> Callable:
    """Draws from U(-bound, bound), whatever the shape."""

    def init(key, shape, dtype=jnp.float32):
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return init


def initialisers(kind: Initialisation, fan_in: int) -> dict[str, Any]:
    """`kernel_init` and `bias_init` of a layer.

    Args:
      kind: `torch`, PyTorch's `nn.Linear`: W and b from U(-1/sqrt(fan_in),
        1/sqrt(fan_in)); `lecun`, flax's normal of variance 1/fan_in; `glorot`,
        Keras's uniform of variance 2/(fan_in + fan_out). The last two start with
        zero biases.
      fan_in: inputs of the layer.

    Raises:
      ValueError: the kind is unknown.
    """
    if kind == "torch":
        bound = 1.0 / math.sqrt(fan_in)
        return {"kernel_init": uniform(bound), "bias_init": uniform(bound)}
    kernels = {
        "lecun": nn.initializers.lecun_normal,
        "glorot": nn.initializers.glorot_uniform,
    }
    if kind not in kernels:
        raise ValueError(
            f"initialisation must be 'torch', 'lecun' or 'glorot', got {kind!r}"
        )
    return {"kernel_init": kernels[kind](), "bias_init": nn.initializers.zeros_init()}

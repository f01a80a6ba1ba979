"""The shipped models, as flax.linen modules behind the `Model(init, apply)` seam.

Any other framework fits by giving the two functions itself. The first layer of the
tabular models reads `Features`: the one-hot part is a sum of kernel rows and is never
materialised. Parameters have the layout of a dense layer on `[numeric, one_hot]`.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import flax.linen as nn
import jax
import jax.numpy as jnp

from fljax.types import Features, Model

Initialisation = Literal["torch", "lecun"]


def _uniform(fan_in: int) -> Callable:
    bound = 1.0 / math.sqrt(fan_in)

    def init(key, shape, dtype=jnp.float32):
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return init


def _initialisers(kind: Initialisation, fan_in: int) -> dict[str, Any]:
    """PyTorch's `nn.Linear` draws W and b from U(-1/sqrt(fan_in), 1/sqrt(fan_in))."""
    if kind == "torch":
        return {"kernel_init": _uniform(fan_in), "bias_init": _uniform(fan_in)}
    if kind == "lecun":
        return {
            "kernel_init": nn.initializers.lecun_normal(),
            "bias_init": nn.initializers.zeros_init(),
        }
    raise ValueError(f"initialisation must be 'torch' or 'lecun', got {kind!r}")


class TabularDense(nn.Module):
    """Dense layer on `Features`: `numeric @ kernel[:Dn] + sum(kernel[Dn + codes])`.

    Attributes:
      units: outputs.
      num_onehot: width of the one-hot block that `codes` point into.
      initialisation: 'torch' or 'lecun'.
    """

    units: int
    num_onehot: int
    initialisation: Initialisation

    @nn.compact
    def __call__(self, x: Features) -> jax.Array:
        num_numeric = x.numeric.shape[-1]
        fan_in = num_numeric + self.num_onehot
        inits = _initialisers(self.initialisation, fan_in)
        kernel = self.param("kernel", inits["kernel_init"], (fan_in, self.units))
        bias = self.param("bias", inits["bias_init"], (self.units,))
        out = x.numeric @ kernel[:num_numeric] + bias
        block = kernel[num_numeric:]
        # Column by column: a [N, Dc, H] intermediate would leave the cache. The
        # reference category's position lies past the end and reads zeros.
        for column in range(x.codes.shape[-1]):
            out = out + block.at[x.codes[column]].get(mode="fill", fill_value=0)
        return out


class MLP(nn.Module):
    """Fully connected network: `TabularDense` or dense layers with ReLU between.

    Attributes:
      hidden: units of each hidden layer; empty for a linear model.
      outputs: 1 gives a scalar output `[]`, more give `[outputs]`.
      num_onehot: width of the one-hot block of tabular inputs.
      initialisation: 'torch' or 'lecun'.
    """

    hidden: Sequence[int]
    outputs: int = 1
    num_onehot: int = 0
    initialisation: Initialisation = "torch"

    @nn.compact
    def __call__(self, x: Features) -> jax.Array:
        units = [*self.hidden, self.outputs]
        out = TabularDense(units[0], self.num_onehot, self.initialisation)(x)
        for fan_in, width in itertools.pairwise(units):
            inits = _initialisers(self.initialisation, fan_in)
            out = nn.Dense(width, **inits)(nn.relu(out))
        return out[0] if self.outputs == 1 else out


def from_flax(module: nn.Module, example) -> Model:
    """A `Model` from a flax.linen module and one example input (leaves without N)."""

    def init(key):
        return module.init(key, example)["params"]

    def apply(params, x) -> jax.Array:
        return cast(jax.Array, module.apply({"params": params}, x))

    return Model(init, apply)


def mlp(
    num_numeric: int,
    num_codes: int = 0,
    *,
    hidden: Sequence[int] = (128,),
    outputs: int = 1,
    num_onehot: int = 0,
    initialisation: Initialisation = "torch",
) -> Model:
    """MLP on `Features`; the default is the network of Diana et al., section 5.2.

    Args:
      num_numeric: numeric columns `Dn`, the sensitive block included.
      num_codes: categorical columns `Dc`.
      hidden: hidden widths; `()` gives a linear model.
      outputs: 1 for regression and binary targets, else the number of classes.
      num_onehot: width of the one-hot block.
      initialisation: 'torch' (PyTorch's default, as in the paper) or 'lecun'.

    Returns:
      A `Model` for one example.
    """
    example = Features(
        jnp.zeros((num_numeric,), jnp.float32), jnp.zeros((num_codes,), jnp.int32)
    )
    module = MLP(tuple(hidden), outputs, num_onehot, initialisation)
    return from_flax(module, example)


def linear(
    num_numeric: int,
    num_codes: int = 0,
    *,
    outputs: int = 1,
    num_onehot: int = 0,
    initialisation: Initialisation = "torch",
) -> Model:
    """Linear model with intercept on `Features`; arguments as in `mlp`."""
    return mlp(
        num_numeric,
        num_codes,
        hidden=(),
        outputs=outputs,
        num_onehot=num_onehot,
        initialisation=initialisation,
    )

"""Fully connected networks on tabular rows.

The first layer reads `Features`: on a CPU the one-hot part is a sum of kernel rows and is
never materialised. Parameters have the layout of a dense layer on `[numeric, one_hot]`.
Accelerators add to rows in no fixed order, or slowly, and are fast at products: there the
one-hot part is made and multiplied (`models.one_hot`).
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Literal, NamedTuple, cast, get_args

import flax.linen as nn
import jax
import jax.numpy as jnp

from fljax import accelerators
from fljax.models import one_hot
from fljax.models.initialisers import Initialisation, initialisers
from fljax.models.seam import from_flax
from fljax.types import Begun, Features, Model, Params

TWO_HIDDEN = (100, 100)
"""Hidden widths for Adult and breast cancer of Wei et al. 2021.

The paper says "two hidden layers" and neither widths nor activation; ReLU is assumed.
"""

Activation = Literal["relu", "gelu"]
Norm = Literal["none", "layernorm"]

ACTIVATIONS = {"relu": nn.relu, "gelu": functools.partial(nn.gelu, approximate=False)}

_FIRST = "TabularDense_0"
_NORMALISED = {"epsilon": 1e-5, "use_fast_variance": False}  # as PyTorch does


class TabularDense(nn.Module):
    """Dense layer on `Features`: `numeric @ kernel[:Dn] + sum(kernel[Dn + codes])`.

    Attributes:
      units: outputs.
      num_onehot: width of the one-hot block that `codes` point into.
      initialisation: 'torch', 'lecun' or 'glorot'.
      use_bias: whether a bias is added.
    """

    units: int
    num_onehot: int
    initialisation: Initialisation
    use_bias: bool = True

    @nn.compact
    def __call__(self, x: Features | Begun) -> jax.Array:
        if isinstance(x, Begun):
            kernel = self.get_variable("params", "kernel")
            end = len(kernel) - self.num_onehot
            return x.hidden + x.block @ kernel[end - x.block.shape[-1] : end]
        num_numeric = x.numeric.shape[-1]
        fan_in = num_numeric + self.num_onehot
        inits = initialisers(self.initialisation, fan_in)
        kernel = self.param("kernel", inits["kernel_init"], (fan_in, self.units))
        layer = {"kernel": kernel}
        if self.use_bias:
            layer["bias"] = self.param("bias", inits["bias_init"], (self.units,))
        return _read(layer, x)


def _read(layer: Params, x: Features) -> jax.Array:
    """Outputs of one example."""
    kernel, num_numeric = jnp.asarray(layer["kernel"]), x.numeric.shape[-1]
    out = cast(jax.Array, x.numeric @ kernel[:num_numeric])
    if "bias" in layer:
        out = out + layer["bias"]
    block = kernel[num_numeric:]
    if x.codes.shape[-1] and accelerators.used():
        return out + one_hot.multiplied(x.codes, block)
    # Column by column: a [N, Dc, H] intermediate would leave the cache. The
    # reference category's position lies past the end and reads zeros.
    for column in range(x.codes.shape[-1]):
        out = out + block.at[x.codes[column]].get(mode="fill", fill_value=0)
    return out


class FirstLayer(NamedTuple):
    """The first layer of a network with one-hot columns, apart from the others.

    Attributes:
      name: under which its leaves are among the params.
    """

    name: str

    def read(self, layer: Params, x: Features) -> jax.Array:
        """Its outputs `[B, units]` of examples, leaves `[B, ...]`."""
        return jax.vmap(_read, (None, 0))(layer, x)

    def split(self, params: Params) -> tuple[Params, Params]:
        """Its leaves, and those of the other layers; of any tree like the params."""
        rest = {name: leaf for name, leaf in params.items() if name != self.name}
        return params[self.name], rest

    def join(self, layer: Params, rest: Params) -> Params:
        """Of what `split` gave."""
        return {self.name: layer, **rest}

    def moved(self, layer: Params, x: Features, along: jax.Array, by: Params) -> Params:
        """The layer plus its gradient along its outputs; on a CPU no array is made of it.

        Args:
          layer: its leaves.
          x: leaves `[B, ...]`.
          along: `[B, units]` derivatives by its outputs.
          by: what the gradient of each leaf is multiplied by, `[]`.
        """
        kernel, step = layer["kernel"], by["kernel"] * along
        first = x.numeric.shape[-1]
        # One product, for compilers for CPUs are many times slower at sums over rows.
        numbers = jnp.concatenate([x.numeric, jnp.ones_like(x.numeric[:, :1])], axis=1)
        slope = numbers.T @ along
        kernel = kernel.at[:first].add(by["kernel"] * slope[:first])
        kernel = one_hot.add_to_rows(kernel, first, x.codes, step)
        found = {"kernel": kernel}
        if "bias" in layer:
            found["bias"] = layer["bias"] + by["bias"] * slope[first]
        return found


class MLP(nn.Module):
    """Fully connected network: `TabularDense`, dense layers, an activation between.

    Its `nn.Dropout` layers, behind activations, drop nothing but under `fljax.dropout`.

    Attributes:
      hidden: units of each hidden layer; empty for a linear model.
      outputs: 1 gives a scalar output `[]`, more give `[outputs]`.
      num_onehot: width of the one-hot block of tabular inputs.
      initialisation: 'torch', 'lecun' or 'glorot'.
      use_bias: whether layers have biases.
      activation: of hidden layers.
      norm: of hidden layers, before the activation.
    """

    hidden: Sequence[int]
    outputs: int = 1
    num_onehot: int = 0
    initialisation: Initialisation = "torch"
    use_bias: bool = True
    activation: Activation = "relu"
    norm: Norm = "none"

    @nn.compact
    def __call__(self, x: Features | Begun) -> jax.Array:
        units = [*self.hidden, self.outputs]
        out = TabularDense(
            units[0], self.num_onehot, self.initialisation, self.use_bias
        )(x)
        for fan_in, width in itertools.pairwise(units):
            inits = initialisers(self.initialisation, fan_in)
            if self.norm == "layernorm":
                out = nn.LayerNorm(**_NORMALISED)(out)
            out = ACTIVATIONS[self.activation](out)
            out = nn.Dropout(0.0, deterministic=True)(out)
            out = nn.Dense(width, use_bias=self.use_bias, **inits)(out)
        return out[0] if self.outputs == 1 else out

    @nn.nowrap
    def first_units(self, params: Params, out: jax.Array) -> jax.Array:
        """What the second layer reads `[..., H]`, of outputs of the first `[..., H]`."""
        if self.norm == "layernorm":
            layer = {"params": params["LayerNorm_0"]}
            out = cast(jax.Array, nn.LayerNorm(**_NORMALISED).apply(layer, out))
        return ACTIVATIONS[self.activation](out)

    @nn.nowrap
    def begin(self, params: Params, public: Features) -> jax.Array:
        """The `hidden` of a `Begun` from columns without the sensitive block.

        On a CPU categorical columns are read in a loop: written out, a compiler would read
        all of them again in each of the many places that use the sum.
        """
        layer = params[_FIRST]
        kernel, num_numeric = jnp.asarray(layer["kernel"]), public.numeric.shape[-1]
        out = cast(jax.Array, public.numeric @ kernel[:num_numeric])
        if self.use_bias:
            out = out + layer["bias"]
        if public.codes.shape[-1]:
            onehot = kernel[len(kernel) - self.num_onehot :]
            if accelerators.used():
                return out + one_hot.multiplied(public.codes, onehot)

            def add(out, code):
                return out + onehot.at[code].get(mode="fill", fill_value=0), None

            out, _ = jax.lax.scan(add, out, public.codes)
        return out

    @nn.nowrap
    def first_layer(self) -> FirstLayer | None:
        """For steps that are taken in place; None where that saves nothing."""
        return FirstLayer(_FIRST) if self.num_onehot else None


def mlp(
    num_numeric: int,
    num_codes: int = 0,
    *,
    hidden: Sequence[int] = (128,),
    outputs: int = 1,
    num_onehot: int = 0,
    initialisation: Initialisation = "torch",
    use_bias: bool = True,
    activation: Activation = "relu",
    norm: Norm = "none",
) -> Model:
    """MLP on `Features`; the default is the network of Diana et al., section 5.2.

    Args:
      num_numeric: numeric columns `Dn`, the sensitive block included.
      num_codes: categorical columns `Dc`.
      hidden: hidden widths; `()` gives a linear model, `TWO_HIDDEN` the network that
        stands for Wei et al.'s on Adult and breast cancer.
      outputs: 1 for regression and binary targets, else the number of classes.
      num_onehot: width of the one-hot block.
      initialisation: 'torch' (PyTorch's default, as in Diana et al.), 'lecun' (flax's)
        or 'glorot' (Keras's).
      use_bias: whether layers have biases; a per-layer clip counts each bias as a
        layer of its own.
      activation: of hidden layers: 'relu' or 'gelu'.
      norm: of hidden layers, before the activation: 'none' or 'layernorm'.

    Returns:
      A `Model` for one example.

    Raises:
      ValueError: for another activation or norm; for another initialisation as soon as
        parameters are drawn.
    """
    example = Features(
        jnp.zeros((num_numeric,), jnp.float32), jnp.zeros((num_codes,), jnp.int32)
    )
    _check_hidden(activation, norm)
    module = MLP(
        tuple(hidden),
        outputs,
        num_onehot,
        initialisation=initialisation,
        use_bias=use_bias,
        activation=activation,
        norm=norm,
    )
    return from_flax(module, example)


def _check_hidden(activation: str, norm: str) -> None:
    if activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise ValueError(f"activation: expected one of {known}, got {activation!r}")
    if norm not in get_args(Norm):
        known = ", ".join(get_args(Norm))
        raise ValueError(f"norm: expected one of {known}, got {norm!r}")


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

"""From a flax.linen module to the `Model(init, apply)` seam."""

import dataclasses
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp

from fljax.types import Features, Key, Model, Params, PyTree


@dataclasses.dataclass(frozen=True)
class FlaxApply:
    """The `apply` of a `Model` made by `from_flax`.

    Attributes:
      module: whose layers `per_example` looks at.
    """

    module: nn.Module

    def __call__(self, params: Params, x: PyTree) -> jax.Array:
        """Output of one example."""
        return cast(jax.Array, self.module.apply({"params": params}, x))

    def begin(self, params: Params, public: Features) -> jax.Array | None:
        """What the first layer makes of the public columns of one example: `Begun`.

        None if the module has no `begin`; else it takes a `Begun` in place of its input.
        """
        begin = getattr(self.module, "begin", None)
        return None if begin is None else begin(params, public)

    def first_units(self, params: Params, out: jax.Array) -> jax.Array:
        """The first hidden units `[..., H]` of outputs of the first layer `[..., H]`.

        Those of ReLU where the module says nothing else.
        """
        first_units = getattr(self.module, "first_units", None)
        return nn.relu(out) if first_units is None else first_units(params, out)

    def first_layer(self) -> Any:
        """The first layer apart, as `in_place` moves it; None if the module has none."""
        first_layer = getattr(self.module, "first_layer", None)
        return None if first_layer is None else first_layer()


@dataclasses.dataclass(frozen=True)
class FlaxInit:
    """The `init` of a `Model` made by `from_flax`; equal ones share compiled programs.

    Attributes:
      module: whose parameters are drawn.
      leaves: shape and dtype of each leaf of an input.
      structure: of an input.
    """

    module: nn.Module
    leaves: tuple[jax.ShapeDtypeStruct, ...]
    structure: Any

    def __call__(self, key: Key) -> Params:
        """Initial parameters."""
        zeros = [jnp.zeros(leaf.shape, leaf.dtype) for leaf in self.leaves]
        return self.module.init(key, self.structure.unflatten(zeros))["params"]


def from_flax(module: nn.Module, example: PyTree) -> Model:
    """A `Model` from a flax.linen module and one example input (leaves without N).

    Of the example only shapes and dtypes count. Models of equal modules are equal.
    """
    leaves, structure = jax.tree.flatten(jax.eval_shape(lambda: example))
    return Model(FlaxInit(module, tuple(leaves), structure), FlaxApply(module))

"""From a flax.linen module to the `Model(init, apply)` seam."""

import dataclasses
from typing import cast

import flax.linen as nn
import jax

from fljax.types import Model, Params, PyTree


@dataclasses.dataclass(frozen=True, eq=False)
class FlaxApply:
    """The `apply` of a `Model` made by `from_flax`.

    Attributes:
      module: whose layers `per_example` looks at.
    """

    module: nn.Module

    def __call__(self, params: Params, x: PyTree) -> jax.Array:
        """Output of one example."""
        return cast(jax.Array, self.module.apply({"params": params}, x))


def from_flax(module: nn.Module, example) -> Model:
    """A `Model` from a flax.linen module and one example input (leaves without N)."""

    def init(key):
        return module.init(key, example)["params"]

    return Model(init, FlaxApply(module))

"""A model on the columns of a table, whose inputs are in an order of their own."""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from fljax.auditing import normalisation
from fljax.models.seam import FlaxInit
from fljax.types import ApplyFn, Features, Model, Params


@dataclasses.dataclass(frozen=True)
class InOrder:
    """A model on inputs in an order of its own. Equal ones share compiled programs.

    Attributes:
      inner: of the model.
      order: of its inputs.
      bare: whether it takes the numbers alone, as networks of flax do.
      still: names of the arrays that clients do not train.
    """

    inner: ApplyFn
    order: tuple[int, ...]
    bare: bool = False
    still: tuple[str, ...] = ()

    def __call__(self, params: Params, x: Features) -> jax.Array:
        frozen = normalisation.freeze(params, self.still)
        numeric = x.numeric[np.array(self.order)]
        if not self.bare:
            return self.inner(frozen, Features(numeric, x.codes))
        output = self.inner(frozen, numeric)
        return output[0] if output.shape == (1,) else output


def of(model: Model, order: np.ndarray) -> InOrder:
    """The `apply` of a model that reads columns `[D]` in this order."""
    return InOrder(model.apply, tuple(order.tolist()), _takes_array(model))


def holding(model: Model, still: Sequence[str]) -> Model:
    """The same without gradients by arrays of these names; `model.apply` is from `of`."""
    assert isinstance(model.apply, InOrder)
    return model._replace(apply=dataclasses.replace(model.apply, still=tuple(still)))


def _takes_array(model: Model) -> bool:
    """Whether `models.from_flax` has made it of a network whose input is an array."""
    init = model.init
    single = jax.tree.structure(0)
    return isinstance(init, FlaxInit) and init.structure == single

"""Steps of plain SGD that are taken in place.

The gradient of a table's first layer is zero but for the rows of the kernel that a batch's
one-hot columns name. As an array it is as large as the kernel, and most of a step is to
write it, to read it and to subtract all of it. Where the optimiser does no more than scale
gradients, each row's share can be added to the kernel itself, where it belongs. An
accelerator makes the array after all (`models.tabular`).

Sums are rounded in another order than through the gradient.
"""

from typing import TypeGuard

import jax
import jax.numpy as jnp
import optax
from jax.extend.core import Jaxpr, Literal

from fljax import losses
from fljax.types import Batch, Begun, Params, PyTree

_SCALING = {"mul", "neg", "convert_element_type"}


def applies(
    loss_fn: losses.LossFn, optimiser: optax.GradientTransformation, params: Params
) -> TypeGuard[losses.ExampleLoss]:
    """Whether `step` can take a step of this loss with this optimiser."""
    first_layer = getattr(getattr(loss_fn, "apply_fn", None), "first_layer", None)
    if first_layer is None or first_layer() is None:
        return False
    return only_scales(optimiser, params)


def only_scales(optimiser: optax.GradientTransformation, params: Params) -> bool:
    """Whether a step is the gradient times a number for each leaf, always the same."""
    state = optimiser.init(params)
    if jax.tree.leaves(state):
        return False

    def update(gradient, params):
        return optimiser.update(gradient, state, params)[0]

    traced = jax.make_jaxpr(update)(params, params).jaxpr
    return _only_scales(traced, len(jax.tree.leaves(params)))


def step(
    loss_fn: losses.ExampleLoss,
    optimiser: optax.GradientTransformation,
    params: Params,
    batch: Batch,
    factor: jax.Array | float = 1.0,
) -> tuple[Params, jax.Array]:
    """One step of the mean loss of a batch, where `applies` says so.

    Args:
      loss_fn: of one example, of a model on `Features`.
      optimiser: that scales gradients.
      params: before the step.
      batch: `[B, ...]`.
      factor: of the rate.

    Returns:
      The params after the step, and the loss `[]` before it.
    """
    first = loss_fn.apply_fn.first_layer()
    x, y = losses.masked_rows(batch.mask, (batch.x, batch.y))
    layer, rest = first.split(params)
    hidden = first.read(layer, x)
    nothing = jnp.zeros((len(hidden), 0), hidden.dtype)

    def mean_loss(rest, hidden):
        whole = first.join(layer, rest)
        each = jax.vmap(loss_fn, (None, 0, 0))(whole, Begun(hidden, nothing), y)
        return losses.masked_mean(each, batch.mask)

    loss, (slopes, along) = jax.value_and_grad(mean_loss, (0, 1))(rest, hidden)
    sizes = jax.tree.map(lambda rate: factor * rate, _rates(optimiser, params))
    own, others = first.split(sizes)
    rest = jax.tree.map(
        lambda leaf, size, slope: leaf + size * slope, rest, others, slopes
    )
    return first.join(first.moved(layer, x, along, own), rest), loss


def _rates(optimiser: optax.GradientTransformation, params: Params) -> PyTree:
    """What each leaf of a gradient is multiplied by, `[]`."""
    one = jax.tree.map(lambda leaf: jnp.ones((), leaf.dtype), params)
    return optimiser.update(one, optimiser.init(one), one)[0]


def _only_scales(traced: Jaxpr, leaves: int) -> bool:
    """Whether each output is its input times a number that is no input's.

    Args:
      traced: whose first inputs are scaled, as many as there are outputs.
      leaves: their number.
    """
    own = {v: number for number, v in enumerate(traced.invars[:leaves])}
    for equation in traced.eqns:
        given = [v for v in equation.invars if not isinstance(v, Literal)]
        if any(v in given for v in traced.invars[leaves:]):
            return False
        scaled = [v for v in given if v in own]
        if not scaled:
            continue
        others = [v for v in equation.invars if v is not scaled[0]]
        by_numbers = all(getattr(v.aval, "shape", None) == () for v in others)
        if equation.primitive.name not in _SCALING or len(scaled) > 1 or not by_numbers:
            return False
        own[equation.outvars[0]] = own[scaled[0]]
    outputs = [v for v in traced.outvars if not isinstance(v, Literal)]
    return [own.get(v) for v in outputs] == [*range(leaves)]

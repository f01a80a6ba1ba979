"""Losses of one example: `(output, target) -> []`.

The squared loss has no factor 1/2, as in the experiments of Diana et al. (AAAI-25).
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from fljax.types import ApplyFn, Array, Batch, ElementLossFn, Params, PyTree

LossFn = Callable[[Params, PyTree, Array], jax.Array]
# (params, x, y) of ONE example -> []


def squared(output: jax.Array, target: jax.Array) -> jax.Array:
    """Squared error of a scalar output `[]`."""
    return jnp.square(output - target)


def logistic(output: jax.Array, target: jax.Array) -> jax.Array:
    """Binary cross-entropy of a scalar logit `[]` and a target in {0, 1}."""
    return optax.sigmoid_binary_cross_entropy(output, target)


def cross_entropy(output: jax.Array, target: jax.Array) -> jax.Array:
    """Cross-entropy of logits `[classes]` and an integer class `[]`; NaN if it is none.

    The class is met by comparison and not looked up, as in optax: two uses of one
    gradient, the sum and the count of clipped examples, share it only if no scatter is
    in it, which XLA computes for each.

    Raises:
      ValueError: the class is no integer.
    """
    target = jnp.asarray(target)
    if not jnp.issubdtype(target.dtype, jnp.integer):
        raise ValueError(f"target: expected an integer class, got {target.dtype}")
    met = jnp.arange(len(output)) == target
    logit = jnp.where(met.any(), jnp.sum(jnp.where(met, output, 0)), jnp.nan)
    return jax.nn.logsumexp(output) - logit


def absolute(output: jax.Array, target: jax.Array) -> jax.Array:
    """Absolute error of a scalar output `[]`."""
    return jnp.abs(output - target)


@dataclasses.dataclass(frozen=True)
class Huber:
    """Half the squared error of a scalar output, linear beyond `delta` (Huber, 1964)."""

    delta: float = 1.0

    def __call__(self, output: jax.Array, target: jax.Array) -> jax.Array:
        """Loss `[]`."""
        return optax.huber_loss(output, target, delta=self.delta)


@dataclasses.dataclass(frozen=True)
class WeightedLogistic:
    """`logistic`, `pos_weight` times that for a target of 1."""

    pos_weight: float

    def __call__(self, output: jax.Array, target: jax.Array) -> jax.Array:
        """Loss `[]`."""
        return (1 + (self.pos_weight - 1) * target) * logistic(output, target)


@dataclasses.dataclass(frozen=True)
class SmoothedCrossEntropy:
    """`cross_entropy` with `label_smoothing` of the weight spread over all classes."""

    label_smoothing: float

    def __call__(self, output: jax.Array, target: jax.Array) -> jax.Array:
        """Loss `[]`."""
        everywhere = jax.nn.logsumexp(output) - jnp.mean(output)
        own = cross_entropy(output, target)
        return own + self.label_smoothing * (everywhere - own)


USUAL = {"regression": "squared", "binary": "logistic", "multiclass": "cross_entropy"}
_KNOWN: dict[str, ElementLossFn] = {
    "squared": squared,
    "logistic": logistic,
    "cross_entropy": cross_entropy,
}


def of_task(task: str) -> ElementLossFn:
    """The usual loss of outputs for `regression`, `binary` or `multiclass`."""
    return _KNOWN[USUAL[task]]


@dataclasses.dataclass(frozen=True)
class ExampleLoss:
    """A `LossFn` that shows what it is made of. Equal ones share compiled programs.

    Attributes:
      apply_fn: the model's.
      element_loss: of its output.
    """

    apply_fn: ApplyFn
    element_loss: ElementLossFn

    def __call__(self, params: Params, x: PyTree, y: Array) -> jax.Array:
        """Loss `[]` of one example.

        Raises:
          ValueError: the model's output makes another one.
        """
        output = self.apply_fn(params, x)
        return of_one(self.element_loss(output, jnp.asarray(y)), output)

    def begin(self, params: Params, public: PyTree) -> jax.Array | None:
        """The `hidden` of a `Begun` that can be the input `x`; None if it cannot."""
        begin = getattr(self.apply_fn, "begin", None)
        return None if begin is None else begin(params, public)


def example_loss(apply_fn: ApplyFn, element_loss: ElementLossFn) -> ExampleLoss:
    """Joins a model and an element loss into the loss of one example.

    Raises:
      TypeError: either is no function.
    """
    for name, given in (("apply_fn", apply_fn), ("element_loss", element_loss)):
        if not callable(given):
            raise TypeError(f"{name}: expected a function, got {given!r:.40}")
    return ExampleLoss(apply_fn, element_loss)


def of_one(loss: jax.Array, output: Array | None = None) -> jax.Array:
    """The loss of one example, if it is a number: one of `[1]` would be spread over rows.

    Raises:
      ValueError: naming its shape, and that of the output.
    """
    if jnp.shape(loss):
        of_what = "" if output is None else f" of an output {list(jnp.shape(output))}"
        raise ValueError(
            f"model: expected a loss [] of one example, got {list(jnp.shape(loss))}"
            f"{of_what}; a scalar output is [], e.g. output[0]"
        )
    return loss


def masked_mean(values: Array, mask: Array) -> jax.Array:
    """Mean of `values [B]` where `mask [B]`; 0 for an empty batch.

    Padding is taken out by `where`: a non-finite value there does not reach the mean.
    """
    return jnp.sum(jnp.where(mask, values, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


def masked_rows(mask: Array, tree: PyTree) -> PyTree:
    """Leaves `[B, ...]` with zeros where `mask [B]` is False."""

    def keep(leaf):
        return jnp.where(mask.reshape(-1, *[1] * (leaf.ndim - 1)), leaf, 0)

    return jax.tree.map(keep, tree)


def batch_loss(loss_fn: LossFn, params: Params, batch: Batch) -> jax.Array:
    """Mean loss over the real rows of a batch.

    Args:
      loss_fn: `(params, x, y) -> []` of one example.
      params: of the model.
      batch: leaves `[B, ...]`; rows outside of its mask do not count, whatever they hold.

    Returns:
      `[]`; 0 for an empty batch.

    Raises:
      ValueError: the loss of an example is no number.
    """
    # Zeros before the loss too: a gradient would multiply NaN rows by zero.
    x, y = masked_rows(batch.mask, (batch.x, batch.y))
    each = jax.vmap(lambda x, y: of_one(loss_fn(params, x, y)))
    return masked_mean(each(x, y), batch.mask)

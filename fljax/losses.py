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
    """Cross-entropy of logits `[classes]` and an integer class `[]`."""
    return optax.softmax_cross_entropy_with_integer_labels(output, target)


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
        """Loss `[]` of one example."""
        return self.element_loss(self.apply_fn(params, x), jnp.asarray(y))

    def begin(self, params: Params, public: PyTree) -> jax.Array | None:
        """The `hidden` of a `Begun` that can be the input `x`; None if it cannot."""
        begin = getattr(self.apply_fn, "begin", None)
        return None if begin is None else begin(params, public)


def example_loss(apply_fn: ApplyFn, element_loss: ElementLossFn) -> ExampleLoss:
    """Joins a model and an element loss into the loss of one example."""
    return ExampleLoss(apply_fn, element_loss)


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
    """Mean loss `[]` over the real rows of a batch; 0 for an empty one."""
    # Zeros before the loss too: a gradient would multiply NaN rows by zero.
    x, y = masked_rows(batch.mask, (batch.x, batch.y))
    values = jax.vmap(loss_fn, in_axes=(None, 0, 0))(params, x, y)
    return masked_mean(values, batch.mask)

"""Gradients of a batch's examples one by one, and what clipping needs of them.

Clipping asks for the norm of every example's gradient, layer by layer, and then for one
weighted sum. `jax.vmap(jax.grad(...))` computes both for any loss, and holds a gradient
for every example.

Where every parameter belongs to a layer whose output is linear in it, one backward pass
of the batch to the layers' outputs is enough: with `a` what the kernel meets in an
example and `d` the gradient with respect to the layer's output,

* dense layers have the gradient `a d^T`, of squared norm `|a|^2 |d|^2` (Goodfellow 2015,
  arXiv:1510.01799), and a weighted sum that is one matrix product;
* convolutions on patches have `sum_p a_p d_p^T` over positions p, held per example;
* `TabularDense` meets its one-hot columns as ones, which are only counted.

This way is taken for a `losses.example_loss` on a `models.from_flax` model whose
parameters all belong to `flax.linen.Dense`, `models.PatchConv` and `models.TabularDense`
layers that are called once per example and that nothing else reads; otherwise the first
way. Both give the same numbers to float32 rounding. A loss that has a method
`per_example` of its own, `(params, x, y) -> PerExample`, is asked instead.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import traverse_util
from flax.core import tracers
from flax.errors import FlaxError

from fljax import losses, models
from fljax.models import one_hot
from fljax.types import Features, Params, PyTree

Taps = dict[tuple[str, ...], Any]  # path of a layer -> its output, or that's shape
_HIGHEST = "highest"  # a rounded product could exceed the clip
_NEGLIGIBLE = 1e-24  # squared norm: what is lost of it need not be made up for


class PerExample(NamedTuple):
    """Gradients of `B` examples.

    Attributes:
      values: `[B]` losses.
      squares: like params, leaves `[B]`: squared norm of each example's gradient with
        respect to that array.
      weighted_sum: `(weights) -> gradient`: of weights like params, leaves `[B]`, the
        weighted sum in the shape of params. An example of weight 0 is left out, whatever
        its gradient.
      weighted_squares: `(weights) -> [like params]`, the same of the squared entries.
    """

    values: jax.Array
    squares: PyTree
    weighted_sum: Callable[[PyTree], Params]
    weighted_squares: Callable[[PyTree], Params]


class _Array(NamedTuple):
    """The gradients with respect to ONE array."""

    squares: jax.Array  # [B]
    weighted_sum: Callable[[jax.Array], jax.Array]
    weighted_squares: Callable[[jax.Array], jax.Array]


def gradients(
    loss_fn: losses.LossFn, params: Params, x: PyTree, y: jax.Array
) -> PerExample:
    """Per-example gradients in the cheapest way that the loss allows.

    Args:
      loss_fn: `(params, x, y) -> []` of one example.
      params: the model.
      x: leaves `[B, ...]`.
      y: `[B]`.
    """
    own = getattr(loss_fn, "per_example", None)
    if own is not None:
        return own(params, x, y)
    layers = _layers(loss_fn, params, x)
    if layers is None:
        values, arrays = _one_by_one(loss_fn, params, x, y)
    else:
        values, arrays = _by_layers(loss_fn, layers, params, x, y)
    treedef = jax.tree.structure(params)

    def over_arrays(name, weights):
        pairs = zip(arrays, treedef.flatten_up_to(weights), strict=True)
        return treedef.unflatten([getattr(a, name)(w) for a, w in pairs])

    return PerExample(
        values,
        treedef.unflatten([a.squares for a in arrays]),
        functools.partial(over_arrays, "weighted_sum"),
        functools.partial(over_arrays, "weighted_squares"),
    )


def by_layers(loss_fn: losses.LossFn, params: Params, x: PyTree) -> bool:
    """Whether `gradients` can do without holding every example's gradient."""
    return _layers(loss_fn, params, x) is not None


def squared_norms(leaf: jax.Array) -> jax.Array:
    """`[B, ...]` -> `[B]`."""
    return jnp.sum(jnp.square(leaf.reshape(len(leaf), -1)), axis=1)


def _one_by_one(loss_fn, params, x, y):
    each = jax.vmap(jax.value_and_grad(loss_fn), (None, 0, 0))
    values, grads = each(params, x, y)
    return values, [_held(leaf) for leaf in jax.tree.leaves(grads)]


def _by_layers(loss_fn, layers, params, x, y):
    module, element_loss = loss_fn.apply_fn.module, loss_fn.element_loss

    def tapped(taps, x, y):
        output, inputs = _apply(module, params, x, taps)
        return element_loss(output, y), inputs

    taps = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), layers)
    each = jax.vmap(jax.value_and_grad(tapped, has_aux=True), (None, 0, 0))
    (values, inputs), slopes = each(taps, x, y)
    found = {}
    leaves: Taps = traverse_util.flatten_dict(params)
    for path, leaf in leaves.items():
        a, d = inputs[path[:-1]], slopes[path[:-1]]
        found[path] = _BY_NAME[path[-1]](a, d, leaf.shape)
    tree = traverse_util.unflatten_dict(found)
    return values, jax.tree.leaves(tree, is_leaf=lambda leaf: type(leaf) is _Array)


def _held(grads) -> _Array:
    """From the gradients `[B, ...]` themselves."""

    def weighted(leaf, weights):
        kept = losses.masked_rows(weights != 0, leaf)
        return jnp.tensordot(weights, kept, 1, precision=_HIGHEST)

    return _Array(
        squared_norms(grads),
        functools.partial(weighted, grads),
        lambda weights: weighted(jnp.square(grads), weights),
    )


def _outer(a, d, ones: jax.Array | float = 0.0) -> _Array:
    """Gradients `a d^T` of `a [B, I]`, in squares with `ones [B]` more, and `d [B, O]`."""
    rows, slopes, tiny = squared_norms(a), squared_norms(d), jnp.finfo(d.dtype).tiny
    lost = a.shape[1] * tiny * slopes + d.shape[1] * tiny * rows  # by underflow

    def weighted(power, weights):
        kept, slopes = losses.masked_rows(weights != 0, (a**power, d**power))
        return jnp.matmul((weights[:, None] * kept).T, slopes, precision=_HIGHEST)

    return _Array(
        rows * slopes + ones * slopes + jnp.where(lost > _NEGLIGIBLE, lost, 0),
        functools.partial(weighted, 1),
        functools.partial(weighted, 2),
    )


def _tabular(x: Features, d, shape) -> _Array:
    """The same for `a = [numeric, one_hot]`, whose ones are at `codes [B, Dc]`."""
    num_onehot = shape[0] - x.numeric.shape[1]
    real = x.codes < num_onehot
    # Columns have positions of their own; were they to share one, it would hold a 2.
    same = (x.codes[:, :, None] == x.codes[:, None, :]) & real[:, :, None]
    numeric = _outer(x.numeric, d, jnp.sum(same, axis=(1, 2)).astype(d.dtype))

    def onehot(each, weights):
        slopes = weights[:, None] * losses.masked_rows(weights != 0, each)
        block = jnp.zeros((num_onehot, shape[1]), d.dtype)
        return one_hot.add_to_rows(block, 0, x.codes, slopes)

    return _Array(
        numeric.squares,
        lambda w: jnp.concatenate([numeric.weighted_sum(w), onehot(d, w)]),
        lambda w: jnp.concatenate([numeric.weighted_squares(w), onehot(d * d, w)]),
    )


def _kernel(a, d, shape) -> _Array:
    if isinstance(a, Features):
        return _tabular(a, d, shape)
    a = a.reshape(len(a), -1, math.prod(shape[:-1]))
    d = d.reshape(len(d), -1, shape[-1])
    if a.shape[1] > 1:
        return _held(jnp.einsum("bpi,bpo->bio", a, d).reshape(-1, *shape))
    return _outer(a[:, 0], d[:, 0])


def _bias(a, d, shape) -> _Array:
    del a
    return _held(jnp.sum(d.reshape(len(d), -1, *shape), axis=1))


_BY_NAME = {"kernel": _kernel, "bias": _bias}


def _meets_x(module, x):
    del module
    return x


# What the kernel of a layer meets. Of these classes and no subclass.
_MEETS = {
    nn.Dense: _meets_x,
    models.TabularDense: _meets_x,
    models.PatchConv: lambda module, x: module.patches(x),
}
# What a model that is none of ours may raise when it is tried without parameters.
_UNFIT = (FlaxError, KeyError, TypeError, ValueError, jax.errors.UnexpectedTracerError)


def _layers(loss_fn, params, x) -> Taps | None:
    """Shape of the output of every layer of ONE example, or None if one does not fit."""
    known = isinstance(loss_fn, losses.ExampleLoss)
    if not known or not isinstance(loss_fn.apply_fn, models.FlaxApply):
        return None
    module = loss_fn.apply_fn.module
    x = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), x)
    try:
        outputs = _outputs(module, params, x)
        leaves = traverse_util.flatten_dict(params)
        covered = all(p[:-1] in outputs and p[-1] in _BY_NAME for p in leaves)
        # Without parameters, and layers replaced by their outputs: whatever else reads
        # a parameter fails.
        jax.eval_shape(lambda x, taps: _apply(module, None, x, taps), x, outputs)
    except _UNFIT:
        return None
    return outputs if covered else None


def _outputs(module, params, x) -> Taps:
    """Shapes of the layers' outputs; ValueError for a use that is not the plain one."""
    outputs = {}

    def plain(params, x):
        here, leaves = tracers.current_trace(), traverse_util.flatten_dict(params)

        def record(next_fun, args, kwargs, context):
            out, path = next_fun(*args, **kwargs), context.module.path
            if _fits(context, args, kwargs):
                if path in outputs or tracers.current_trace() != here:
                    raise ValueError("called twice, or inside another transform")
                for name, leaf in context.module.variables["params"].items():
                    if leaf is not leaves[*path, name]:
                        raise ValueError("not the parameters themselves")
                outputs[path] = jax.ShapeDtypeStruct(out.shape, out.dtype)
            return out

        with nn.intercept_methods(record):
            return module.apply({"params": params}, x)

    jax.eval_shape(plain, params, x)
    return outputs


def _apply(module, params, x, taps: Taps):
    """Output of ONE example and what each kernel meets; `taps` add to the layers.

    Without params the taps take the place of the layers' outputs.
    """
    inputs = {}

    def tap(next_fun, args, kwargs, context):
        if not _fits(context, args, kwargs):
            return next_fun(*args, **kwargs)
        path = context.module.path
        inputs[path] = _MEETS[type(context.module)](context.module, *args)
        return taps[path] if params is None else next_fun(*args) + taps[path]

    with nn.intercept_methods(tap):
        output = module.apply({"params": {} if params is None else params}, x)
    return output, inputs


def _fits(context, args, kwargs) -> bool:
    layer = context.module
    if type(layer) not in _MEETS or context.method_name != "__call__":
        return False
    plain = not isinstance(layer, nn.Dense) or (
        layer.dtype is None and not layer.dot_general and not layer.dot_general_cls
    )
    return plain and len(args) == 1 and not kwargs

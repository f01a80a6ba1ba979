"""Gradients of all layers as functions of the rows, with rounded corners if wanted.

The gradient of a dense layer is `1/B sum_i (1, a_i) d_i^T` over the rows, `a_i` being what
goes into the layer and `d_i` the gradient at its outputs. Its derivatives by two rows have
products that need no more than the products of the `a`, of the `d` and of the derivatives
of either: the normal equations of all rows, without the Jacobian.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from fljax import precision
from fljax.attacks.rows.network import first_layer
from fljax.types import ElementLossFn, Params


class Layer(NamedTuple):
    """Leaves `[..., in, out]` and `[..., out]`, of one model or of several."""

    kernel: jax.Array
    bias: jax.Array


class Seen(NamedTuple):
    """Models and gradients of one client.

    Attributes:
      layers: of the models, leaves `[Q, ...]`.
      gradients: of each layer `[Q, 1 + in, out]`, the bias first.
      element_loss: of the output `[]`.
    """

    layers: tuple[Layer, ...]
    gradients: tuple[np.ndarray, ...]
    element_loss: ElementLossFn


def seen(params: Params, message: Params, element_loss: ElementLossFn) -> Seen:
    """Models and the mean gradients at them, in the order of the layers.

    Args:
      params: of an `MLP` with biases, leaves `[Q, ...]`.
      message: the gradients, likewise.
      element_loss: of its output.

    Raises:
      ValueError: it has no hidden layer, a layer without bias or more than one output.
    """
    later = sorted(
        (name for name in params if name.startswith("Dense_")),
        key=lambda name: int(name.removeprefix("Dense_")),
    )
    names = [first_layer(params).name, *later]
    if other := sorted(set(params) - set(names)):
        raise ValueError(
            f"params: expected dense layers with ReLU between, got {', '.join(other)}, too"
        )
    if len(names) == 1:
        raise ValueError("params: expected a model with a hidden layer, got none")
    for name in names:
        if "bias" not in params[name]:
            raise ValueError(f"params: expected layers with biases, {name} has none")
    outputs = params[names[-1]]["bias"].shape[-1]
    if outputs != 1:
        raise ValueError(f"params: expected a model with one output, got {outputs}")
    layers = [Layer(params[name]["kernel"], params[name]["bias"]) for name in names]
    gradients = [
        np.concatenate([message[name]["bias"][:, None], message[name]["kernel"]], 1)
        for name in names
    ]
    return Seen(tuple(layers), tuple(gradients), element_loss)


def columns(seen: Seen, z: jax.Array, soft: jax.Array) -> list[jax.Array]:
    """Square `[Q, out]` of what the gradient at each output of each layer misses.

    Args:
      seen: of `Q` messages.
      z: `[B, D + 1]` rows and their targets.
      soft: `[]` how far the corners of ReLU are rounded, 0 for not at all.
    """

    def one(_, each):
        layers, gradients = each
        pairs = _of_rows(seen.element_loss, layers, soft)(z)
        missed = [_missed(*every) for every in zip(*pairs, gradients, strict=True)]
        return None, [jnp.square(part).sum(axis=0) for part in missed]

    return jax.lax.scan(one, None, (seen.layers, seen.gradients))[1]


def normal(
    seen: Seen, z: jax.Array, soft: jax.Array, scale: Sequence[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """Gauss-Newton matrix `[n, n]` and slope `[n]` of `robust`, n = B * (D + 1).

    Args:
      seen: of `Q` messages.
      z: `[B, D + 1]` rows and their targets.
      soft: `[]` how far the corners of ReLU are rounded.
      scale: `[]` of each layer, squares beyond which count less and less.
    """
    rows, width = z.shape

    def one(total, each):
        layers, gradients = each
        of_rows = _of_rows(seen.element_loss, layers, soft)
        values, slopes = of_rows(z), _slopes(seen.element_loss, layers, soft)(z)
        for a, d, by_a, by_d, sent, large in zip(
            *values, *slopes, gradients, scale, strict=True
        ):
            missed = _missed(a, d, sent)
            weight = _weight(jnp.square(missed).sum(axis=0), large)
            wide = jnp.concatenate([a[:, None], jnp.swapaxes(by_a, 1, 2)], 1) / rows
            tall = jnp.concatenate([d[:, None], jnp.swapaxes(by_d, 1, 2)], 1)
            total = jax.tree.map(
                jnp.add,
                total,
                (
                    _products(
                        _gram(wide, wide), _gram(tall * weight[None, None], tall)
                    ),
                    _along(wide, tall, missed * weight[None]),
                ),
            )
        return total, None

    none = jnp.zeros((rows, width, rows, width)), jnp.zeros((rows, width))
    (matrix, slope), _ = jax.lax.scan(one, none, (seen.layers, seen.gradients))
    return matrix.reshape(z.size, z.size), slope.ravel()


def tells_apart(seen: Seen, z: np.ndarray) -> float:
    """Smallest eigenvalue of the Gauss-Newton matrix over the largest, at sharp corners.

    About 0 where other rows close by give the same gradients, e.g. rows that switch on the
    same units in all models.
    """
    matrix = _sharp(seen.element_loss, seen[:2], z)
    values = np.linalg.eigvalsh(np.asarray(matrix, np.float64))
    return float(values[0] / values[-1])


@functools.partial(jax.jit, static_argnums=0)
@precision.full
def _sharp(element_loss: ElementLossFn, about, z) -> jax.Array:
    layers, gradients = about
    seen = Seen(layers, gradients, element_loss)
    return normal(seen, z, jnp.float32(0), [jnp.float32(1e9)] * len(layers))[0]


def robust(squares: Sequence[jax.Array], scale: Sequence[jax.Array]) -> jax.Array:
    """Sum of squares `[]` of which large ones count less (Geman and McClure, 1985)."""
    whole = sum(
        jnp.sum(each * large / (large + each))
        for each, large in zip(squares, scale, strict=True)
    )
    return cast(jax.Array, whole)  # of one layer or more


def rescaled(
    squares: Sequence[jax.Array], scale: Sequence[jax.Array], times: jax.Array
) -> list[jax.Array]:
    """So many times the mean square, as each counts now; of outputs that are on."""

    def of(square, large):
        weight = jnp.where(square > 0, _weight(square, large), 0)
        return times * jnp.sum(weight * square) / jnp.maximum(weight.sum(), 1) + _TINY

    return [of(*each) for each in zip(squares, scale, strict=True)]


_TINY = 1e-14


def _weight(square: jax.Array, large: jax.Array) -> jax.Array:
    return jnp.square(large / (large + square))


def _of_rows(element_loss: ElementLossFn, layers, soft) -> Callable:
    """`[B, D + 1] -> [(1, a) of each layer], [d of each layer]`, leaves `[B, ...]`."""
    return jax.vmap(lambda z: _pairs(element_loss, layers, soft, z))


def _slopes(element_loss: ElementLossFn, layers, soft) -> Callable:
    """Their derivatives by the row and its target, a last axis `D + 1`."""
    return jax.vmap(jax.jacfwd(lambda z: _pairs(element_loss, layers, soft, z)))


def _pairs(element_loss: ElementLossFn, layers, soft, z):
    def loss(biases):
        out, inputs = z[:-1], []
        for number, (layer, bias) in enumerate(zip(layers, biases, strict=True)):
            inputs.append(jnp.concatenate([jnp.ones(1), out]))
            out = out @ layer.kernel + bias
            if number + 1 < len(layers):
                out = _rounded(out, soft)
        return element_loss(out[0], z[-1]), inputs

    deltas, inputs = jax.grad(loss, has_aux=True)([layer.bias for layer in layers])
    return inputs, deltas


def _rounded(x: jax.Array, soft: jax.Array) -> jax.Array:
    """ReLU with a rounded corner."""
    width = jnp.where(soft > 0, soft, 1)
    return jnp.where(soft > 0, width * jax.nn.softplus(x / width), jax.nn.relu(x))


def _missed(a: jax.Array, d: jax.Array, sent: jax.Array) -> jax.Array:
    return a.T @ d / len(a) - sent


def _gram(left: jax.Array, right: jax.Array) -> jax.Array:
    """`[B, 1 + D + 1, B, 1 + D + 1]` of `[B, 1 + D + 1, w]`."""
    return jnp.einsum("ikw,jlw->ikjl", left, right)


def _products(wide: jax.Array, tall: jax.Array) -> jax.Array:
    """Of the derivatives of `(1, a) d^T` by two rows, by the rule for products."""
    value, slope = slice(0, 1), slice(1, None)
    return (
        wide[:, slope, :, slope] * tall[:, value, :, value]
        + wide[:, slope, :, value] * tall[:, value, :, slope]
        + wide[:, value, :, slope] * tall[:, slope, :, value]
        + wide[:, value, :, value] * tall[:, slope, :, slope]
    )


def _along(wide: jax.Array, tall: jax.Array, missed: jax.Array) -> jax.Array:
    """Slope `[B, D + 1]` of half the square of what is missed."""
    by_a = jnp.einsum("ikw,wo,io->ik", wide[:, 1:], missed, tall[:, 0])
    return by_a + jnp.einsum("iw,wo,iko->ik", wide[:, 0], missed, tall[:, 1:])

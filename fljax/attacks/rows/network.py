"""What the adversary asks of the network: messages and gradients at the first layer."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax import precision
from fljax.losses import LossFn
from fljax.types import Features, Params

ROUNDING = 1e-5
"""Share of a message that recomputing it from the right rows misses at most."""

_AT_ONCE = 1024  # candidates, so that one program serves any number of them
_TINY = 1e-30
_ALIKE = 1e-4  # less than this of 1 lacks the cosine of the same direction


class FirstLayer(NamedTuple):
    """Where the first dense layer lies among the parameters.

    Attributes:
      name: of the module, whose leaves are `kernel` `[D, H]` and `bias` `[H]`.
    """

    name: str

    def gradient(self, tree: Params) -> np.ndarray:
        """`[1 + D, H]` float64, the bias first."""
        layer = tree[self.name]
        stacked = np.concatenate([layer["bias"][None], layer["kernel"]])
        return np.asarray(stacked, np.float64)


def first_layer(params: Params) -> FirstLayer:
    """The one dense layer that `TabularDense` makes.

    Raises:
      ValueError: there is none, or it has no bias.
    """
    for name, layer in params.items():
        if name.startswith("TabularDense") and "bias" in layer:
            return FirstLayer(name)
    raise ValueError(
        f"params: expected a first TabularDense layer with a bias, got {list(params)}"
    )


class Network:
    """A network with its parameters, asked about rows.

    Attributes:
      params: its parameters.
      loss_fn: of one example.
      layer: its first one.
    """

    def __init__(self, params: Params, loss_fn: LossFn):
        self.layer = first_layer(params)
        self.params, self.loss_fn = params, loss_fn

    @property
    def units(self) -> Callable[[Params, jax.Array], jax.Array]:
        """`(params, outputs [..., H]) -> hidden units [..., H]` of the first layer.

        ReLU where the loss function does not tell its model and all layers are dense.

        Raises:
          ValueError: there are others.
        """
        apply_fn = getattr(self.loss_fn, "apply_fn", None)
        if found := getattr(apply_fn, "first_units", None):
            return found
        if other := [name for name in self.params if "Dense" not in name]:
            raise ValueError(
                f"loss_fn: expected losses.example_loss of the model, whose layers "
                f"{', '.join(other)} are not known, got {self.loss_fn!r}"
            )
        return _relu

    def deltas(self, x: np.ndarray, y: Any, layer: str = "") -> np.ndarray:
        """Gradient `[n, H]` float64 of each row's loss at the outputs of a layer.

        Args:
          x: `[n, D]` encoded rows.
          y: `[n]` or [] targets.
          layer: its name, default the first one.
        """
        name = layer or self.layer.name
        y = np.broadcast_to(np.asarray(y), len(x))
        found = []
        for start in range(0, len(x), _AT_ONCE):
            part = np.asarray(x[start : start + _AT_ONCE], np.float32)
            short = _AT_ONCE - len(part)
            rows = np.pad(part, ((0, short), (0, 0)))
            targets = np.pad(y[start : start + _AT_ONCE], (0, short))
            asked = self.params, rows, targets
            each = _deltas(self.loss_fn, name, *asked)
            found.append(np.asarray(each, np.float64)[: len(part)])
        width = len(self.params[name]["bias"])
        return np.concatenate(found) if found else np.zeros((0, width))

    def directions(self, x: np.ndarray, y: Any) -> np.ndarray:
        """The same to length 1; zeros where a row has no gradient."""
        found = self.deltas(x, y)
        norm = np.linalg.norm(found, axis=1, keepdims=True)
        return found / np.maximum(norm, _TINY)

    def distinct(self, x: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Of these targets those whose deltas differ at a row `[D]` by more than length."""
        found = self.directions(np.tile(x, (len(targets), 1)), targets)
        alike = np.abs(found @ found.T) > 1 - _ALIKE
        return targets[[not alike[at, :at].any() for at in range(len(targets))]]

    def message(self, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Params:
        """The gradient of the weighted sum of these rows' losses."""
        rows = np.float32(x), np.asarray(y), np.float32(weights)
        return jax.device_get(gradient(self.loss_fn, self.params, *rows))


def says_something(params: Params, message: Params) -> bool:
    """Whether a message has a number other than zero.

    Raises:
      ValueError: a number in either is not finite.
    """
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((params, message))):
        raise ValueError("params, message: expected finite numbers")
    return any(np.any(leaf) for leaf in jax.tree.leaves(message))


def missed(ours: Params, message: Params) -> float:
    """How far a message is from the one that came, as a share of it."""
    return size(jax.tree.map(np.subtract, ours, message)) / size(message)


def size(tree: Params) -> float:
    """Euclidean norm of all numbers of a message."""
    square = sum(
        float(np.square(leaf, dtype=float).sum()) for leaf in jax.tree.leaves(tree)
    )
    return square**0.5


def _relu(_: Params, out: jax.Array) -> jax.Array:
    return jax.nn.relu(out)


def _row(x: jax.Array) -> Features:
    return Features(x, jnp.zeros((0,), jnp.int32))


@functools.partial(jax.jit, static_argnums=(0, 1))
@precision.full
def _deltas(loss_fn: Callable, name: str, params, x, y):
    def one(x, y):
        def loss(bias):
            layer = {**params[name], "bias": bias}
            return loss_fn({**params, name: layer}, _row(x), y)

        return jax.grad(loss)(params[name]["bias"])

    return jax.vmap(one)(x, y)


@functools.partial(jax.jit, static_argnums=0)
@precision.full
def gradient(loss_fn: LossFn, params: Params, x, y, weights) -> Params:
    """Of the sum of the losses of rows `[n, D]`, times weights `[n]` or []."""

    def loss(params):
        each = jax.vmap(lambda x, y: loss_fn(params, _row(x), y))(x, y)
        return jnp.sum(weights * each)

    return jax.grad(loss)(params)

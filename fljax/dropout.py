"""The mean loss of a network whose hidden units are dropped in training.

A client that trains with dropout (Srivastava et al., "Dropout", 2014) sets each unit that an
`nn.Dropout` layer reads to 0 with probability p, for every row and step anew, and divides the
others by 1 - p. Over its steps it descends the mean over such draws, which is no loss of the
whole network: where outputs vary with the draw, it is larger.

The mean here is over a few draws, which are others for each row and for other parameters, so
that their errors average out over rows, steps and rounds. With one draw it is how a client
with dropout trains.
"""

import dataclasses
import functools
import zlib
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from fljax import losses, per_example
from fljax.per_example import PerExample
from fljax.types import Array, Begun, Features, Params, PyTree

_DRAWS = 8
_MASKS = 1024  # of a layer, to draw from
_ODD = 2654435761  # by which bits are mixed (Knuth, vol. 3, 6.4)


@dataclasses.dataclass(frozen=True)
class MeanLoss:
    """A `LossFn`: the mean of a loss over draws of what is dropped.

    Attributes:
      loss: of the whole network.
      rate: p, in [0, 1).
      block: last numeric inputs that the draws do not depend on, so that rows which differ
        in them alone have the same.
      draws: number of draws.
      seed: of the draws.
    """

    loss: losses.LossFn
    rate: float
    block: int = 0
    draws: int = _DRAWS
    seed: int = 0

    def __call__(self, params: Params, x: PyTree, y: Array) -> jax.Array:
        """Loss `[]` of one example."""
        of = jax.vmap(self._of, (0, None, None, None))
        return jnp.mean(of(self._numbers(params, x, y), params, x, y))

    def begin(self, params: Params, public: PyTree) -> jax.Array | None:
        """As that of the whole network; None if it has none."""
        begin = getattr(self.loss, "begin", None)
        return None if begin is None else begin(params, public)

    def per_example(self, params: Params, x: PyTree, y: jax.Array) -> PerExample:
        """Of `B` examples, whose squares are means of those of the draws."""
        numbers = jax.vmap(self._numbers, (None, 0, 0))(params, x, y)
        x, y = jax.tree.map(lambda leaf: jnp.repeat(leaf, self.draws, axis=0), (x, y))

        def of_draw(params, x, y):
            return self._of(x[0], params, x[1], y)

        each = per_example.gradients(of_draw, params, (numbers.reshape(-1), x), y)

        def mean(leaf):
            return jnp.mean(leaf.reshape(-1, self.draws), axis=1)

        def over(total):
            def spread(leaf):
                return jnp.repeat(leaf, self.draws) / self.draws

            return lambda weights: total(jax.tree.map(spread, weights))

        return PerExample(
            mean(each.values),
            jax.tree.map(mean, each.squares),
            over(each.weighted_sum),
            over(each.weighted_squares),
        )

    def _of(self, number, params, x, y) -> jax.Array:
        """Loss `[]` under the masks of this number."""
        with nn.intercept_methods(_dropping(self.rate, number, self.seed)):
            return self.loss(params, x, y)

    def _numbers(self, params, x, y) -> jax.Array:
        """Numbers `[draws]` of masks."""
        if isinstance(x, Begun):
            x = x.hidden
        elif isinstance(x, Features):
            x = x.numeric[..., : x.numeric.shape[-1] - self.block], x.codes
        first = _mixed((params, x, y)) >> 16
        return (self.draws * first.astype(int) + jnp.arange(self.draws)) % _MASKS


def drops(apply_fn: Callable[..., Any], params: Params, x: PyTree) -> bool:
    """Whether a model has `nn.Dropout` layers.

    Args:
      apply_fn: of the model.
      params: of it, shapes will do.
      x: an example, likewise.
    """
    found = []

    def record(method, args, kwargs, context):
        found.append(isinstance(context.module, nn.Dropout))
        return method(*args, **kwargs)

    with nn.intercept_methods(record):
        jax.eval_shape(lambda *given: apply_fn(*given), params, x)  # traced anew
    return any(found)


def _dropping(rate: float, number: jax.Array, seed: int) -> Callable[..., Any]:
    """An interceptor of methods under which `nn.Dropout` layers drop what a mask says."""

    def intercept(method, args, kwargs, context):
        layer = context.module
        if not isinstance(layer, nn.Dropout) or context.method_name != "__call__":
            return method(*args, **kwargs)
        name = zlib.crc32("/".join(layer.path).encode())
        kept = _masks(rate, args[0].shape, (seed, name))
        return jnp.where(jnp.asarray(kept)[number], args[0] / (1 - rate), 0)

    return intercept


@functools.lru_cache(maxsize=16)
def _masks(rate: float, shape: tuple[int, ...], seed: tuple[int, int]) -> np.ndarray:
    """`[_MASKS, ...]` which units are kept."""
    return np.random.default_rng(seed).random((_MASKS, *shape)) >= rate


def _mixed(tree: PyTree) -> jax.Array:
    """A number [] of 32 bits that depends on every bit of the leaves."""
    mixed = jnp.zeros((), jnp.uint32)
    for leaf in jax.tree.leaves(tree):
        flat = jax.lax.stop_gradient(jnp.ravel(jnp.asarray(leaf, jnp.float32)))
        bits = jax.lax.bitcast_convert_type(flat, jnp.uint32)
        weights = (2 * np.arange(len(flat), dtype=np.uint64) + 1) * _ODD % 2**32
        mixed = (mixed ^ jnp.sum(bits * weights.astype(np.uint32))) * np.uint32(_ODD)
    return mixed

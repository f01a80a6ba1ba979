"""The mean loss of a network whose hidden units are dropped in training.

A client that trains with dropout (Srivastava et al., "Dropout", 2014) sets each unit that an
`nn.Dropout` layer reads to 0 with probability p, for every row and step anew, and divides the
others by 1 - p. Over its steps it descends the mean over such draws, which is no loss of the
whole network: where outputs vary with the draw, it is larger.

The mean here is over a few draws, which are others for each row and for other parameters, so
that their errors average out over rows, steps and rounds. With one draw it is how a client
with dropout trains.
"""

import collections
import dataclasses
import functools
import zlib
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from fljax import losses
from fljax.types import Array, Begun, Features, Params, PyTree

_DRAWS = 8
_MASKS = 1024  # of a layer, to draw from


@dataclasses.dataclass(frozen=True)
class MeanLoss:
    """A `LossFn`: the mean of a loss over draws of what is dropped.

    Attributes:
      loss: of the whole network.
      rate: p, in [0, 1), in place of that of each layer.
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
        numbers = self._numbers(params, x, y)
        of = jax.vmap(lambda number: self._of_draw(params, (number, x), y))
        return jnp.mean(of(numbers))

    @property
    def element_loss(self) -> Any:
        """That of the loss, if it shows one."""
        return getattr(self.loss, "element_loss", None)

    def begin(self, params: Params, public: PyTree) -> jax.Array | None:
        """As that of the whole network; None if it has none."""
        begin = getattr(self.loss, "begin", None)
        return None if begin is None else begin(params, public)

    def drawn(
        self, params: Params, x: PyTree, y: jax.Array
    ) -> tuple[losses.LossFn, PyTree, jax.Array]:
        """Examples draw by draw, for what is no mean of them: a loss, inputs and targets.

        Args:
          params: the model.
          x: leaves `[B, ...]`.
          y: `[B]`.

        Returns:
          A loss of one draw, and `B draws` inputs and targets of it, an example's together.
        """
        numbers = jax.vmap(self._numbers, (None, 0, 0))(params, x, y)
        x, y = jax.tree.map(lambda leaf: jnp.repeat(leaf, self.draws, axis=0), (x, y))
        return self._of_draw, (numbers.reshape(-1), x), y

    def _of_draw(self, params, x, y) -> jax.Array:
        """Loss `[]` of an example `(number of its masks, inputs)`."""
        (number, inputs), met = x, collections.Counter()
        with nn.intercept_methods(_dropping(self.rate, number, self.seed, met)):
            value = self.loss(params, inputs, y)
        if not met:
            raise ValueError(
                "model: expected nn.Dropout layers that are called anew, got none; a network "
                "within jit is traced once"
            )
        return value

    def _numbers(self, params, x, y) -> jax.Array:
        """Numbers `[draws]` of masks."""
        if isinstance(x, Begun):
            x = x.hidden
        elif isinstance(x, Features):
            x = x.numeric[..., : x.numeric.shape[-1] - self.block], x.codes
        each = _finished(
            _mixed((params, x, y)) + jnp.arange(self.draws, dtype="uint32")
        )
        return (each % _MASKS).astype(int)


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

    # What is within jit would not be traced anew.
    with nn.intercept_methods(record), jax.disable_jit():
        jax.eval_shape(lambda *given: apply_fn(*given), params, x)
    return any(found)


def _dropping(
    rate: float, number: jax.Array, seed: int, met: collections.Counter
) -> Callable[..., Any]:
    """An interceptor of methods under which `nn.Dropout` layers drop what a mask says.

    Args:
      rate: p.
      number: [] of the masks.
      seed: of all of them.
      met: counts the calls of each layer, of which each has masks of its own.
    """

    def intercept(method, args, kwargs, context):
        layer = context.module
        if not isinstance(layer, nn.Dropout) or context.method_name != "__call__":
            return method(*args, **kwargs)
        units = args[0] if args else kwargs["inputs"]
        name = "/".join(layer.path)
        met[name] += 1
        place = seed, zlib.crc32(name.encode()), met[name]
        kept = jnp.asarray(_masks(rate, jnp.shape(units), place))[number]
        return jnp.where(kept, units / (1 - rate), 0)

    return intercept


@functools.lru_cache(maxsize=16)
def _masks(rate: float, shape: tuple[int, ...], place: tuple[int, ...]) -> np.ndarray:
    """`[_MASKS, ...]` which units are kept, each in as many masks as any other."""
    order = np.random.default_rng(place).random((_MASKS, *shape)).argsort(axis=0)
    return order >= round(rate * _MASKS)


def _mixed(tree: PyTree) -> jax.Array:
    """A number [] of 32 bits that depends on every bit of the leaves."""
    mixed = jnp.zeros((), jnp.uint32)
    for leaf in jax.tree.leaves(tree):
        flat = jax.lax.stop_gradient(jnp.ravel(jnp.asarray(leaf, jnp.float32)))
        bits = jax.lax.bitcast_convert_type(flat, jnp.uint32)
        places = jnp.arange(len(flat), dtype=jnp.uint32) * np.uint32(0x9E3779B9)
        mixed = _finished(mixed + jnp.sum(_finished(bits + places), dtype=jnp.uint32))
    return mixed


def _finished(bits: jax.Array) -> jax.Array:
    """Each bit over all 32 (MurmurHash3's last step; Appleby, 2011)."""
    bits = (bits ^ bits >> 16) * np.uint32(0x85EBCA6B)
    bits = (bits ^ bits >> 13) * np.uint32(0xC2B2AE35)
    return bits ^ bits >> 16

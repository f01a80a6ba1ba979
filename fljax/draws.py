"""Random numbers: the bits of JAX from a faster generator, and numbers made of all of them.

JAX lowers Threefry-2x32 (Salmon et al., SC 2011) to a loop on CPUs, whose rotations are
by numbers read from memory: 5 to 8 ns for 32 bits where the rounds written out one after
another take 2 to 3. Nothing else differs: key, counters and bits are those of
`jax.random`, so that a draw from `unrolled(key)` is equal to the last bit to one from
`key`. What generators and normals cost is in `experiments.benchmarks.draws`. Of 32 bits
`jax.random` uses 23 for a number; `uniform` and `normal` use all, and the tails of `normal`
the 32 more that a block of Threefry has.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import random as extended

from fljax.types import Key

_UNIT = np.float32(2.0**-32)
_THREEFRY = extended.threefry_prng_impl
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_FEW = np.uint32(1 << 8)  # bits below which a tail is told by more of them
_MORE = 0x7A115  # folded into a key that has no more bits itself


def unrolled(key: Key) -> Key:
    """A key that draws the same numbers in less time; any other kind stays as it is.

    Args:
      key: typed, of any shape; the key is not consumed.
    """
    plain = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    # The other way to count gives other bits, which are not written out here. JAX adds
    # its settings to `config` at run time, where pyright does not see them.
    if not (plain and jax.config.jax_threefry_partitionable):  # pyright: ignore[reportAttributeAccessIssue]
        return key
    if jax.random.key_impl(key) != "threefry2x32":
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_UNROLLED)


def uniform(key: Key, shape: tuple[int, ...]) -> jax.Array:
    """Numbers in (0, 1], float32: every one that 32 bits give, small ones exactly.

    `jax.random.uniform(key, shape)` is the same without the last nine bits.
    """
    bits = jax.random.bits(key, shape, jnp.uint32)
    return (bits.astype(jnp.float32) + 0.5) * _UNIT


def normal(key: Key, shape: tuple[int, ...], dtype=jnp.float32) -> jax.Array:
    """Standard normal numbers whose tails are those of 64 bits: up to 9.15 deviations.

    `jax.random.normal` ends at 5.4 and from four on has few numbers, so that a noisy sum
    tells more often than an accountant allows that it is none without a record. Up to
    four the numbers are the same to 1e-3, near zero to rounding. Another type than
    float32 is drawn by `jax.random.normal`.
    """
    if dtype != jnp.float32:
        return jax.random.normal(key, shape, dtype)
    size = math.prod(shape)
    if size < 2**32 and jax.random.key_impl(key) == _UNROLLED:
        tail = _tails(jax.random.key_data(key), _counters(size, shape))
    else:
        more = jax.random.bits(jax.random.fold_in(key, _MORE), shape, jnp.uint32)
        tail = _tail(jax.random.bits(key, shape, jnp.uint32), more)
    below = jax.scipy.special.ndtri(jnp.abs(tail))  # no tail is above a half
    return jnp.where(tail < 0, below, -below)


@jax.jit
def _tails(key, low):
    def tails(key, low):
        high, low = _block(key, low)
        return _tail(high ^ low, low)

    return lax.platform_dependent(key, low, cpu=_once(tails), default=tails)


def _tail(bits: jax.Array, more: jax.Array) -> jax.Array:
    """What lies beyond a number on its side of the median, with the sign of the side.

    Of the least and the greatest `bits` that is told by `more`, too.
    """
    tail = jnp.minimum(bits, ~bits)
    beyond = jnp.where(tail < _FEW, (more.astype(jnp.float32) + 0.5) * _UNIT, 0.5)
    share = (tail.astype(jnp.float32) + beyond) * _UNIT
    return jnp.where(bits < jnp.uint32(1 << 31), -share, share)


def _random_bits(key, bit_width: int, shape) -> jax.Array:
    size = math.prod(shape)
    if bit_width != 32 or size >= 2**32:
        return _THREEFRY.random_bits(key, bit_width, shape)
    low = _counters(size, shape)
    return lax.platform_dependent(key, low, cpu=_once(_bits), default=_bits)


def _counters(size: int, shape) -> jax.Array:
    return lax.iota(np.uint32, size).reshape(shape)


def _bits(key, low):
    high, low = _block(key, low)
    return high ^ low


def _once(draw: Callable) -> Callable:
    """The same, kept. A compiler would draw them again wherever they are used.

    It does not look into a loop, unless it knows that it ends after one turn.
    """

    def kept(key, low):
        turns = lax.optimization_barrier(np.int32(1))
        zeros = jnp.zeros_like(low, jax.eval_shape(draw, key, low).dtype)
        return lax.fori_loop(0, turns, lambda *_: draw(key, low), zeros)

    return kept


@jax.jit  # eagerly, a hundred operations would be a hundred programs
def _block(key, low):
    """Threefry-2x32 with 20 rounds of the counters `(0, low)`: two words for each."""
    keys = key[0], key[1], key[0] ^ key[1] ^ _PARITY
    left, right = jnp.broadcast_to(keys[0], low.shape), low + keys[1]
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            left = left + right
            turned = (right << np.uint32(turn)) | (right >> np.uint32(32 - turn))
            right = left ^ turned
        left = left + keys[(group + 1) % 3]
        right = right + keys[(group + 2) % 3] + np.uint32(group + 1)
    return left, right


_UNROLLED = extended.define_prng_impl(
    key_shape=(2,),
    seed=_THREEFRY.seed,
    split=_THREEFRY.split,
    random_bits=_random_bits,
    fold_in=_THREEFRY.fold_in,
    name="threefry2x32, unrolled",
    tag="unrolled",
)

"""Which rows each mini-batch of a round holds: shuffled, in their order, or Poisson."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fljax import draws
from fljax.packing import Slots
from fljax.schedule import Schedule
from fljax.types import Key

_PACKED_SORT_ROWS = 2**14  # leaves at least 18 random bits beside a row's position
_LAST = np.uint32(2**32 - 1)  # sorts padding behind every row


def rows(
    keys: Key, clients: jax.Array, schedule: Schedule, slots: Slots
) -> tuple[jax.Array, jax.Array]:
    """Rows of every batch of a round, and which of them are real.

    Args:
      keys: `[M]` of the participants, in this round and for this purpose.
      clients: `[M]` ids.
      schedule: who trains when.
      slots: its tables of the round, leaves `[S, L]`.

    Returns:
      Positions in the flat rows of all clients `[S, L, B]`, and bool in the same shape;
      padding points at some row of the client.
    """
    sizes = schedule.sizes[clients]
    offsets = (jnp.cumsum(schedule.sizes) - schedule.sizes)[clients]
    last = sizes[slots.participant_index][..., None] - 1
    if schedule.poisson:
        rates = jnp.asarray(schedule.sampling_rate, jnp.float32)[clients]
        position = _poisson_positions(keys, rates, sizes, slots, schedule.capacity)
        real = (position <= last) & (slots.count > 0)[..., None]
    else:
        within = jnp.arange(schedule.batch_size)[None, None, :]
        position = _ordered_positions(keys, sizes, schedule, slots, within)
        real = within < slots.count[..., None]
    return offsets[slots.participant_index][..., None] + jnp.minimum(
        position, last
    ), real


def _ordered_positions(keys, sizes, schedule, slots, within):
    """Positions `[S, L, B]` in each client's rows: stored or shuffled, epoch by epoch."""
    position = slots.start[..., None] + within
    position = jnp.minimum(position, schedule.max_rows - 1)
    if not schedule.shuffle:
        return position
    epochs = jnp.arange(schedule.num_epochs)
    order = jax.vmap(
        lambda key, size: jax.vmap(
            lambda e: _permutation(jax.random.fold_in(key, e), size, schedule.max_rows)
        )(epochs)
    )(keys, sizes)
    return order[slots.participant_index[..., None], slots.epoch[..., None], position]


def _poisson_positions(keys, rates, sizes, slots, capacity: int):
    """Positions `[S, L, B]` of rows drawn independently, beyond the last for no row."""

    def one(participant_index, step):
        key = jax.random.fold_in(keys[participant_index], step)
        return _poisson_sample(
            key, rates[participant_index], sizes[participant_index], capacity
        )

    return jax.vmap(jax.vmap(one))(slots.participant_index, slots.step)


def _poisson_sample(key, rate, size, capacity: int):
    """Increasing positions `[capacity]`, each of `range(size)` with probability `rate`.

    The gaps between independently drawn positions are geometric, so that the work is
    that of the rows drawn and not of all. Positions from `size` on stand for no row.
    More capacity appends positions and changes none. The rounding of a gap moves the
    rate by less than 1e-7 of itself where it is 1e-3 or more, by less than 1e-5 at 1e-5.
    """
    drawn = draws.uniform(key, (capacity,))  # of 1 the gap is infinite: no row
    gap = 1 + jnp.floor(jnp.log1p(-drawn) / jnp.log1p(-rate))
    gap = jnp.where(rate < 1, gap, 1)  # for which 1 drawn gives no number
    gap = jnp.minimum(gap, size + 1).astype(jnp.int32)  # sums stay in range
    return jnp.cumsum(gap) - 1


def _permutation(key, size, max_rows: int):
    """Random order of `range(size)` in the first `size` of `[max_rows]` places.

    Rows are sorted by random bits, of which the lowest make room for the row's own
    position: sorting one word is several times faster on a CPU than sorting pairs.
    Where the remaining bits of two rows agree they keep their stored order. The result
    depends on `key` and `size` alone, not on `max_rows`.
    """
    bits = jax.random.bits(key, (max_rows,))
    position = jnp.arange(max_rows, dtype=jnp.uint32)
    width = 32 - lax.clz(jnp.maximum(size - 1, 0).astype(jnp.uint32))
    low = (jnp.uint32(1) << width) - 1
    bits = jnp.where(size > _PACKED_SORT_ROWS, bits, bits & ~low)
    if max_rows > _PACKED_SORT_ROWS:
        bits = jnp.where(position < size, bits, _LAST)
        return lax.sort((bits, position.astype(jnp.int32)), num_keys=1)[1]
    word = jnp.where(position < size, bits | position, _LAST)
    return (lax.sort(word) & low).astype(jnp.int32)

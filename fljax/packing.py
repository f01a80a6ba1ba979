"""Lays ragged clients into lanes of nearly equal length: NumPy, on the host.

Longest first, each client to the lane that is free earliest. What comes out says, for
every step of every lane, whose mini-batch it trains. All rounds are laid at once, so that
a million of them take seconds.
"""

from typing import NamedTuple

import numpy as np

from fljax.types import Array

_BLOCK = 2**12  # rounds whose slots are written at once
_MAX_LANES = 16  # wider gains nothing on a CPU: the lanes' params leave the cache
_MAX_LANES_OF_ACCELERATOR = 256
_OCCUPANCY = 0.98  # the widest packing that wastes no more than this is good enough


class Slots(NamedTuple):
    """What each lane does at each step; leaves `[T, S, L]` int32.

    Attributes:
      participant_index: index into the round's participants.
      epoch: local epoch, i.e. which shuffle of its rows.
      start: first position of the batch in the shuffled rows.
      count: rows in the batch, 0 for an idle slot.
      step: its local step number.
    """

    participant_index: Array
    epoch: Array
    start: Array
    count: Array
    step: Array


class Packing(NamedTuple):
    """Where clients lie in the lanes of each round; leaves `[T, C]` where not said.

    Attributes:
      present: bool, who takes part.
      lane: of each client that does.
      begin: step at which it begins.
      steps: `[C]` local steps of each.
      length: `[T, L]` steps of each lane.
    """

    present: np.ndarray
    lane: np.ndarray
    begin: np.ndarray
    steps: np.ndarray
    length: np.ndarray

    @property
    def width(self) -> int:
        """Steps of the longest lane, S."""
        return max(int(self.length.max()), 1)


def batches_per_epoch(
    sizes: Array, batch_size: Array | int | None, drop_last: bool = False
) -> Array:
    """Mini-batches that hold each client's rows once.

    Args:
      sizes: rows of each client, of any shape.
      batch_size: rows in a mini-batch; None takes all of a client's rows at once.
      drop_last: leave out what rows remain behind the last full batch, if any; else they
        are a smaller one.
    """
    if batch_size is None:
        return np.ones(sizes.shape, int)
    return sizes // batch_size if drop_last else -(-sizes // batch_size)


def sampling_rate(
    sizes: Array, batch_size: Array | int | None, drop_last: bool = False
) -> Array:
    """Most that is in a mini-batch of each client's rows, of Poisson batches its probability.

    Args:
      sizes: rows of each client, of any shape; 1 of one without a batch.
      batch_size: as in `batches_per_epoch`, as is `drop_last`.
    """
    return 1 / batches_per_epoch(sizes, batch_size, drop_last).clip(1)


def steps_per_round(
    sizes: Array,
    batch_size: int | None,
    epochs: int = 1,
    steps: int | None = None,
    drop_last: bool = False,
) -> Array:
    """Local steps of each client in a round.

    Args:
      sizes: rows of each client, of any shape.
      batch_size: rows in a mini-batch; None takes all of a client's rows at once.
      epochs: passes over its rows.
      steps: instead of epochs: a pass is cut short or followed by more.
      drop_last: as in `batches_per_epoch`.

    Example:
      >>> steps_per_round(np.array([32, 33]), batch_size=32, epochs=2).tolist()
      [2, 4]
    """
    if steps is not None:
        return np.full(sizes.shape, steps)
    return np.int64(epochs) * batches_per_epoch(sizes, batch_size, drop_last)


def pack(present: np.ndarray, steps: np.ndarray, num_lanes: int) -> Packing:
    """Longest first, each to the lane that is free earliest; all rounds at once.

    Args:
      present: `[T, C]` bool, who takes part.
      steps: `[C]` local steps of each.
      num_lanes: L.
    """
    rounds = np.arange(len(present))
    length = np.zeros((len(present), num_lanes), np.int32)
    lane, begin = (np.zeros(present.shape, np.int32) for _ in range(2))
    for client in np.argsort(-steps, kind="stable"):
        lane[:, client] = length.argmin(axis=1)
        begin[:, client] = length[rounds, lane[:, client]]
        length[rounds, lane[:, client]] += present[:, client] * steps[client]
    return Packing(present, lane, begin, steps, length)


def choose_lanes(present: np.ndarray, steps: np.ndarray, accelerator: bool) -> int:
    """How many lanes are fastest, judged by few rounds with many clients.

    On a CPU the widest packing with nearly all slots in use. On an accelerator, where a
    step takes as long with few lanes as with many, the narrowest one that is as short as
    that of as many lanes as it can hold, or as clients.

    Args:
      present: `[T, C]` who takes part.
      steps: `[C]` local steps of each.
      accelerator: whether they train on one.
    """
    count = present.sum(axis=1)
    most = int(count.max())
    sample = present[:8]
    if accelerator:
        sample = present[np.argsort(-count, kind="stable")[:8]]
        return _fewest_steps(
            sample, steps, max(1, min(_MAX_LANES_OF_ACCELERATOR, most))
        )

    def occupancy(num_lanes):
        length = pack(sample, steps, num_lanes).length
        return length.sum() / max(length.max() * length.size, 1)

    best, share = 1, 0.0
    for width in range(max(1, min(_MAX_LANES, most)), 0, -1):
        if (found := occupancy(width)) >= _OCCUPANCY:
            return width
        if found > share:
            best, share = width, found
    return best


def _fewest_steps(present: np.ndarray, steps: np.ndarray, most: int) -> int:
    """The narrowest of few packings that is no longer than the widest."""
    longest = pack(present, steps, most).width
    total = (present * steps).sum(axis=1).max()
    width = max(1, int(-(-total // longest)))
    while width < most and pack(present, steps, width).width > longest:
        width = min(most, max(width + 1, width * 9 // 8))
    return width


def slot_tables(
    packed: Packing, sizes: np.ndarray, batch: int, drop_last: bool = False
) -> Slots:
    """Slots `[T, S, L]`.

    Args:
      packed: from `pack`.
      sizes: `[C]` rows of each client.
      batch: rows in a mini-batch.
      drop_last: as in `batches_per_epoch`.
    """
    shape = (len(packed.present), packed.width, packed.length.shape[1])
    slots = Slots(*(np.zeros(shape, np.int32) for _ in Slots._fields))
    index = packed.present.cumsum(axis=1) - 1
    per_epoch = batches_per_epoch(sizes, batch, drop_last)
    for first in range(0, len(index), _BLOCK):
        round_, client = np.nonzero(packed.present[first : first + _BLOCK])
        round_, steps = round_ + first, packed.steps[client]
        each = np.repeat(np.arange(len(client)), steps)
        step = np.arange(len(each)) - np.repeat(np.cumsum(steps) - steps, steps)
        round_, client = round_[each], client[each]
        begin, lane = packed.begin[round_, client], packed.lane[round_, client]
        epoch, within = np.divmod(step, per_epoch[client])
        start = within * batch
        count = np.minimum(batch, sizes[client] - start)
        values = Slots(index[round_, client], epoch, start, count, step)
        for table, value in zip(slots, values, strict=True):
            table[round_, begin + step, lane] = value
    return slots


def most_steps(participants: Array, slots: Slots, num_clients: int) -> np.ndarray:
    """Steps `[C]` of each client in a round in which it takes part, else 0; on the host.

    Args:
      participants: `[T, M]` client ids, `C` for an empty place.
      slots: what each lane does.
      num_clients: `C`.
    """
    who, index = np.asarray(participants), np.asarray(slots.participant_index)
    client = who[np.arange(len(who))[:, None, None], index]
    busy = np.asarray(slots.count) > 0
    steps = np.zeros(num_clients + 1, np.int64)
    np.maximum.at(steps, client[busy], np.asarray(slots.step)[busy] + 1)
    return steps[:-1]

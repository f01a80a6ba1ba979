"""Lays ragged clients into lanes of nearly equal length: NumPy, on the host.

Longest first, each client to the lane that is free earliest. What comes out says, for
every step of every lane, whose mini-batch it trains.
"""

import heapq
from typing import NamedTuple

import numpy as np

from fljax.types import Array


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


class Job(NamedTuple):
    """One client's local steps in one round; leaves `[steps]`."""

    participant_index: int
    epoch: np.ndarray
    start: np.ndarray
    count: np.ndarray


def batches_per_epoch(sizes: Array, batch_size: int | None) -> Array:
    """Mini-batches that hold each client's rows once, the last may be smaller.

    Args:
      sizes: rows of each client, of any shape.
      batch_size: rows in a mini-batch; None takes all of a client's rows at once.
    """
    if batch_size is None:
        return np.ones(sizes.shape, int)
    return -(-sizes // batch_size)


def steps_per_round(
    sizes: Array, batch_size: int | None, epochs: int = 1, steps: int | None = None
) -> Array:
    """Local steps of each client in a round.

    Args:
      sizes: rows of each client, of any shape.
      batch_size: rows in a mini-batch; None takes all of a client's rows at once.
      epochs: passes over its rows.
      steps: instead of epochs: a pass is cut short or followed by more.
    """
    if steps is not None:
        return np.full(sizes.shape, steps)
    return epochs * batches_per_epoch(sizes, batch_size)


def job(
    participant_index: int, size: int, batch: int, epochs: int, steps: int | None
) -> Job:
    rows = np.asarray(size)
    per_epoch = int(batches_per_epoch(rows, batch))
    index = np.arange(int(steps_per_round(rows, batch, epochs, steps)))
    start = (index % per_epoch) * batch
    return Job(
        participant_index, index // per_epoch, start, np.minimum(batch, size - start)
    )


def pack(jobs: list[Job], num_lanes: int) -> list[list[Job]]:
    """Longest first, each to the lane that is free earliest."""
    lanes: list[list[Job]] = [[] for _ in range(num_lanes)]
    free = [(0, lane) for lane in range(num_lanes)]
    for job in sorted(jobs, key=lambda job: -len(job.count)):
        length, lane = heapq.heappop(free)
        lanes[lane].append(job)
        heapq.heappush(free, (length + len(job.count), lane))
    return lanes


def slot_tables(packed, num_lanes: int) -> tuple[Slots, np.ndarray]:
    """Slots `[T, S, L]` and, in the same shape, the participant_index that ends there or -1."""
    lengths = [sum(len(j.count) for j in lane) for lanes in packed for lane in lanes]
    shape = (len(packed), max(max(lengths), 1), num_lanes)
    slots = Slots(*(np.zeros(shape, np.int32) for _ in Slots._fields))
    ends = np.full(shape, -1, np.int32)
    for table, lanes in enumerate(packed):
        for lane, jobs in enumerate(lanes):
            at = 0
            for job in jobs:
                where = (table, slice(at, at + len(job.count)), lane)
                slots.participant_index[where] = job.participant_index
                slots.epoch[where] = job.epoch
                slots.start[where] = job.start
                slots.count[where] = job.count
                slots.step[where] = np.arange(len(job.count))
                at += len(job.count)
                ends[table, at - 1, lane] = job.participant_index
    return slots, ends

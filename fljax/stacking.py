"""Joins the schedules of several runs (seeds) for one vmapped program: NumPy.

Seeds split and sample differently, so their tables differ in size. Each is padded to
the largest; padding is idle slots, empty places and ends of nobody.
"""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from fljax.schedule import ClientEnds, Schedule


def stack(schedules: Sequence[Schedule]) -> tuple[Schedule, Schedule]:
    """Joins schedules of equally many clients and rounds.

    Returns:
      The joined `Schedule`, leaves `[runs, ...]`, and, in the same shape, the `in_axes`
      for `jax.vmap`. `end_steps` are shared, so that loop bounds stay common to all runs.

    Raises:
      ValueError: if the runs do not have the same number of clients and rounds, or the
        same batch size where it is the rate of Poisson batches.
    """
    for field in ("sizes", "record", "recorded_rounds"):
        if len({getattr(s, field).shape for s in schedules}) > 1:
            raise ValueError(f"schedules differ in the shape of {field!r}")
    if len({len(s.participants) for s in schedules}) > 1:
        raise ValueError("schedules differ in 'participants': 1 or R rounds of them")
    end_steps = np.unique(np.concatenate([s.end_steps for s in schedules]))
    common = {
        "end_steps": end_steps.astype(np.int32),
        "batch_size": max(s.batch_size for s in schedules),
        "capacity": max(s.capacity for s in schedules),
        "num_epochs": max(s.num_epochs for s in schedules),
        "max_rows": max(s.max_rows for s in schedules),
    }
    for each in schedules:
        joined = dataclasses.replace(each, batch_size=common["batch_size"])
        if each.poisson and (joined.sampling_rate != each.sampling_rate).any():
            raise ValueError("schedules of Poisson batches differ in 'batch_size'")
    num_slots = max(s.recorded_clients.shape[1] for s in schedules)
    aligned = [
        dataclasses.replace(_at_end_steps(s, end_steps, num_slots), **common)
        for s in schedules
    ]
    zeros = jax.tree.map(lambda _: np.zeros((), np.int32), aligned[0])
    fill = dataclasses.replace(
        zeros,
        participants=np.int32(schedules[0].sizes.shape[0] - 1),
        client_ends=zeros.client_ends._replace(slot=np.int32(num_slots)),
        recorded_clients=np.int32(-1),
    )
    joined = jax.tree.map(_stack_padded, fill, *aligned)
    axes = jax.tree.map(lambda _: 0, joined)
    return (
        dataclasses.replace(joined, end_steps=common["end_steps"]),
        dataclasses.replace(axes, end_steps=None),
    )


def _at_end_steps(
    schedule: Schedule, end_steps: np.ndarray, num_slots: int
) -> Schedule:
    """The same schedule with more end steps, at which none of its clients ends."""
    own = np.searchsorted(end_steps, schedule.end_steps)
    client_ends = schedule.client_ends
    shape = (client_ends.weight.shape[0], len(end_steps), client_ends.weight.shape[2])

    def spread(leaf, fill):
        wide = np.full(shape, fill, leaf.dtype)
        wide[:, own] = leaf
        return wide

    unrecorded = client_ends.slot == schedule.recorded_clients.shape[1]
    return dataclasses.replace(
        schedule,
        client_ends=ClientEnds(
            weight=spread(client_ends.weight, 0),
            done=spread(client_ends.done, False),
            slot=spread(np.where(unrecorded, num_slots, client_ends.slot), num_slots),
        ),
    )


def _stack_padded(fill, *leaves: np.ndarray) -> np.ndarray:
    shape = np.max([leaf.shape for leaf in leaves], axis=0)
    padded = np.full((len(leaves), *shape), fill, leaves[0].dtype)
    for run, leaf in enumerate(leaves):
        padded[(run, *map(slice, leaf.shape))] = leaf
    return padded

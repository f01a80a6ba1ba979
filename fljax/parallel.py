"""Spreads work over the devices of one machine.

Rounds: the lanes (or the seeds) of a schedule are placed on different devices and the
compiler partitions the program. Attacks: independent items are dealt to the devices,
each of which works through its own with `lax.map`, so that only one item per device is
in memory. On a CPU, `use_cpu_cores()` before the first use of JAX makes each core a
device.
"""

import dataclasses
import os
from collections.abc import Callable

import jax
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from fljax.schedule import Schedule
from fljax.types import PyTree

_AXIS = "devices"
_DEVICES = "jax_num_cpu_devices"
_REDUCTIONS = "--xla_cpu_experimental_ynn_fusion_type"


def use_cpu_cores() -> None:
    """Makes each core of a CPU a device; call before the first use of JAX.

    Also turns off XLA's YNNPACK kernels, by the environment variable XLA_FLAGS: their
    reductions share one pool of threads, in which two devices wait for each other
    (trajectory matching of two clients on two cores takes 3.3 times as long with them).
    What was chosen before, by `jax_num_cpu_devices` or in XLA_FLAGS, stays.
    """
    if getattr(jax.config, _DEVICES) < 0:
        jax.config.update(_DEVICES, os.cpu_count())
    chosen = os.environ.get("XLA_FLAGS", "")
    if _REDUCTIONS not in chosen:
        os.environ["XLA_FLAGS"] = f"{chosen} {_REDUCTIONS}=".strip()


def mesh(num_devices: int | None = None) -> Mesh:
    """One axis over the first `num_devices` devices, by default over all."""
    devices = jax.devices()[:num_devices]
    return jax.make_mesh(
        (len(devices),), (_AXIS,), axis_types=(AxisType.Auto,), devices=devices
    )


def place(tree: PyTree, over: Mesh, axis: int | None | PyTree = None) -> PyTree:
    """Puts a tree on the devices.

    Args:
      tree: arrays.
      over: from `mesh`.
      axis: split every leaf along this axis, or, for None, copy it to each device; a
        tree in the shape of `tree` says so leaf by leaf, None included.
    """

    def put(leaf, axis):
        spec = [] if axis is None else [None] * axis + [_AXIS]
        return jax.device_put(leaf, NamedSharding(over, PartitionSpec(*spec)))

    if axis is None or isinstance(axis, int):
        return jax.tree.map(lambda leaf: put(leaf, axis), tree)
    leaves, treedef = jax.tree.flatten(tree)
    axes = jax.tree.leaves(axis, is_leaf=lambda leaf: leaf is None)
    return treedef.unflatten([put(*pair) for pair in zip(leaves, axes, strict=True)])


def place_lanes(schedule: Schedule, over: Mesh) -> Schedule:
    """Puts the schedule's lanes, its last axis, on different devices.

    Raises:
      ValueError: if the number of lanes is not a multiple of the devices'.
    """
    if schedule.num_lanes % over.size:
        raise ValueError(
            f"lanes must be a multiple of {over.size} devices, got {schedule.num_lanes}"
        )
    axis = schedule.slots.count.ndim - 1
    whole = place(schedule, over)
    return dataclasses.replace(
        whole,
        slots=place(schedule.slots, over, axis),
        finish=place(schedule.finish, over, axis),
    )


def map_items(fun: Callable, items: PyTree, shared: PyTree, over: Mesh) -> PyTree:
    """`[fun(item, shared) for item in items]`, spread over the devices; call under jit.

    Args:
      fun: `(item, shared) -> result`, of one item.
      items: leaves `[items, ...]`; padded here to a multiple of the devices by repeating
        the last item.
      shared: given whole to every call.
      over: from `mesh`.

    Returns:
      Results with leaves `[items, ...]`.
    """
    count = len(jax.tree.leaves(items)[0])
    index = np.minimum(np.arange(-(-count // over.size) * over.size), count - 1)
    padded = jax.tree.map(lambda leaf: leaf[index], items)

    def work(items, shared):
        return lax.map(lambda item: fun(item, shared), items)

    spread = jax.shard_map(
        work,
        mesh=over,
        in_specs=(PartitionSpec(_AXIS), PartitionSpec()),
        out_specs=PartitionSpec(_AXIS),
        check_vma=False,
    )
    return jax.tree.map(lambda leaf: leaf[:count], spread(padded, shared))

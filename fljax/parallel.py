"""Spreads work over devices, of one machine or of several processes that met.

Rounds: the lanes (or the seeds) of a schedule are placed on different devices and the
compiler partitions the program. Attacks: independent items are dealt to the devices,
each of which works through its own with `lax.map`, so that only one item per device is
in memory. On a CPU, `use_cpu_cores()` before the first use of JAX makes each core a
device.

After `jax.distributed.initialize` a mesh has the devices of all processes, each of which
has to make the same calls with the same values; `map_items` and `fetch` give every one of
them all results.
"""

import dataclasses
import os
from collections.abc import Callable

import jax
import jax.numpy as jnp
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
    """One axis over all devices of all processes, or over this one's first few."""
    devices = jax.devices()
    if num_devices is not None:
        devices = jax.local_devices()[:num_devices]
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
        where = NamedSharding(over, PartitionSpec(*spec))
        if _spans_processes(over) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            bits = jax.device_put(jax.random.key_data(leaf), where)
            return jax.random.wrap_key_data(bits, impl=jax.random.key_impl(leaf))
        return jax.device_put(leaf, where)

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
    found = jax.tree.map(lambda leaf: leaf[:count], spread(padded, shared))
    return _everywhere(found, over) if _spans_processes(over) else found


def fetch(tree: PyTree) -> PyTree:
    """All of a tree as NumPy arrays, in every process."""

    def whole(leaf):
        if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable:
            return leaf
        return jax.jit(_everywhere, static_argnums=1)(leaf, mesh())

    return jax.device_get(jax.tree.map(whole, tree))


def _spans_processes(over: Mesh) -> bool:
    return any(d.process_index != jax.process_index() for d in over.devices.flat)


def _everywhere(tree: PyTree, over: Mesh) -> PyTree:
    return lax.with_sharding_constraint(tree, NamedSharding(over, PartitionSpec()))

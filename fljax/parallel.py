"""Spreads work over devices, of one machine or of several processes that met.

Rounds: the lanes (or the seeds) of a schedule are placed on different devices and the
compiler partitions the program. Trainings and attacks: independent items are dealt to
the devices (`map_items`), each of which works through its own; the result of an item
does not depend on the number of devices. On a CPU, `use_cpu_cores()` before the first
use of JAX makes each core that the process may use a device.

After `jax.distributed.initialize` a mesh has the devices of all processes, each of which
has to make the same calls with the same values; `map_items` and `fetch` give every one of
them all results.
"""

import dataclasses
import heapq
import os
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from fljax import cores
from fljax.schedule import Schedule
from fljax.types import PyTree

_AXIS = "devices"
_DEVICES = "jax_num_cpu_devices"


def use_cpu_cores() -> None:
    """Makes each core that this process may use a device; call before JAX is used.

    There are two devices at least: a program for one device is compiled in another way,
    which rounds differently, and results shall not depend on their number.

    Also sets XLA_FLAGS, see `cores.xla_flags`.

    What was chosen before, by `jax_num_cpu_devices` or in XLA_FLAGS, stays.
    """
    if getattr(jax.config, _DEVICES) < 0:
        jax.config.update(_DEVICES, max(2, cores.available()))
    os.environ["XLA_FLAGS"] = cores.xla_flags(os.environ.get("XLA_FLAGS", ""))


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
        client_ends=place(schedule.client_ends, over, axis),
    )


def map_items(
    fun: Callable,
    items: PyTree,
    shared: PyTree,
    over: Mesh,
    *,
    cost: np.ndarray | None = None,
    at_once: int = 1,
) -> PyTree:
    """`[fun(item, shared) for item in items]`, spread over the devices; call under jit.

    At most as many devices as items compute, and each item is computed once. With
    `at_once=1` an item goes through the same program whatever the number of other items
    and, from two on, of devices: its result is the same to the last bit.

    Args:
      fun: `(item, shared) -> result`, of one item.
      items: leaves `[items, ...]`.
      shared: given whole to every call.
      over: from `mesh`.
      cost: `[items]` relative times, by which they are dealt; None for equal ones.
      at_once: items side by side on a device under `vmap`, at most, for accelerators;
        groups are of one size, the last filled up with repetitions.

    Returns:
      Results with leaves `[items, ...]`.
    """
    count = len(jax.tree.leaves(items)[0])
    dealt = dealing(count, over, cost=cost, at_once=at_once)
    mine = jax.tree.map(lambda leaf: leaf[dealt.item], items)
    found = spread(fun, dealt, mine, shared, over)
    if not np.array_equal(dealt.place, np.arange(len(dealt.item))):
        found = jax.tree.map(lambda leaf: leaf[dealt.place], found)
    return _everywhere(found, over) if _spans_processes(over) else found


class Dealing(NamedTuple):
    """Where items lie on the devices, in blocks of equal length.

    Attributes:
      item: `[D * length]` the item of each place; where there is none, any.
      place: `[items]` the place of each item.
      groups: `[D]` int32 how many groups of items a device computes.
      at_once: items of a group.
    """

    item: np.ndarray
    place: np.ndarray
    groups: np.ndarray
    at_once: int


def dealing(
    count: int,
    over: Mesh,
    *,
    cost: np.ndarray | None = None,
    at_once: int = 1,
    room: int = 0,
) -> Dealing:
    """Deals `count` items; arguments as of `map_items`.

    With `room` for more items, their places have the same length, up to a group.
    """
    table = deal(np.ones(count) if cost is None else cost, over.size)
    most = table.shape[1]
    at_once = -(-most // -(-most // at_once))  # as few idle places as groups allow
    length = -(-max(most, -(-room // over.size)) // at_once) * at_once
    wide = ((0, 0), (0, length - table.shape[1]))
    table = np.pad(table, wide, constant_values=-1)
    place = np.empty(count, int)
    place[table[table >= 0]] = np.flatnonzero(table >= 0)
    groups = -(-(table >= 0).sum(axis=1) // at_once)
    item = np.where(table < 0, table[:, :1].clip(0), table).ravel()
    return Dealing(item, place, groups.astype(np.int32), at_once)


def spread(
    fun: Callable,
    dealt: Dealing,
    items: PyTree,
    shared: PyTree,
    over: Mesh,
    state: PyTree = None,
) -> PyTree:
    """`map_items` of items that are dealt already; call under jit.

    Args:
      fun: `(item, shared) -> result`; with a state `(item, shared, state) -> state`.
      dealt: from `dealing`; its groups may be traced.
      items: leaves `[D * length, ...]`, as `dealt.item` says.
      shared: given whole to every call.
      over: from `mesh`.
      state: likewise dealt, each item's own, which its result takes the place of; None
        for none.

    Returns:
      Results of the form of `items`; where there is no item, zeros or the old state.
    """
    size, carried = dealt.at_once, state is not None

    @jax.jit  # traced once, for shapes and in the loop
    def one(*args):
        if size > 1:
            return jax.vmap(fun, (0, None, 0)[: len(args)])(*args)
        item, shared, *state = args
        alone = jax.tree.map(lambda leaf: leaf[0], (item, *state))
        return jax.tree.map(lambda leaf: leaf[None], fun(alone[0], shared, *alone[1:]))

    def work(groups, items, shared, found):
        def group(i, found):
            at = i * size
            # Kept apart from the loop: the compiler would fuse a block of one item with
            # its surroundings, which rounds in another way.
            at, (mine, old) = lax.optimization_barrier(
                (at, _cut((items, found if carried else ()), at, size))
            )
            new = one(mine, shared, *([old] if carried else []))
            return jax.tree.map(
                lambda leaf, part: lax.dynamic_update_slice_in_dim(leaf, part, at, 0),
                found,
                lax.optimization_barrier(new),
            )

        if not carried:
            first = _cut(items, 0, size)
            length = len(jax.tree.leaves(items)[0])
            found = jax.tree.map(
                lambda leaf: jnp.zeros((length, *leaf.shape[1:]), leaf.dtype),
                jax.eval_shape(one, first, shared),
            )
        return lax.fori_loop(0, groups[0], group, found)

    own = PartitionSpec(_AXIS)
    return jax.shard_map(
        work,
        mesh=over,
        in_specs=(own, own, PartitionSpec(), own),
        out_specs=own,
        check_vma=False,
    )(jnp.asarray(dealt.groups), items, shared, state if carried else ())


def _cut(tree: PyTree, at, size: int) -> PyTree:
    return jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, at, size), tree)


def deal(cost: np.ndarray, num_devices: int) -> np.ndarray:
    """Which items each device computes, so that all take about the same time.

    Args:
      cost: `[items]` relative times. Equal ones are dealt in blocks, others from the
        largest on to whichever device is free first.
      num_devices: D.

    Returns:
      `[D, most]` positions of items, -1 behind the last of a device.
    """
    count = len(cost)
    if (cost == cost[0]).all():
        behind = -count % num_devices
        table = np.pad(np.arange(count), (0, behind), constant_values=-1)
        return table.reshape(num_devices, -1)
    own: list[list[int]] = [[] for _ in range(num_devices)]
    free = [(0.0, device) for device in range(num_devices)]
    for item in np.argsort(-cost, kind="stable"):
        busy, device = heapq.heappop(free)
        own[device].append(int(item))
        heapq.heappush(free, (busy + float(cost[item]), device))
    table = np.full((num_devices, max(map(len, own))), -1)
    for row, mine in zip(table, own, strict=True):
        row[: len(mine)] = mine
    return table


def fetch(tree: PyTree) -> PyTree:
    """All of a tree as NumPy arrays, in every process."""
    return jax.device_get(jax.tree.map(_whole, tree))


def gather(tree: PyTree) -> PyTree:
    """All of a tree on the first device of this process, in every process."""
    return jax.device_put(jax.tree.map(_whole, tree), jax.local_devices()[0])


def _whole(leaf):
    """A leaf, of which this process has everything."""
    if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable:
        return leaf
    return jax.jit(_everywhere, static_argnums=1)(leaf, mesh()).addressable_data(0)


def _spans_processes(over: Mesh) -> bool:
    return any(d.process_index != jax.process_index() for d in over.devices.flat)


def _everywhere(tree: PyTree, over: Mesh) -> PyTree:
    return lax.with_sharding_constraint(tree, NamedSharding(over, PartitionSpec()))

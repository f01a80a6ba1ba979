"""Devices, however many there are: placement by axis, and items dealt to them."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import parallel, schedule


@pytest.fixture(scope="module")
def many():
    """The number of devices, 2 or more."""
    count = len(jax.devices())
    assert count >= 2
    return count


def test_the_mesh_has_one_axis_over_so_many_devices(many):
    assert parallel.mesh().size == many
    assert parallel.mesh(many - 1).size == many - 1
    assert len(parallel.mesh(many - 1).axis_names) == 1


@pytest.mark.parametrize("axis", [0, 1, None])
def test_place_splits_one_axis_or_copies(many, axis):
    array = jnp.arange(many * many * 3).reshape(many, many, 3)
    placed = parallel.place(array, parallel.mesh(), axis)
    shape = {0: (1, many, 3), 1: (many, 1, 3), None: (many, many, 3)}[axis]
    assert {shard.data.shape for shard in placed.addressable_shards} == {shape}
    assert len(placed.sharding.device_set) == many
    np.testing.assert_array_equal(placed, array)


def test_each_leaf_may_have_its_own_axis(many):
    tree = {"a": jnp.zeros((many, 2)), "b": jnp.zeros((3, 2 * many)), "c": jnp.zeros(5)}
    placed = parallel.place(tree, parallel.mesh(), {"a": 0, "b": 1, "c": None})
    shapes = {k: v.addressable_shards[0].data.shape for k, v in placed.items()}
    assert shapes == {"a": (1, 2), "b": (3, 2), "c": (5,)}


def test_scalars_and_keys_are_copied_to_every_device(many):
    tree = (jnp.float32(3.0), jax.random.key(0))
    placed = parallel.place(tree, parallel.mesh())
    assert all(len(leaf.sharding.device_set) == many for leaf in placed)
    assert placed[0] == 3.0


def test_the_lanes_of_a_schedule_lie_on_different_devices():
    plan = schedule.build([5] * 4, num_rounds=2, batch_size=2, lanes=4)
    placed = parallel.place_lanes(plan, parallel.mesh(2))
    for leaf in (placed.slots.count, placed.client_ends.weight):
        assert {s.data.shape[-1] for s in leaf.addressable_shards} == {2}
    assert placed.participants.sharding.is_fully_replicated
    np.testing.assert_array_equal(placed.slots.start, plan.slots.start)
    assert (placed.batch_size, placed.num_rounds) == (2, 2)


def test_lanes_that_do_not_divide_among_the_devices_are_refused():
    plan = schedule.build([5] * 5, num_rounds=2, batch_size=2, lanes=5)
    with pytest.raises(
        ValueError, match="lanes must be a multiple of 2 devices, got 5"
    ):
        parallel.place_lanes(plan, parallel.mesh(2))


@pytest.mark.parametrize("count", [1, 7, 8, 11])
def test_mapped_items_equal_a_python_loop(count):
    over = parallel.mesh()
    items = {"a": jnp.arange(count * 2.0).reshape(count, 2), "b": jnp.arange(count)}
    shared, traced = jnp.array([2.0, 3.0]), []

    def fun(item, shared):
        traced.append(item)
        return {"sum": jnp.sum(item["a"] * shared) + item["b"], "b": item["b"]}

    found = jax.jit(lambda i, s: parallel.map_items(fun, i, s, over))(items, shared)
    a = np.arange(count * 2.0).reshape(count, 2)
    np.testing.assert_allclose(found["sum"], a @ [2.0, 3.0] + np.arange(count))
    np.testing.assert_array_equal(found["b"], np.arange(count))
    assert len(traced) == 1


def test_items_are_spread_over_the_devices(many):
    over = parallel.mesh()
    found = jax.jit(lambda i: parallel.map_items(lambda x, _: x + 1, i, (), over))(
        jnp.arange(2 * many)
    )
    assert {shard.data.shape for shard in found.addressable_shards} == {(2,)}


def _counted(count, devices, **options):
    """Which items were computed, with repetitions, and the results."""
    computed = []

    def fun(item, shared):
        jax.debug.callback(lambda i: computed.append(int(i)), item)
        return item * shared

    found = jax.jit(
        lambda i: parallel.map_items(fun, i, 2, parallel.mesh(devices), **options)
    )(jnp.arange(count))
    jax.effects_barrier()
    np.testing.assert_array_equal(found, 2 * np.arange(count))
    return sorted(computed)


@pytest.mark.parametrize("count", [1, 2, 3, 11])
@pytest.mark.parametrize("costs", ["equal", "ragged"])
def test_each_item_is_computed_once_and_nothing_beside_them(count, costs):
    cost = None if costs == "equal" else np.arange(count) ** 2
    assert _counted(count, None, cost=cost) == list(range(count))


def test_blocks_under_vmap_fill_up_their_last_only():
    assert len(_counted(2, 2, at_once=2)) == 2
    assert len(_counted(5, 2, at_once=2)) == 6


@pytest.mark.parametrize(
    "count, at_once, computed", [(5, 4, 6), (17, 16, 18), (3, 9, 3)]
)
def test_blocks_under_vmap_are_of_nearly_one_size(count, at_once, computed):
    assert len(_counted(count, 1, at_once=at_once)) == computed


def test_room_for_more_items_is_not_filled_with_repetitions():
    dealt = parallel.dealing(2, parallel.mesh(1), at_once=16, room=9)
    assert (dealt.at_once, dealt.groups.tolist(), len(dealt.item)) == (2, [1], 10)


@pytest.mark.parametrize("count, devices", [(1, 2), (4, 2), (5, 2), (9, 4), (51, 8)])
def test_items_are_dealt_so_that_every_device_has_about_the_same(count, devices):
    cost = np.random.default_rng(count).integers(1, 100, count)
    table = parallel.deal(cost, devices)
    assert sorted(table[table >= 0]) == list(range(count))
    load = np.where(table >= 0, cost[table], 0).sum(axis=1)
    assert load.max() - load.min() <= cost.max()


def test_ten_items_use_ten_of_sixteen_devices():
    table = parallel.deal(np.ones(10), 16)
    assert ((table >= 0).sum(axis=1) == [1] * 10 + [0] * 6).all()


def test_cores_leave_what_was_chosen(monkeypatch, many):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX2")
    parallel.use_cpu_cores()
    once = os.environ["XLA_FLAGS"]
    first, *more = once.split()
    assert first == "--xla_cpu_max_isa=AVX2"
    # Sums in a fixed order; no pool of reductions; no end after 40 s of waiting for a
    # device with more to do.
    given = [each.partition("=")[2] for each in more]
    assert given == ["true", "", "2592000", "2592000"]
    parallel.use_cpu_cores()
    assert os.environ["XLA_FLAGS"] == once
    assert jax.config.jax_num_cpu_devices == many

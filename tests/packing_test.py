"""Lanes: longest first, nearly equal, and every step of every client in its place."""

import numpy as np
import pytest

from fljax import packing


def _packed(sizes, batch, num_lanes, *, epochs=1, steps=None, present=None):
    sizes = np.array(sizes)
    steps = packing.steps_per_round(sizes, batch, epochs, steps)
    present = np.ones((1, len(sizes)), bool) if present is None else np.array(present)
    packed = packing.pack(present, steps, num_lanes)
    return packed, packing.slot_tables(packed, sizes, batch)


def test_each_epoch_is_cut_into_batches_of_which_the_last_is_smaller():
    _, slots = _packed([7], 3, 1, epochs=2)
    np.testing.assert_array_equal(slots.epoch.ravel(), [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(slots.start.ravel(), [0, 3, 6, 0, 3, 6])
    np.testing.assert_array_equal(slots.count.ravel(), [3, 3, 1, 3, 3, 1])


@pytest.mark.parametrize(
    ("steps", "epoch", "start", "count"),
    [
        (2, [0, 0], [0, 3], [3, 3]),
        (5, [0, 0, 0, 1, 1], [0, 3, 6, 0, 3], [3, 3, 1, 3, 3]),
    ],
    ids=["part of an epoch", "more than an epoch"],
)
def test_steps_cut_an_epoch_short_or_go_on_with_the_next(steps, epoch, start, count):
    _, slots = _packed([7], 3, 1, steps=steps)
    np.testing.assert_array_equal(slots.epoch.ravel(), epoch)
    np.testing.assert_array_equal(slots.start.ravel(), start)
    np.testing.assert_array_equal(slots.count.ravel(), count)


def test_the_longest_client_goes_first_and_each_to_the_lane_free_earliest():
    packed, _ = _packed([2, 5, 3, 4], 1, 2)
    # 5 | 4, then 3 joins the lane of 4, then 2 the lane of 5.
    np.testing.assert_array_equal(packed.lane, [[0, 0, 1, 1]])
    np.testing.assert_array_equal(packed.begin, [[5, 0, 4, 0]])
    np.testing.assert_array_equal(packed.length, [[7, 7]])


def test_slots_spell_out_two_lanes_step_by_step():
    _, slots = _packed([4, 2, 1], 2, 2)
    # Lane 0: client 0 takes two steps. Lane 1: client 1, then client 2.
    np.testing.assert_array_equal(slots.participant_index[0], [[0, 1], [0, 2]])
    np.testing.assert_array_equal(slots.start[0], [[0, 0], [2, 0]])
    np.testing.assert_array_equal(slots.count[0], [[2, 2], [2, 1]])
    np.testing.assert_array_equal(slots.step[0], [[0, 0], [1, 0]])


def test_slots_without_work_have_no_rows():
    _, slots = _packed([5, 1], 1, 2)
    np.testing.assert_array_equal(slots.count[0, :, 1], [1, 0, 0, 0, 0])


def test_a_round_without_clients_is_one_idle_step():
    packed, slots = _packed([3], 3, 2, present=[[False]])
    assert slots.count.shape == (1, 1, 2)
    assert not slots.count.any() and not packed.length.any()


def test_each_round_is_packed_as_if_it_were_alone(monkeypatch):
    rng = np.random.default_rng(0)
    sizes, present = rng.integers(1, 20, 6), rng.random((40, 6)) < 0.5
    monkeypatch.setattr(packing, "_BLOCK", 7)
    _, slots = _packed(sizes, 3, 2, present=present)
    for round_, those in enumerate(present):
        _, alone = _packed(sizes, 3, 2, present=[those])
        width = alone.count.shape[1]
        for whole, own in zip(slots, alone, strict=True):
            np.testing.assert_array_equal(whole[round_, :width], own[0])
            assert not whole[round_, width:].any()


@pytest.mark.parametrize(
    ("steps", "lanes"),
    [([5, 5, 5, 5], 4), ([6, 3, 3, 2, 1], 3), ([9, 1, 1, 1], 2), ([4], 1)],
)
def test_on_an_accelerator_no_lane_is_longer_than_the_longest_client(steps, lanes):
    steps, present = np.array(steps), np.ones((1, len(steps)), bool)
    assert packing.choose_lanes(present, steps, accelerator=True) == lanes
    assert packing.pack(present, steps, lanes).width == steps.max()
    fewer = packing.pack(present, steps, max(lanes - 1, 1)).width
    assert lanes == 1 or fewer > steps.max()


@pytest.mark.parametrize(("clients", "lanes"), [(200, 200), (512, 256), (1000, 250)])
def test_an_accelerator_holds_few_hundred_lanes(clients, lanes):
    steps, present = np.full(clients, 3), np.ones((1, clients), bool)
    assert packing.choose_lanes(present, steps, accelerator=True) == lanes


def test_on_a_cpu_nearly_all_slots_are_in_use():
    steps, present = np.array([9, 1, 1, 1]), np.ones((1, 4), bool)
    assert packing.choose_lanes(present, steps, accelerator=False) == 1

"""Lanes: longest first, nearly equal, and every step of every client in its place."""

import numpy as np
import pytest

from fljax import packing


def _tables(sizes, batch, epochs, num_lanes):
    jobs = [packing.job(m, n, batch, epochs, None) for m, n in enumerate(sizes)]
    return packing.slot_tables([packing.pack(jobs, num_lanes)], num_lanes)


def test_a_job_cuts_each_epoch_into_batches_of_which_the_last_is_smaller():
    job = packing.job(participant_index=4, size=7, batch=3, epochs=2, steps=None)
    assert job.participant_index == 4
    np.testing.assert_array_equal(job.epoch, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(job.start, [0, 3, 6, 0, 3, 6])
    np.testing.assert_array_equal(job.count, [3, 3, 1, 3, 3, 1])


@pytest.mark.parametrize(
    ("steps", "epoch", "start", "count"),
    [
        (2, [0, 0], [0, 3], [3, 3]),
        (5, [0, 0, 0, 1, 1], [0, 3, 6, 0, 3], [3, 3, 1, 3, 3]),
    ],
    ids=["part of an epoch", "more than an epoch"],
)
def test_steps_cut_an_epoch_short_or_go_on_with_the_next(steps, epoch, start, count):
    job = packing.job(participant_index=0, size=7, batch=3, epochs=1, steps=steps)
    np.testing.assert_array_equal(job.epoch, epoch)
    np.testing.assert_array_equal(job.start, start)
    np.testing.assert_array_equal(job.count, count)


def test_the_longest_job_goes_first_and_each_to_the_lane_free_earliest():
    jobs = [packing.job(m, size, 1, 1, None) for m, size in enumerate([2, 5, 3, 4])]
    lanes = packing.pack(jobs, 2)
    # 5 | 4, then 3 joins the lane of 4, then 2 the lane of 5.
    assert [[job.participant_index for job in lane] for lane in lanes] == [
        [1, 0],
        [3, 2],
    ]


def test_slots_spell_out_two_lanes_step_by_step():
    slots, ends = _tables([4, 2, 1], batch=2, epochs=1, num_lanes=2)
    # Lane 0: client 0 takes two steps. Lane 1: client 1, then client 2.
    np.testing.assert_array_equal(slots.participant_index[0], [[0, 1], [0, 2]])
    np.testing.assert_array_equal(slots.start[0], [[0, 0], [2, 0]])
    np.testing.assert_array_equal(slots.count[0], [[2, 2], [2, 1]])
    np.testing.assert_array_equal(slots.step[0], [[0, 0], [1, 0]])
    np.testing.assert_array_equal(ends[0], [[-1, 1], [0, 2]])


def test_slots_without_work_have_no_rows_and_end_nobody():
    slots, ends = _tables([5, 1], batch=1, epochs=1, num_lanes=2)
    np.testing.assert_array_equal(slots.count[0, :, 1], [1, 0, 0, 0, 0])
    np.testing.assert_array_equal(ends[0, :, 1], [1, -1, -1, -1, -1])


def test_a_round_without_jobs_is_one_idle_step():
    slots, ends = packing.slot_tables([packing.pack([], 2)], 2)
    assert slots.count.shape == (1, 1, 2)
    assert not slots.count.any()
    assert (ends == -1).all()

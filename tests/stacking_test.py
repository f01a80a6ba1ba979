"""Joining the schedules of several seeds."""

import numpy as np
import pytest

from fljax import schedule, stacking

_GOOD = {"sizes": [4, 3], "num_rounds": 3, "batch_size": 2}


def test_stacked_runs_share_their_breaks_and_keep_their_own_steps():
    one = schedule.build([4, 3], num_rounds=2, batch_size=2, lanes=1)
    two = schedule.build([9, 3], num_rounds=2, batch_size=2, lanes=1)
    both, axes = stacking.stack([one, two])
    np.testing.assert_array_equal(one.end_steps, [2, 4])
    np.testing.assert_array_equal(two.end_steps, [5, 7])
    np.testing.assert_array_equal(both.end_steps, [2, 4, 5, 7])
    assert (both.batch_size, both.max_rows) == (2, 9)
    np.testing.assert_array_equal(both.sizes, [[4, 3, 0], [9, 3, 0]])
    np.testing.assert_array_equal(
        both.client_ends.done[:, 0, :, 0], [[1, 1, 0, 0], [0, 0, 1, 1]]
    )
    np.testing.assert_array_equal(
        both.client_ends.weight[:, 0, :, 0], [[4, 3, 0, 0], [0, 0, 9, 3]]
    )
    np.testing.assert_array_equal(both.slots.count[0, 0, :, 0], [2, 2, 2, 1, 0, 0, 0])
    assert axes.end_steps is None
    assert axes.sizes == 0
    assert (both.num_rounds, both.num_lanes) == (2, 1)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"num_rounds": 4}, "record"),
        ({"participants": [[0]] * 3}, "participants"),
    ],
    ids=["rounds", "participants"],
)
def test_runs_with_other_clients_or_rounds_do_not_stack(changed, field):
    one, other = schedule.build(**_GOOD), schedule.build(**(_GOOD | changed))
    with pytest.raises(ValueError, match=f"'{field}'"):
        stacking.stack([one, other])


def test_other_lanes_participants_and_slots_are_padded():
    one = schedule.build([4, 3, 5], num_rounds=2, batch_size=2, lanes=1,
                         participants=[[0], [1, 2]], record_clients=[0])  # fmt: skip
    two = schedule.build([4, 3, 5], num_rounds=2, batch_size=2, lanes=2,
                         participants=[[0, 1, 2], [2]])  # fmt: skip
    both, _ = stacking.stack([one, two])
    assert both.num_lanes == 2
    np.testing.assert_array_equal(both.participants[0], [[0, 3, 3], [1, 2, 3]])
    np.testing.assert_array_equal(both.recorded_clients[0], [[0, -1, -1], [-1, -1, -1]])
    np.testing.assert_array_equal(both.recorded_clients[1], [[0, 1, 2], [2, -1, -1]])
    assert (both.slots.count[0, :, :, 1] == 0).all()
    # The unrecorded clients 1 and 2 of the first run stay without a place.
    assert (both.client_ends.slot[0, 1][both.client_ends.done[0, 1]] == 3).all()
    assert both.client_ends.weight[0].sum() == 4 + 3 + 5
    assert both.client_ends.weight[1].sum() == 4 + 3 + 5 + 5


def test_runs_of_another_kind_do_not_stack():
    one, other = (schedule.build([4], num_rounds=1, batch_size=2, shuffle=shuffle)
                  for shuffle in (True, False))  # fmt: skip
    with pytest.raises(ValueError):
        stacking.stack([one, other])


def test_the_room_for_poisson_batches_is_that_of_the_largest_run():
    one, two = (
        schedule.build(sizes, num_rounds=1, batch_size=8, poisson=True)
        for sizes in ([20, 9], [200, 9])
    )
    both, _ = stacking.stack([one, two])
    assert one.capacity < two.capacity == both.capacity
    assert both.sampling_rate.shape == (2, 3)
    for found, run in zip(both.sampling_rate, (one, two), strict=True):
        np.testing.assert_array_equal(found, run.sampling_rate)


def test_poisson_batches_do_not_stack_with_others():
    one, other = (schedule.build([4], num_rounds=1, batch_size=2, poisson=poisson)
                  for poisson in (True, False))  # fmt: skip
    with pytest.raises(ValueError):
        stacking.stack([one, other])

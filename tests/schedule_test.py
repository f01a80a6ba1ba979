"""Schedules: every row once per epoch, lanes full, tables for what is recorded."""

import time

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from scipy import stats

from fljax import memory, packing, participation, schedule

_SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=9)


def _visits(plan, table, participant_index):
    """`(epoch, position)` of every row that a participant trains on, step by step."""
    slots = jax.tree.map(lambda leaf: leaf[table], plan.slots)
    mine = (slots.participant_index == participant_index) & (slots.count > 0)
    steps = np.argsort(slots.step[mine])
    return [
        (int(epoch), int(start) + i)
        for epoch, start, count in zip(
            slots.epoch[mine][steps],
            slots.start[mine][steps],
            slots.count[mine][steps],
            strict=True,
        )
        for i in range(count)
    ]


@hypothesis.given(_SIZES, st.integers(1, 12), st.integers(1, 3), st.integers(1, 5))
def test_every_row_comes_exactly_once_in_each_epoch(sizes, batch, epochs, lanes):
    plan = schedule.build(
        sizes, num_rounds=2, batch_size=batch, epochs=epochs, lanes=lanes
    )
    for client, size in enumerate(sizes):
        expected = [(e, i) for e in range(epochs) for i in range(size)]
        assert _visits(plan, 0, client) == expected


@hypothesis.given(_SIZES, st.integers(1, 12), st.integers(1, 5))
def test_only_the_last_batch_of_an_epoch_is_smaller(sizes, batch, lanes):
    plan = schedule.build(sizes, num_rounds=1, batch_size=batch, lanes=lanes)
    batch = min(batch, max(sizes))
    assert plan.batch_size == batch
    for client, size in enumerate(sizes):
        mine = (plan.slots.participant_index == client) & (plan.slots.count > 0)
        counts = plan.slots.count[mine][np.argsort(plan.slots.step[mine])]
        assert (counts[:-1] == batch).all()
        assert counts[-1] == (size - 1) % batch + 1


@hypothesis.given(_SIZES, st.integers(1, 12), st.integers(1, 5))
def test_a_client_keeps_her_lane_without_a_gap_and_ends_at_a_break(sizes, batch, lanes):
    plan = schedule.build(sizes, num_rounds=1, batch_size=batch, lanes=lanes)
    for client, size in enumerate(sizes):
        step, lane = np.nonzero(
            (plan.slots.participant_index[0] == client) & (plan.slots.count[0] > 0)
        )
        assert len(np.unique(lane)) == 1
        np.testing.assert_array_equal(step, step[0] + np.arange(len(step)))
        at = list(plan.end_steps).index(step[-1] + 1)
        assert plan.client_ends.done[0, at, lane[0]]
        assert plan.client_ends.weight[0, at, lane[0]] == size
        assert plan.client_ends.slot[0, at, lane[0]] == client
    assert plan.client_ends.done.sum() == len(sizes)
    assert plan.client_ends.weight.sum() == sum(sizes)


def test_ragged_clients_fill_the_lanes():
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.normal(np.log(4000), 1.0, 51)).astype(int).clip(600, 23453)
    sizes[:2] = 600, 23453
    plan = schedule.build(sizes, num_rounds=1, batch_size=32, lanes=8)
    assert plan.num_lanes == 8
    assert plan.occupancy >= 0.95
    # Padding every client to the largest leaves most of the slots empty.
    padded = -(-sizes // 32)
    assert padded.mean() / padded.max() < 0.5


def test_occupancy_is_the_share_of_slots_with_rows():
    plan = schedule.build([4, 1], num_rounds=1, batch_size=1, lanes=2)
    assert plan.occupancy == 5 / 8


@pytest.mark.parametrize(
    ("lanes", "num_clients", "expected"),
    [(2, 51, 2), (16, 51, 16), (8, 3, 8), (None, 48, 16), (None, 3, 3), (None, 1, 1)],
    ids=["narrow", "wide", "more than clients", "default", "default for 3", "for 1"],
)
def test_the_number_of_lanes(lanes, num_clients, expected):
    plan = schedule.build([5] * num_clients, num_rounds=1, batch_size=2, lanes=lanes)
    assert plan.num_lanes == expected


def test_by_default_lanes_are_as_many_as_stay_nearly_full():
    # One client has half of the rows: a third lane would wait for it.
    plan = schedule.build([200, 100, 70, 30], num_rounds=1, batch_size=1)
    assert plan.num_lanes == 2
    assert plan.occupancy == 1.0


def test_without_a_batch_size_each_client_takes_one_step_on_all_her_rows():
    plan = schedule.build([4, 7, 2], num_rounds=1, batch_size=None, lanes=3)
    assert plan.batch_size == 7
    assert plan.slots.count.shape == (1, 1, 3)
    assert sorted(plan.slots.count.ravel()) == [2, 4, 7]


def test_steps_give_every_client_the_same_number_of_batches():
    plan = schedule.build([7, 2], num_rounds=1, batch_size=3, steps=4, lanes=2)
    assert _visits(plan, 0, 0) == [(0, i) for i in range(7)] + [
        (1, i) for i in range(3)
    ]
    assert _visits(plan, 0, 1) == [(e, i) for e in range(4) for i in range(2)]
    assert plan.num_epochs == 4


def test_uniform_weights_count_every_client_once():
    plan = schedule.build([4, 7], num_rounds=1, batch_size=4, weights="uniform")
    np.testing.assert_array_equal(
        plan.client_ends.weight[plan.client_ends.done], [1, 1]
    )


def test_each_round_has_its_own_participants():
    rounds = [np.array([0, 2]), np.array([], int), np.array([1])]
    plan = schedule.build([4, 3, 5], num_rounds=3, batch_size=2, participants=rounds)
    np.testing.assert_array_equal(plan.participants, [[0, 2], [3, 3], [1, 3]])
    np.testing.assert_array_equal(plan.sizes, [4, 3, 5, 0])
    assert _visits(plan, 0, 1) == [(0, i) for i in range(5)]
    assert not plan.slots.count[1].any()
    assert _visits(plan, 2, 0) == [(0, i) for i in range(3)]
    np.testing.assert_array_equal(plan.client_ends.weight.sum(axis=(1, 2)), [9, 0, 3])


def test_one_entry_of_participants_serves_for_all_rounds():
    plan = schedule.build([4, 3], num_rounds=9, batch_size=2, participants=[[1]])
    assert plan.num_rounds == 9
    np.testing.assert_array_equal(plan.participants, [[1]])
    np.testing.assert_array_equal(plan.recorded_clients, [[1]] * 9)


def test_by_default_everything_is_recorded():
    plan = schedule.build([4, 3], num_rounds=3, batch_size=2)
    np.testing.assert_array_equal(plan.record, [0, 1, 2])
    np.testing.assert_array_equal(plan.recorded_rounds, [0, 1, 2])
    np.testing.assert_array_equal(plan.recorded_clients, [[0, 1]] * 3)


def test_the_transcript_has_a_row_for_each_recorded_round_in_order():
    plan = schedule.build([4, 3], num_rounds=4, batch_size=2, record_rounds=[3, 1])
    np.testing.assert_array_equal(plan.recorded_rounds, [1, 3])
    np.testing.assert_array_equal(plan.record, [2, 0, 2, 1])


def test_recorded_clients_are_those_wanted_who_take_part():
    rounds = [np.array([0, 2]), np.array([1]), np.array([1, 2])]
    plan = schedule.build(
        [4, 3, 5],
        num_rounds=3,
        batch_size=2,
        participants=rounds,
        record_clients=[1, 2],
    )
    np.testing.assert_array_equal(plan.recorded_clients, [[2, -1], [1, -1], [1, 2]])
    assert sorted(plan.client_ends.slot[0][plan.client_ends.done[0]]) == [0, 2]


def test_nothing_need_be_recorded():
    plan = schedule.build(
        [4, 3], num_rounds=2, batch_size=2, record_rounds=[], record_clients=[]
    )
    assert plan.recorded_clients.shape == (0, 0)
    np.testing.assert_array_equal(plan.record, [0, 0])


_GOOD = {"sizes": [4, 3], "num_rounds": 3, "batch_size": 2}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sizes": []}, "at least 1 row"),
        ({"sizes": [3, 0]}, "at least 1 row"),
        ({"sizes": [[3, 2]]}, "at least 1 row"),
        ({"sizes": [3.5, 2]}, "sizes: expected numbers of rows"),
        ({"num_rounds": 0}, "num_rounds must be an integer >= 1"),
        ({"batch_size": 0}, "batch_size must be an integer >= 1"),
        ({"epochs": 0}, "epochs must be an integer >= 1"),
        ({"steps": 0}, "steps must be an integer >= 1"),
        ({"epochs": 1.5}, "epochs must be an integer >= 1, got 1.5"),
        ({"steps": 2.0}, "steps must be an integer >= 1, got 2.0"),
        ({"record_clients": [True, False]}, "record_clients must be integers, got bool"),
        ({"record_rounds": [0.9]}, "record_rounds must be integers, got float64"),
        ({"num_rounds": np.inf}, "num_rounds must be an integer >= 1, got inf"),
        ({"epochs": np.nan}, "epochs must be an integer >= 1, got nan"),
        ({"batch_size": 2.5}, "batch_size must be an integer >= 1, got 2.5"),
        ({"lanes": 0}, "lanes must be an integer >= 1"),
        ({"weights": "size"}, "'rows' or 'uniform', got 'size'"),
        ({"participants": [np.array([0])] * 2}, "1 or 3 rounds, got 2"),
        ({"record_rounds": [3]}, r"record_rounds must lie in \[0, 3\)"),
        ({"record_rounds": [-1]}, "record_rounds"),
        ({"record_clients": [2]}, r"record_clients must lie in \[0, 2\)"),
        ({"record_clients": [-1]}, "record_clients"),
        ({"drop_last": True, "batch_size": 99}, "drop_last: expected clients with .*=99"),
    ],
    ids=[
        "no clients", "client without rows", "table of sizes", "part of a row",
        "rounds", "batch", "epochs", "steps",
        "part of an epoch", "steps that are no integer", "mask of clients", "part of a round",
        "rounds without end", "no number of epochs", "part of a row in a batch",
        "lanes", "weights", "number of participant lists", "recorded round too late",
        "recorded round negative", "recorded client unknown", "recorded client negative",
        "client of no full batch",
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        schedule.build(**(_GOOD | changed))


@pytest.mark.parametrize(
    "members", [[2], [-1], [0, 0]], ids=["unknown", "negative", "twice"]
)
def test_participants_must_be_clients_each_at_most_once(members):
    with pytest.raises(ValueError, match="participants"):
        schedule.build(**_GOOD, participants=[np.array(members)])


def test_a_hundred_thousand_rounds_are_drawn_up_in_seconds():
    how = {"sizes": [9] * 5, "batch_size": 3, "lanes": 2}
    drawn = participation.poisson(np.random.default_rng(0), 5, 100_000, 0.3)
    begin = time.process_time()
    plan = schedule.build(num_rounds=100_000, participants=drawn, **how)
    assert time.process_time() - begin < 10  # round by round it took 25
    some = schedule.build(num_rounds=9, participants=drawn[-9:], **how)
    width = some.slots.count.shape[1]
    np.testing.assert_array_equal(plan.slots.count[-9:, :width], some.slots.count)


def test_a_schedule_that_would_fill_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1e6)
    rounds = [np.array([0])] * 10**4
    with pytest.raises(
        MemoryError, match=r"num_rounds=10000: .* GB are free; expected"
    ):
        schedule.build([5], num_rounds=10**4, batch_size=1, participants=rounds)
    schedule.build([5], num_rounds=10**4, batch_size=1)  # one table for all
    for kind in ("epochs", "steps"):
        said = f"^1000000 local {kind}: a schedule of so many needs .* GB are free"
        with pytest.raises(MemoryError, match=said):
            schedule.build([5], num_rounds=10**4, batch_size=5, **{kind: 10**6})


def test_poisson_batches_take_as_many_steps_as_shuffled_ones():
    how = {"num_rounds": 2, "batch_size": 4, "epochs": 2}
    plain = schedule.build([10, 3, 7], **how)
    drawn = schedule.build([10, 3, 7], poisson=True, **how)
    assert (plain.poisson, drawn.poisson) == (False, True)
    assert (plain.capacity, drawn.batch_size) == (4, 4)
    jax.tree.map(np.testing.assert_array_equal, drawn.slots, plain.slots)
    jax.tree.map(np.testing.assert_array_equal, drawn.client_ends, plain.client_ends)


@pytest.mark.parametrize(
    ("batch_size", "expected"),
    [(32, [1 / 19, 1, 1 / 2, 1]), (602, [1, 1, 1, 1]), (None, [1, 1, 1, 1])],
    ids=["batches", "largest client", "all rows"],
)
def test_the_sampling_rate_is_one_over_the_steps_of_an_epoch(batch_size, expected):
    plan = schedule.build(
        [602, 32, 33], num_rounds=1, batch_size=batch_size, poisson=True
    )
    np.testing.assert_allclose(plan.sampling_rate, expected)
    rates = packing.sampling_rate(np.array([602, 32, 33]), batch_size, drop_last=True)
    np.testing.assert_allclose(rates, [1 / 18, 1, 1] if batch_size == 32 else [1, 1, 1])


def test_a_poisson_batch_has_room_for_all_but_a_share_of_the_draws():
    plan = schedule.build([602, 33, 5], num_rounds=1, batch_size=32, poisson=True)
    sizes, rates = plan.sizes[:-1], plan.sampling_rate[:-1]
    assert stats.binom.sf(plan.capacity, sizes, rates).max() <= 1e-12
    assert stats.binom.sf(plan.capacity - 1, sizes, rates).max() > 1e-12
    assert plan.capacity < 100


@pytest.mark.parametrize(
    ("sizes", "batch_size", "expected"),
    [([7, 4], None, 7), ([3], 2, 3), ([1], 1, 1)],
    ids=["all rows", "few rows", "one row"],
)
def test_a_poisson_batch_has_no_more_room_than_rows(sizes, batch_size, expected):
    plan = schedule.build(sizes, num_rounds=1, batch_size=batch_size, poisson=True)
    assert plan.capacity == expected

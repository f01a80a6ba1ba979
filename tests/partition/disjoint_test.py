"""Every partition: disjoint, no empty client, a function of its arguments alone."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from fljax import partition

# On a busy machine single examples take long; how long is not what is tested.
_patient = hypothesis.settings(deadline=None)
_SEEDS = st.integers(0, 2**32 - 1)
_LABELS = st.lists(st.integers(0, 5), min_size=12, max_size=80).map(np.array)


def _check(parts, num_rows, num_clients):
    """Holds for every partition; returns how many rows have an owner."""
    rows = np.concatenate(parts)
    assert len(parts) == num_clients
    assert all(part.dtype == np.int64 and len(part) for part in parts)
    assert len(np.unique(rows)) == len(rows)
    assert rows.min() >= 0 and rows.max() < num_rows
    return len(rows)


def _labels(num_rows=200, num_labels=5):
    return np.arange(num_rows) % num_labels


SEEDED = {
    "iid": lambda rng: partition.iid(rng, 200, 7),
    "sampled": lambda rng: partition.sampled(rng, 200, 7, 20),
    "label_shards": lambda rng: partition.label_shards(rng, _labels(), 7),
    "dirichlet": lambda rng: partition.dirichlet(rng, _labels(), 7, 0.3),
    "dominant_label": lambda rng: partition.dominant_label(rng, _labels(), 5, 20),
    "correlation": lambda rng: partition.correlation(
        rng, np.arange(200.0), np.arange(200) // 2 % 2, 6, 0.2
    ),
}


@pytest.mark.parametrize("make", SEEDED.values(), ids=SEEDED)
def test_the_same_seed_gives_the_same_clients_and_another_seed_others(make):
    one, again, other = (make(np.random.default_rng(s)) for s in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("make", SEEDED.values(), ids=SEEDED)
def test_a_seeded_partition_leaves_the_global_generator_alone(make):
    before = np.random.get_state()[1].copy()
    make(np.random.default_rng(0))
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@_patient
@hypothesis.given(st.integers(1, 300), st.data(), _SEEDS)
def test_equal_parts_cover_all_rows_and_the_last_ones_are_larger(num_rows, data, seed):
    num_clients = data.draw(st.integers(1, num_rows))
    rng = np.random.default_rng(seed)
    column = rng.integers(0, 5, num_rows)
    for parts in (
        partition.iid(rng, num_rows, num_clients),
        partition.contiguous(num_rows, num_clients),
        partition.ordered(column, num_clients),
    ):
        assert _check(parts, num_rows, num_clients) == num_rows
        sizes = [len(part) for part in parts]
        assert sizes == sorted(sizes) and sizes[-1] - sizes[0] <= 1


@_patient
@hypothesis.given(_LABELS, st.integers(1, 6), st.integers(1, 2), _SEEDS)
def test_shards_cover_all_rows(labels, num_clients, per_client, seed):
    rng = np.random.default_rng(seed)
    parts = partition.label_shards(rng, labels, num_clients, per_client)
    assert _check(parts, len(labels), num_clients) == len(labels)


@_patient
@hypothesis.given(
    _LABELS, st.integers(1, 6), st.floats(1e-3, 1e3), st.integers(1, 2), _SEEDS
)
def test_dirichlet_covers_all_rows_and_gives_everyone_the_minimum(
    labels, num_clients, alpha, min_rows, seed
):
    rng = np.random.default_rng(seed)
    parts = partition.dirichlet(rng, labels, num_clients, alpha, min_rows)
    assert _check(parts, len(labels), num_clients) == len(labels)
    assert min(map(len, parts)) >= min_rows


@_patient
@hypothesis.given(st.integers(2, 6), st.integers(1, 9), st.floats(0, 1), _SEEDS)
def test_dominant_label_clients_have_the_asked_composition(
    num_labels, rows_per_client, share, seed
):
    labels = np.arange(num_labels * 60) % num_labels
    rng = np.random.default_rng(seed)
    parts = partition.dominant_label(rng, labels, num_labels, rows_per_client, share)
    owned = _check(parts, len(labels), num_labels)
    assert owned == num_labels * rows_per_client
    for client, part in enumerate(parts):
        counts = np.bincount(labels[part], minlength=num_labels)
        assert counts[client] == round(share * rows_per_client)
        assert np.ptp(np.delete(counts, client)) <= 1


@_patient
@hypothesis.given(st.integers(1, 3), st.floats(0, 0.5), _SEEDS)
def test_correlation_gives_each_row_at_most_one_owner(pairs, heterogeneity, seed):
    rng = np.random.default_rng(seed)
    target, sensitive = rng.normal(size=60), np.arange(60) % 2
    hypothesis.assume(0.2 < np.mean((target > np.median(target)) == sensitive) < 0.8)
    parts = partition.correlation(rng, target, sensitive, 2 * pairs, heterogeneity)
    _check(parts, 60, 2 * pairs)


@_patient
@hypothesis.given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=40))
def test_by_column_gives_each_value_one_client_by_decreasing_size(column):
    values = np.array(column)
    parts = partition.by_column(values)
    assert _check(parts, len(values), len(set(column))) == len(values)
    assert all(len(set(values[part])) == 1 for part in parts)
    sizes = [len(part) for part in parts]
    assert sizes == sorted(sizes, reverse=True)


def test_by_column_breaks_ties_by_value_and_can_keep_the_largest():
    column = np.array(["tx", "ca", "ny", "ca", "tx", "ca"])
    everyone = [part.tolist() for part in partition.by_column(column)]
    assert everyone == [[1, 3, 5], [0, 4], [2]]
    assert [p.tolist() for p in partition.by_column(column, 2)] == everyone[:2]
    tied = partition.by_column(np.array(["b", "a", "b", "a"]))
    assert [part.tolist() for part in tied] == [[1, 3], [0, 2]]


def test_ordered_clients_hold_increasing_ranges_and_ties_keep_their_order():
    parts = partition.ordered(np.array([30, 10, 20, 10, 30, 20]), 3)
    assert [part.tolist() for part in parts] == [[1, 3], [2, 5], [0, 4]]


def test_the_medical_halves_are_the_first_and_the_last_602_rows():
    first, last = partition.contiguous(1204, 2)
    np.testing.assert_array_equal(first, np.arange(602))
    np.testing.assert_array_equal(last, np.arange(602, 1204))


@_patient
@hypothesis.given(st.integers(1, 300), st.data(), _SEEDS)
def test_sampled_clients_have_the_asked_rows_of_their_own(num_rows, data, seed):
    num_clients = data.draw(st.integers(1, num_rows))
    each = data.draw(st.integers(1, num_rows // num_clients))
    parts = partition.sampled(np.random.default_rng(seed), num_rows, num_clients, each)
    assert [len(part) for part in parts] == [each] * num_clients
    assert _check(parts, num_rows, num_clients) == num_clients * each


def test_a_sampled_client_does_not_depend_on_those_after_her():
    two, four = (
        partition.sampled(np.random.default_rng(0), 100, count, 10) for count in (2, 4)
    )
    np.testing.assert_array_equal(two, four[:2])


def test_two_shards_bring_at_most_two_labels_when_shards_are_pure():
    labels = np.repeat(np.arange(10), 20)
    parts = partition.label_shards(np.random.default_rng(0), labels, 20)
    assert max(len(set(labels[part])) for part in parts) <= 2
    assert {len(part) for part in parts} == {10}


def test_dirichlet_labels_are_pure_for_small_and_balanced_for_large_alpha():
    labels, rng = _labels(2000), np.random.default_rng(1)

    def top_share(alpha):
        parts = partition.dirichlet(rng, labels, 10, alpha)
        return np.mean([np.bincount(labels[p]).max() / len(p) for p in parts])

    assert top_share(0.01) > 0.8
    assert top_share(1e4) < 0.25
    assert top_share(1.7e308) < 0.25


def _correlation(target=(1, 2, 3, 4), sensitive=(0, 1, 0, 1), clients=2, h=0.4):
    return partition.correlation(
        np.random.default_rng(0), np.array(target), np.array(sensitive), clients, h
    )


RNG = np.random.default_rng(0)
ERRORS = {
    "more clients than rows": (
        lambda: partition.iid(RNG, 3, 4),
        "num_clients: expected an integer in [1, 3], got 4",
    ),
    "no clients": (
        lambda: partition.contiguous(3, 0),
        "num_clients: expected an integer in [1, 3], got 0",
    ),
    "a number of clients that is no integer": (
        lambda: partition.iid(RNG, 10, 2.0),
        "num_clients: expected an integer in [1, 10], got 2.0",
    ),
    "values and a number that is no integer": (
        lambda: partition.by_column(np.array([7, 7, 8]), 1.5),
        "num_clients: expected an integer in [1, 2], the distinct values, got 1.5",
    ),
    "rows that are no integer": (
        lambda: partition.dominant_label(RNG, _labels(), 5, 7.5),
        "rows_per_client: expected an integer >= 1, got 7.5",
    ),
    "text beside missing cells": (
        lambda: partition.by_column(np.array(["a", None, "b"], object)),
        "column: expected values of one sortable type",
    ),
    "a matrix": (
        lambda: partition.ordered(np.zeros((4, 1)), 2),
        "column: expected a non-empty vector, got shape (4, 1)",
    ),
    "more clients than values": (
        lambda: partition.by_column(np.array([7, 7, 8]), 3),
        "num_clients: expected an integer in [1, 2], the distinct values, got 3",
    ),
    "more shards than rows": (
        lambda: partition.label_shards(RNG, _labels(9), 3, 4),
        "shards_per_client: expected an integer in [1, 3], got 4",
    ),
    "alpha of zero": (
        lambda: partition.dirichlet(RNG, _labels(), 4, 0.0),
        "alpha: expected a finite number > 0, got 0.0",
    ),
    "alpha not a number": (
        lambda: partition.dirichlet(RNG, _labels(), 4, float("nan")),
        "alpha: expected a finite number > 0, got nan",
    ),
    "more rows than there are": (
        lambda: partition.sampled(RNG, 200, 4, 51),
        "rows_per_client: expected an integer in [1, 50], got 51",
    ),
    "too high a minimum": (
        lambda: partition.dirichlet(RNG, _labels(), 4, 1.0, 51),
        "min_rows: expected an integer in [1, 50], got 51",
    ),
    "one label only": (
        lambda: partition.dominant_label(RNG, np.zeros(9), 2, 2),
        "labels: expected at least 2 distinct, got 1",
    ),
    "no rows": (
        lambda: partition.dominant_label(RNG, _labels(), 5, 0),
        "rows_per_client: expected an integer >= 1, got 0",
    ),
    "share above one": (
        lambda: partition.dominant_label(RNG, _labels(), 5, 10, 1.5),
        "share: expected a number in [0, 1], got 1.5",
    ),
    "a label that runs out": (
        lambda: partition.dominant_label(RNG, _labels(), 5, 50, 1.0),
        "labels: expected 50 rows of label number 0, got 40",
    ),
    "h above a half": (
        lambda: _correlation(h=0.6),
        "heterogeneity: expected a number in [0, 0.5], got 0.6",
    ),
    "a count that was divided": (
        lambda: _correlation(clients=2.0),
        "num_clients: expected an even integer >= 2, got 2.0",
    ),
    "an odd number of clients": (
        lambda: _correlation(clients=3),
        "num_clients: expected an even integer >= 2, got 3",
    ),
    "clusters too small": (
        lambda: _correlation(clients=6),
        "num_clients: expected at most 4, the rows left in both clusters, got 6",
    ),
    "a constant target": (
        lambda: _correlation(target=(5, 5, 5, 5)),
        "target: expected values above the median, got none above 5.0",
    ),
    "an attribute that is not binary": (
        lambda: _correlation(sensitive=(0, 1, 2, 1)),
        "sensitive: expected zeros and ones, got [0 1 2]",
    ),
    "an attribute of another length": (
        lambda: _correlation(sensitive=(0, 1, 1)),
        "sensitive: expected 4 values, got 3",
    ),
}


@pytest.mark.parametrize("call, message", ERRORS.values(), ids=ERRORS)
def test_what_cannot_be_met_is_an_error_of_one_line(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message

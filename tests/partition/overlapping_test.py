import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from fljax import data, partition

# On a busy machine single examples take long; how long is not what is tested.
_quick = hypothesis.settings(max_examples=50, deadline=None)
_SEEDS = st.integers(0, 2**32 - 1)


def _rng(seed=0):
    return np.random.default_rng(seed)


def _labels(*sizes):
    """Shuffled labels, the n-th one as often as the n-th size says."""
    return _rng(1).permutation(np.repeat(np.arange(len(sizes)), sizes))


@_quick
@hypothesis.given(
    st.lists(st.integers(4, 30), min_size=2, max_size=6),
    st.integers(1, 40),
    st.data(),
    _SEEDS,
)
def test_class_shards_give_exactly_so_many_classes_and_no_row_twice(
    sizes, num_clients, draw, seed
):
    each = draw.draw(st.integers(1, len(sizes)))
    labels = _labels(*sizes)
    parts = partition.class_shards(_rng(seed), labels, num_clients, 4 * each, each)
    assert len(parts) == num_clients
    for part in parts:
        counts = np.bincount(labels[part])
        assert counts[counts > 0].tolist() == [4] * each
        assert len(set(part)) == 4 * each
    used = np.zeros(len(sizes), int)
    for part in parts:
        used[np.unique(labels[part])] += 1
    assert np.ptp(used) <= 1


def test_class_shards_share_rows_only_where_a_class_has_too_few():
    labels = _labels(100, 100, 80)
    parts = partition.class_shards(_rng(), labels, 15, 20)
    owners = np.bincount(np.concatenate(parts), minlength=280)
    assert owners[labels < 2].tolist() == [1] * 200
    assert sorted(set(owners[labels == 2])) == [1, 2]


def test_class_pairs_are_drawn_at_random():
    parts = partition.class_shards(_rng(), _labels(*[10] * 5), 1000, 2)
    labels = _labels(*[10] * 5)
    pairs = [tuple(np.unique(labels[part])) for part in parts]
    frequency = np.unique(pairs, axis=0, return_counts=True)[1]
    # Ten pairs, 100 of each: four deviations of a binomial.
    assert len(frequency) == 10
    assert abs(frequency - 100).max() < 40


@_quick
@hypothesis.given(st.sampled_from([2, 4, 5]), st.integers(1, 5), _SEEDS)
def test_bucket_shards_put_each_row_on_equally_many_clients(buckets, factor, seed):
    labels = _rng(seed).integers(0, buckets, 20 * buckets)
    num_clients = 2 * buckets * factor
    parts = partition.bucket_shards(
        _rng(seed), labels, num_clients, 10, num_buckets=buckets
    )
    assert [len(part) for part in parts] == [10] * num_clients
    owners = np.bincount(np.concatenate(parts), minlength=20 * buckets)
    assert set(owners) == {factor}
    bucket = np.argsort(np.argsort(labels, kind="stable")) // 20
    assert max(len(set(bucket[part])) for part in parts) <= 2


def test_a_bucket_shard_holds_no_row_twice_but_a_client_may():
    labels = _labels(50, 50)
    parts = partition.bucket_shards(_rng(), labels, 400, 50, num_buckets=2)
    counts = np.array([np.bincount(part, minlength=100).max() for part in parts])
    assert set(counts) == {1, 2}
    alone = [part for part in parts if len(set(labels[part])) == 1]
    assert 0.4 < len(alone) / 400 < 0.6


def test_the_clients_of_the_code_on_mnist_have_the_published_composition(shared_data):
    labels = data.load_images("mnist", data_dir=shared_data).train.y
    parts = np.array(partition.bucket_shards(_rng(), labels, 1000))
    num_classes = np.array([len(np.unique(part)) for part in labels[parts]])
    shares = [np.mean(num_classes == k) for k in (1, 2, 3, 4)]
    low, high = np.array([(0, 0.12, 0.38, 0.32), (0.05, 0.22, 0.5, 0.4)])
    assert (low <= shares).all() and (shares <= high).all(), shares
    assert set(np.bincount(parts.ravel(), minlength=50_000)) == {10}
    twice = np.mean([len(np.unique(part)) < 500 for part in parts])
    assert 0.06 < twice < 0.13


def test_few_classes_are_as_many_as_asked_where_they_suffice():
    labels = _labels(*[40] * 62)
    parts = partition.few_classes(_rng(), labels, 100, 300, 15)
    assert {len(np.unique(labels[part])) for part in parts} == {15}
    assert {len(np.unique(part)) for part in parts} == {300}


@_quick
@hypothesis.given(
    st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data(), _SEEDS
)
def test_few_classes_become_more_until_there_are_enough_rows(sizes, draw, seed):
    labels = _labels(*sizes)
    rows = draw.draw(st.integers(1, len(labels)))
    for part in partition.few_classes(_rng(seed), labels, 5, rows, 1):
        assert len(set(part)) == rows
        owned = np.unique(labels[part])
        # Without her largest class the others would not have been enough.
        assert rows > sum(sizes[k] for k in owned) - max(sizes[k] for k in owned)


def test_resampled_clients_are_independent_and_hold_no_row_twice():
    parts = partition.resampled(_rng(), 1000, 50, 300)
    assert {len(set(part)) for part in parts} == {300}
    shared = len(set(parts[0]) & set(parts[1]))
    # Hypergeometric: mean 90, deviation below 8.
    assert 58 < shared < 122
    assert np.concatenate(parts).max() < 1000


def test_copies_are_everyones_rows():
    parts = partition.copies(5, 3)
    assert [part.tolist() for part in parts] == [[0, 1, 2, 3, 4]] * 3


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: partition.class_shards(rng, _labels(9, 9), 4, 6),
        lambda rng: partition.bucket_shards(rng, _labels(9, 9), 6, 6, num_buckets=2),
        lambda rng: partition.few_classes(rng, _labels(9, 9), 4, 6, 1),
        lambda rng: partition.resampled(rng, 18, 4, 6),
    ],
    ids=["class", "bucket", "few", "resampled"],
)
def test_the_generator_decides(make):
    one, again, other = (np.array(make(_rng(seed))) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    assert one.dtype == np.int64


LABELS = _labels(20, 20)
ERRORS = {
    "no clients": (
        lambda: partition.class_shards(_rng(), LABELS, 0, 4),
        "num_clients: expected an integer >= 1, got 0",
    ),
    "more classes than there are": (
        lambda: partition.class_shards(_rng(), LABELS, 5, 6, 3),
        "classes_per_client: expected an integer in [1, 2], got 3",
    ),
    "rows that do not divide": (
        lambda: partition.class_shards(_rng(), LABELS, 5, 5),
        "rows_per_client: expected a positive multiple of classes_per_client=2, got 5",
    ),
    "a class too small": (
        lambda: partition.class_shards(_rng(), LABELS, 5, 42),
        "labels: expected 21 rows of each, got 20",
    ),
    "buckets of unequal size": (
        lambda: partition.bucket_shards(_rng(), LABELS, 5, 8, num_buckets=3),
        "num_buckets: expected a divisor of the 40 rows, got 3",
    ),
    "no buckets": (
        lambda: partition.bucket_shards(_rng(), LABELS, 5, 8, num_buckets=0),
        "num_buckets: expected a divisor of the 40 rows, got 0",
    ),
    "shards that do not divide": (
        lambda: partition.bucket_shards(_rng(), LABELS, 5, 8, 3, num_buckets=2),
        "shards_per_client: expected a divisor of rows_per_client=8, got 3",
    ),
    "shards over two buckets": (
        lambda: partition.bucket_shards(_rng(), LABELS, 5, 16, num_buckets=2),
        "rows_per_client: expected such that shards of 8 rows divide a bucket of 20,"
        + " got 16",
    ),
    "part of a copy": (
        lambda: partition.bucket_shards(_rng(), LABELS, 6, 8, num_buckets=2),
        "num_clients: expected a positive multiple of 40 / 8, got 6",
    ),
    "more rows than there are": (
        lambda: partition.few_classes(_rng(), LABELS, 5, 41, 1),
        "rows_per_client: expected an integer in [1, 40], got 41",
    ),
    "more rows than to draw from": (
        lambda: partition.resampled(_rng(), 10, 3, 11),
        "rows_per_client: expected an integer in [1, 10], got 11",
    ),
    "nothing to copy": (
        lambda: partition.copies(0, 3),
        "num_rows: expected an integer >= 1, got 0",
    ),
}


@pytest.mark.parametrize("call, message", ERRORS.values(), ids=ERRORS)
def test_what_cannot_be_met_is_an_error_of_one_line(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message

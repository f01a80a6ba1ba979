"""Partitions in which a row may have several owners: the clients of Wei et al. 2021.

"Gradient-Leakage Resilient Federated Learning" gives every client equally many rows
whatever the number of clients, so that with many of them rows are on several. A record
that is on R clients is R times as exposed as the accounting of one client says.

`class_shards` is what the paper describes, `bucket_shards` what its code does; their
clients differ. Both deal whole shards, `few_classes` and `resampled` single rows.
"""

import numpy as np

from fljax.partition.checks import (
    Parts,
    check_many,
    check_range,
    expect,
    rows_by_value,
    vector,
)


def class_shards(
    rng: np.random.Generator,
    labels: np.ndarray,
    num_clients: int,
    rows_per_client: int,
    classes_per_client: int = 2,
) -> Parts:
    """Gives each client one shard of each of exactly so many classes.

    The "two classes" of Wei et al. 2021, section VII: two shards of 250 rows. Classes
    give equally many shards, up to one. A class's rows are shuffled and cut as often as
    its shards need, so that shards share rows only where a class has too few.

    Args:
      rng: feeds all draws.
      labels: `[N]` of any sortable type.
      num_clients: `C`, at least 1.
      rows_per_client: rows of every client, a multiple of `classes_per_client`.
      classes_per_client: up to the distinct labels, each of which must have the rows
        of one shard.

    Returns:
      `C` parts of equal size, each shuffled; no row is twice in one of them.
    """
    groups = rows_by_value("labels", labels)
    check_many("num_clients", num_clients)
    check_many("rows_per_client", rows_per_client)
    check_range("classes_per_client", classes_per_client, len(groups))
    size, rest = divmod(rows_per_client, classes_per_client)
    multiple = f"a positive multiple of classes_per_client={classes_per_client}"
    expect(size > 0 and not rest, "rows_per_client", multiple, rows_per_client)
    smallest = min(map(len, groups))
    expect(size <= smallest, "labels", f"{size} rows of each", smallest)
    hands = _deal_distinct(rng, len(groups), num_clients, classes_per_client)
    shards = [
        iter(_shards(rng, group, size, count))
        for group, count in zip(groups, np.bincount(hands.ravel()))
    ]
    return [
        rng.permutation(np.concatenate([next(shards[k]) for k in h])) for h in hands
    ]


def bucket_shards(
    rng: np.random.Generator,
    labels: np.ndarray,
    num_clients: int,
    rows_per_client: int = 500,
    shards_per_client: int = 2,
    num_buckets: int = 10,
) -> Parts:
    """Deals shards of equal buckets of the sorted rows, as Wei et al.'s code does.

    The rows are sorted by label and cut into buckets of equal size, of which classes of
    unequal size take parts of two. Each bucket is shuffled `C * rows_per_client / N`
    times, so that each row is in as many shards; shards go to clients at random.
    So a client may get both from one bucket and hold a row twice, and on MNIST most
    have three or four classes, not two.

    Divergence: equal labels keep their stored order; the code's sort is not stable.

    Args:
      rng: feeds all draws.
      labels: `[N]` of any sortable type; MNIST has N = 50,000 and 10 buckets.
      num_clients: `C`, a multiple of `N / rows_per_client`, which is 100 on MNIST.
      rows_per_client: rows of every client.
      shards_per_client: a divisor of that; shards divide a bucket without rest.
      num_buckets: a divisor of `N`, the number of classes in the code.

    Returns:
      `C` parts of equal size, each shuffled; all rows are on equally many, counting
      twice those that hold it twice.
    """
    labels = vector("labels", labels)
    num_rows = len(labels)
    bucket, rest = divmod(num_rows, max(num_buckets, 1))
    divisor = f"a divisor of the {num_rows} rows"
    expect(num_buckets > 0 and not rest, "num_buckets", divisor, num_buckets)
    size, rest = divmod(rows_per_client, max(shards_per_client, 1))
    fits = shards_per_client > 0 and size > 0 and not rest
    divisor = f"a divisor of rows_per_client={rows_per_client}"
    expect(fits, "shards_per_client", divisor, shards_per_client)
    whole = f"such that shards of {size} rows divide a bucket of {bucket}"
    expect(bucket % size == 0, "rows_per_client", whole, rows_per_client)
    copies, rest = divmod(num_clients * rows_per_client, num_rows)
    multiple = f"a positive multiple of {num_rows} / {rows_per_client}"
    expect(copies > 0 and not rest, "num_clients", multiple, num_clients)
    buckets = np.argsort(labels, kind="stable").reshape(num_buckets, bucket)
    shuffled = [rng.permutation(row) for row in np.repeat(buckets, copies, axis=0)]
    shards = np.concatenate(shuffled).reshape(-1, size)
    parts = rng.permutation(shards).reshape(num_clients, rows_per_client)
    return list(rng.permuted(parts, axis=1))


def few_classes(
    rng: np.random.Generator,
    labels: np.ndarray,
    num_clients: int,
    rows_per_client: int,
    classes_per_client: int,
) -> Parts:
    """Draws each client's rows from some random classes, for classes of unequal size.

    The "about 15 classes" of Wei et al. 2021 on LFW; how they are chosen is open. A
    client whose classes have too few rows gets further classes until they suffice.

    Args:
      rng: feeds all draws.
      labels: `[N]` of any sortable type.
      num_clients: `C`, at least 1.
      rows_per_client: rows of every client, at most `N`.
      classes_per_client: classes that it draws from, up to the distinct labels.

    Returns:
      `C` parts of equal size without a row twice; clients are independent.
    """
    groups = rows_by_value("labels", labels)
    num_rows = sum(map(len, groups))
    check_many("num_clients", num_clients)
    check_range("rows_per_client", rows_per_client, num_rows)
    check_range("classes_per_client", classes_per_client, len(groups))
    sizes = np.array([len(group) for group in groups])
    parts = []
    for _ in range(num_clients):
        order = rng.permutation(len(groups))
        enough = np.searchsorted(np.cumsum(sizes[order]), rows_per_client) + 1
        chosen = order[: max(classes_per_client, enough)]
        pool = np.concatenate([groups[k] for k in chosen])
        parts.append(rng.permutation(pool)[:rows_per_client])
    return parts


def resampled(
    rng: np.random.Generator, num_rows: int, num_clients: int, rows_per_client: int
) -> Parts:
    """Draws each client's rows from all, without a row twice; clients are independent.

    For Adult (300 of 36,631 rows) and breast cancer (400 of 426) of Wei et al. 2021.

    Args:
      rng: feeds all draws.
      num_rows: `N`.
      num_clients: `C`, at least 1.
      rows_per_client: rows of every client, at most `N`.
    """
    check_many("num_clients", num_clients)
    check_range("rows_per_client", rows_per_client, num_rows)
    return [rng.permutation(num_rows)[:rows_per_client] for _ in range(num_clients)]


def copies(num_rows: int, num_clients: int) -> Parts:
    """Gives every client all rows in their stored order.

    The "full copy" of breast cancer of Wei et al. 2021, whose Table I says 400 rows.
    """
    check_many("num_clients", num_clients)
    expect(num_rows > 0, "num_rows", "an integer >= 1", num_rows)
    return [np.arange(num_rows) for _ in range(num_clients)]


def _deal_distinct(
    rng: np.random.Generator, num_values: int, num_clients: int, per_client: int
) -> np.ndarray:
    """`[C, per_client]` values, distinct in each row and in all equally frequent.

    A value that is left as often as there are clients left goes to the next one;
    all others are drawn. So every value is left at most as often as clients are.
    """
    left = np.full(num_values, num_clients * per_client // num_values)
    left[rng.permutation(num_values)[: num_clients * per_client - left.sum()]] += 1
    hands = np.zeros((num_clients, per_client), np.int64)
    for client in range(num_clients):
        due = np.flatnonzero(left == num_clients - client)
        free = np.where(left == num_clients - client, 0, left)
        if len(due) < per_client:
            drawn = rng.choice(
                num_values, per_client - len(due), replace=False, p=free / free.sum()
            )
            due = np.concatenate([due, drawn])
        hands[client] = due
        left[due] -= 1
    return hands


def _shards(
    rng: np.random.Generator, rows: np.ndarray, size: int, count: int
) -> np.ndarray:
    """`[count, size]` shards of as many permutations of the rows as they need."""
    each = len(rows) // size
    times = -(-count // each)
    shuffled = [rng.permutation(rows)[: each * size] for _ in range(times)]
    return np.reshape(shuffled, (times * each, size))[:count]

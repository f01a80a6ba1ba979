"""Partitions in which no row has two owners.

Where equal parts leave a rest, the LAST parts are one row larger, as in the chunks of
Diana et al.'s Income-L split. `num_clients` is at most the number of rows.
"""

import numpy as np

from fljax.partition.checks import (
    Parts,
    check_clients,
    check_many,
    check_range,
    cut,
    expect,
    is_whole,
    rows_by_value,
    vector,
)


def iid(rng: np.random.Generator, num_rows: int, num_clients: int) -> Parts:
    """Shuffles all rows and cuts them into equal parts.

    Args:
      rng: of the shuffle.
      num_rows: N.
      num_clients: C, at most N.

    Returns:
      Of each client the numbers of its rows.

    Raises:
      ValueError: naming the argument that is out of range.
    """
    check_clients(num_clients, num_rows)
    return cut(rng.permutation(num_rows), num_clients)


def sampled(
    rng: np.random.Generator, num_rows: int, num_clients: int, rows_per_client: int
) -> Parts:
    """Draws equally many rows for every client, all without replacement.

    The clients of Figure 1 of Diana et al., AAAI 2025. For one state of `rng` a client
    does not depend on how many come after it, and the other rows have no owner.

    Args:
      rng: of the draws.
      num_rows: N.
      num_clients: C, at most N.
      rows_per_client: of each, at most `N // C`.

    Returns:
      Of each client the numbers of its rows.

    Raises:
      ValueError: naming the argument that is out of range.
    """
    check_clients(num_clients, num_rows)
    check_range("rows_per_client", rows_per_client, num_rows // num_clients)
    drawn = rng.permutation(num_rows)[: num_clients * rows_per_client]
    return list(drawn.reshape(num_clients, rows_per_client))


def contiguous(num_rows: int, num_clients: int) -> Parts:
    """Cuts the rows into equal parts in their stored order.

    Example:
      >>> [part.tolist() for part in contiguous(5, 2)]
      [[0, 1], [2, 3, 4]]
    """
    check_clients(num_clients, num_rows)
    return cut(np.arange(num_rows), num_clients)


def ordered(column: np.ndarray, num_clients: int) -> Parts:
    """Sorts the rows by a column `[N]`, e.g. age, and cuts them into equal parts.

    The first client gets the smallest values; equal ones keep their stored order.
    """
    column = vector("column", column)
    check_clients(num_clients, len(column))
    return cut(np.argsort(column, kind="stable"), num_clients)


def by_column(column: np.ndarray, num_clients: int | None = None) -> Parts:
    """Gives each distinct value its own client, e.g. one client per state.

    Args:
      column: `[N]` values of one sortable type.
      num_clients: keep only the values with the most rows; None keeps all.

    Returns:
      Row numbers in stored order; largest client first, equal ones by value.

    Example:
      >>> [part.tolist() for part in by_column(np.array(["b", "a", "b"]))]
      [[0, 2], [1]]
    """
    groups = rows_by_value("column", column)
    keep = len(groups) if num_clients is None else num_clients
    most = f"an integer in [1, {len(groups)}], the distinct values"
    expect(
        is_whole(keep) and 1 <= keep <= len(groups), "num_clients", most, num_clients
    )
    return sorted(groups, key=len, reverse=True)[:keep]


def label_shards(
    rng: np.random.Generator,
    labels: np.ndarray,
    num_clients: int,
    shards_per_client: int = 2,
) -> Parts:
    """Sorts by label, cuts into equal shards and deals each client some at random.

    McMahan et al. 2017, section 3 (https://arxiv.org/abs/1602.05629). All rows are
    dealt; each client's are shuffled.

    Args:
      rng: of all draws.
      labels: `[N]`.
      num_clients: C, at most N.
      shards_per_client: of each, at most `N // C`.

    Returns:
      Of each client the numbers of its rows.

    Raises:
      ValueError: naming the argument that is out of range.
    """
    labels = vector("labels", labels)
    check_clients(num_clients, len(labels))
    check_range("shards_per_client", shards_per_client, len(labels) // num_clients)
    shards = cut(np.argsort(labels, kind="stable"), num_clients * shards_per_client)
    deal = rng.permutation(len(shards)).reshape(num_clients, shards_per_client)
    return [rng.permutation(np.concatenate([shards[s] for s in hand])) for hand in deal]


def dirichlet(
    rng: np.random.Generator,
    labels: np.ndarray,
    num_clients: int,
    alpha: float,
    min_rows: int = 1,
) -> Parts:
    """Splits each label over the clients in proportions drawn from Dir(alpha).

    Yurochkin et al. 2019, section 4 (https://arxiv.org/abs/1905.12022). Divergence:
    where others draw everything anew until no client is too small, which need not end,
    here the largest client of the moment gives a row until all have `min_rows`.

    Args:
      rng: of all draws.
      labels: `[N]`.
      num_clients: at most `N`.
      alpha: concentration in (0, inf); small values leave few labels per client.
      min_rows: rows that every client gets at least, up to `N // C`.

    Returns:
      Parts that cover all rows, each shuffled.
    """
    groups = rows_by_value("labels", labels)
    num_rows = sum(map(len, groups))
    check_clients(num_clients, num_rows)
    expect(0 < alpha < np.inf, "alpha", "a finite number > 0", alpha)
    check_range("min_rows", min_rows, num_rows // num_clients)
    pieces: list[Parts] = []
    alphas = np.full(num_clients, min(alpha, 1e300))  # sums of larger gammas overflow
    for group in groups:
        shares = np.cumsum(rng.dirichlet(alphas))[:-1]
        cuts = np.round(shares * len(group)).astype(np.int64)
        pieces.append(np.split(rng.permutation(group), cuts))
    parts = [rng.permutation(np.concatenate(mine)) for mine in zip(*pieces)]
    return _topped_up(parts, min_rows)


def dominant_label(
    rng: np.random.Generator,
    labels: np.ndarray,
    num_clients: int,
    rows_per_client: int,
    share: float = 0.8,
) -> Parts:
    """Gives each client mostly one label, and the others in equal numbers.

    The "80/20" clients of Rajani et al. 2023. The smallest label dominates the first
    `C / labels` clients, the second one the next, and so on.

    Args:
      rng: of all draws.
      labels: `[N]`, at least 2 distinct ones.
      num_clients: at most `N`.
      rows_per_client: rows of every client; the labels must have enough rows for all.
      share: part of them, rounded to whole rows, that has the dominant label. What does
        not divide evenly among the other labels goes to random ones of them.

    Returns:
      Parts of equal size, each shuffled; the other rows have no owner.
    """
    pools = [rng.permutation(group) for group in rows_by_value("labels", labels)]
    check_clients(num_clients, sum(map(len, pools)))
    expect(len(pools) > 1, "labels", "at least 2 distinct", len(pools))
    check_many("rows_per_client", rows_per_client)
    expect(0 <= share <= 1, "share", "a number in [0, 1]", share)
    main = round(share * rows_per_client)
    others, extra = divmod(rows_per_client - main, len(pools) - 1)
    counts = np.full((num_clients, len(pools)), others)
    for client, row in enumerate(counts):
        dominant = client * len(pools) // num_clients
        row[dominant] = main
        row[rng.permutation(np.delete(np.arange(len(pools)), dominant))[:extra]] += 1
    return _drawn(rng, pools, counts)


def correlation(
    rng: np.random.Generator,
    target: np.ndarray,
    sensitive: np.ndarray,
    num_clients: int,
    heterogeneity: float,
) -> Parts:
    """Makes target and sensitive attribute correlate, in opposite directions.

    Algorithm 5 of Diana et al., AAAI 2025 (https://arxiv.org/abs/2411.12697). Rows
    above the median with the attribute and rows not above it without (rich men, poor
    women) form one cluster, all others the second. Both are sampled down to equal size,
    exchange a share `0.5 - h` of their rows and are shuffled; the first half of the
    clients gets the second cluster, the other half the first.

    Divergences: any even number of clients, not only 10. All draws are independent; the
    authors' code starts each from the same seed. How to round the number of exchanged
    rows is open in the paper: down, as in the code.

    Args:
      rng: of all draws.
      target: `[N]` real values, some of them above the median.
      sensitive: `[N]` zeros and ones.
      num_clients: even, and no more than the rows left in both clusters.
      heterogeneity: `h` in [0, 0.5]; 0 mixes the clusters fully, 0.5 not at all.

    Returns:
      Parts of nearly equal size; surplus rows of the larger cluster have no owner.
    """
    agree = _agreement(target, sensitive)
    even = is_whole(num_clients) and num_clients >= 2 and num_clients % 2 == 0
    expect(even, "num_clients", "an even integer >= 2", num_clients)
    in_range = 0 <= heterogeneity <= 0.5
    expect(in_range, "heterogeneity", "a number in [0, 0.5]", heterogeneity)
    size = min(np.count_nonzero(agree), np.count_nonzero(~agree))
    most = f"at most {2 * size}, the rows left in both clusters"
    expect(num_clients <= 2 * size, "num_clients", most, num_clients)
    high = rng.permutation(np.flatnonzero(agree))[:size]
    low = rng.permutation(np.flatnonzero(~agree))[:size]
    # 0.5 - 0.4 falls just below 0.1: without the round, int would lose a row.
    swap = int(round((0.5 - heterogeneity) * size, 6))
    first = rng.permutation(np.concatenate([high[:swap], low[swap:]]))
    last = rng.permutation(np.concatenate([low[:swap], high[swap:]]))
    return cut(first, num_clients // 2) + cut(last, num_clients // 2)


def _agreement(target: np.ndarray, sensitive: np.ndarray) -> np.ndarray:
    """`[N]` bool: above the median with the attribute, or not above it without."""
    target, sensitive = vector("target", target), vector("sensitive", sensitive)
    same = len(target) == len(sensitive)
    expect(same, "sensitive", f"{len(target)} values", len(sensitive))
    values = np.unique(sensitive)
    expect(np.isin(values, (0, 1)).all(), "sensitive", "zeros and ones", values)
    # The median of two values may be the larger one; their mean lies between them.
    two = len(np.unique(target)) == 2
    median = np.mean(target) if two else np.median(target)
    above = target > median
    expect(above.any(), "target", "values above the median", f"none above {median}")
    return above == (sensitive == 1)


def _topped_up(parts: Parts, min_rows: int) -> Parts:
    sizes = np.array([len(part) for part in parts])
    for poor in np.flatnonzero(sizes < min_rows):
        while sizes[poor] < min_rows:
            rich = sizes.argmax()
            parts[poor] = np.append(parts[poor], parts[rich][-1])
            parts[rich] = parts[rich][:-1]
            sizes[poor], sizes[rich] = sizes[poor] + 1, sizes[rich] - 1
    return parts


def _drawn(rng: np.random.Generator, pools: Parts, counts: np.ndarray) -> Parts:
    """Deals `counts` `[C, labels]` rows from the front of each label's pool."""
    ends = np.cumsum(counts, axis=0)
    for label, (pool, needed) in enumerate(zip(pools, ends[-1])):
        enough = needed <= len(pool)
        expect(enough, "labels", f"{needed} rows of label number {label}", len(pool))
    starts = ends - counts
    return [
        rng.permutation(np.concatenate([p[a:b] for p, a, b in zip(pools, *span)]))
        for span in zip(starts, ends)
    ]

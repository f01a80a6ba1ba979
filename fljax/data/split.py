"""Which rows train and which rows test, by the rule that an experiment names."""

import numpy as np
import pandas as pd

from fljax.data.table import DataError, Table


def split_rows(
    table: Table, rule: str, *, test_fraction: float, column: str, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the training and of the test rows, in the order to use them.

    Args:
      table: the rows.
      rule: `sklearn`, `pandas`, `per_column` or `none`.
      test_fraction: share of test rows.
      column: for `per_column`, the column whose every value is split by itself.
      seed: seed of the shuffle.

    Raises:
      DataError: a split would leave no training or no test row.
    """
    num_rows = len(table.frame)
    if rule == "none":
        return np.arange(num_rows), np.arange(0)
    if rule == "sklearn":
        train, test = _sklearn(num_rows, test_fraction, seed)
    elif rule == "pandas":
        train, test = _pandas(num_rows, test_fraction, seed)
    else:
        train, test = _per_column(table, test_fraction, column, seed)
    if not len(train) or not len(test):
        raise DataError(
            f"{table.name}: {num_rows} rows are too few for test_fraction="
            f"{test_fraction}, use split=none"
        )
    return train, test


def _sklearn(
    num_rows: int, test_fraction: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.model_selection import train_test_split  # slow import

    if num_rows < 2:
        return np.arange(num_rows), np.arange(0)
    drawn = int(np.random.default_rng(seed).integers(0, 1000))
    train, test = map(
        np.asarray,
        train_test_split(
            np.arange(num_rows), test_size=test_fraction, random_state=drawn
        ),
    )
    return train, test


def _pandas(
    num_rows: int, test_fraction: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    rows = pd.Series(np.arange(num_rows))
    train = rows.sample(frac=1 - test_fraction, random_state=seed)
    return train.to_numpy(), rows.drop(train.index).to_numpy()


def _per_column(
    table: Table, test_fraction: float, column: str, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    if column not in table.frame.columns:
        raise DataError(
            f"{table.name}: split_column={column!r} is not one of the columns "
            f"{', '.join(table.frame.columns)}"
        )
    rng = np.random.default_rng(seed)
    train, test = [], []
    for _, rows in sorted(table.frame.groupby(column, observed=True).indices.items()):
        shuffled = rng.permutation(rows)
        # int() of (1 - f) * n: the share of training rows is rounded down.
        kept = int((1 - test_fraction) * len(shuffled))
        train.append(shuffled[:kept])
        test.append(shuffled[kept:])
    return np.concatenate(train), np.concatenate(test)

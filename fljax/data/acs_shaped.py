"""Generated persons in the shape of Income-A; no census record is behind any of them.

The shape is that of Diana et al., "Attribute Inference Attacks for Federated Regression
Tasks", 2025: 51 states of very different sizes, the largest with 39,133 rows, columns
and codes of ACSIncome, and as many categories as give their 568 inputs: 4 numbers and
564 dummies. It serves to run that code path, its time and its memory, where the census
files cannot be had, and its accuracies say nothing about people.

Sizes are the quantiles of a log-normal distribution. Occupation and hours depend on
sex; the logarithm of the income is linear in schooling, hours, sex and the effects of
the categories and of the state, quadratic in age, with normal noise.
"""

import numpy as np
import pandas as pd
from scipy import stats

from fljax.data import income
from fljax.data.table import DataError, Table

PRESETS = income.PRESETS

_STATES = 51
_SPREAD = (
    0.95  # of the logarithm of the sizes: 334,620 rows where the paper has 332,900
)
# Column: first code, step between codes, categories, effect on the logarithm of income.
_COLUMNS = {
    "COW": (1, 1, 8, 0.1),
    "MAR": (1, 1, 5, 0.1),
    "OCCP": (10, 10, 529, 0.3),
    "RELP": (0, 1, 18, 0.1),
    "RAC1P": (1, 1, 9, 0.1),
}
_LEAST_ROWS = max(count for _, _, count, _ in _COLUMNS.values())


def load(
    *,
    data_dir: str | None = None,
    states: str = "all",
    features: str = "all",
    task: str = "regression",
    largest_state: int = 39133,
    seed: int = 0,
) -> Table:
    """Generates the table; options that `acs_income` has mean the same.

    Args:
      data_dir: unused, no file is needed.
      states: `all`; the column ST numbers them from 1, largest first.
      features: `all`, or `reduced` for least squares.
      task: `regression`, or `binary` for incomes above the median.
      largest_state: rows of the largest state, at least 529, of which every occupation
        has one; the other states keep their proportion to it.
      seed: seed of the draw.

    Raises:
      DataError: an option is out of range.
    """
    del data_dir
    income.check_options("acs_shaped", features, task)
    if states != "all":
        raise DataError(f"acs_shaped: {states=} is not all")
    if largest_state < _LEAST_ROWS:
        raise DataError(f"acs_shaped: {largest_state=} must be >= {_LEAST_ROWS}")
    frame = _persons(np.random.default_rng(seed), state_sizes(largest_state))
    return income.persons_table(
        frame, name="acs_shaped", features=features, task=task, coding=income.CENSUS
    )


def state_sizes(largest: int) -> np.ndarray:
    """Rows `[51]` int64 of each state, decreasing."""
    quantile = stats.norm.ppf((_STATES - 0.5 - np.arange(_STATES)) / _STATES)
    return (largest * np.exp(_SPREAD * (quantile - quantile[0]))).astype(np.int64)


def _persons(rng: np.random.Generator, sizes: np.ndarray) -> pd.DataFrame:
    num_rows = int(sizes.sum())
    state = np.repeat(np.arange(_STATES), sizes)
    woman = rng.random(num_rows) < 0.48
    age = np.round(rng.triangular(17, 35, 90, num_rows))
    school = np.clip(np.round(rng.normal(18.5, 3.5, num_rows)), 1, 24)
    hours = np.clip(np.round(rng.normal(40 - 4 * woman, 11)), 1, 99)
    log_income = (
        11.0
        + 0.07 * (school - 18.5)
        + 0.025 * (hours - 38)
        - 0.0006 * np.square(age - 50)
        - 0.25 * woman
        + 0.1 * rng.normal(size=_STATES)[state]
        + 0.5 * rng.normal(size=num_rows)
    )
    columns = {"AGEP": age, "SCHL": school, "WKHP": hours, "SEX": 1 + woman}
    for name, (first, step, count, effect) in _COLUMNS.items():
        category = _draw(rng, woman, count)
        columns[name] = first + step * category
        log_income += effect * rng.normal(size=count)[category]
    # The filter of ACSIncome keeps incomes above 100 dollars.
    dollars = np.clip(np.round(np.exp(log_income)), 101, 1e6)
    columns |= {"POBP": np.zeros(num_rows), "ST": 1 + state, "PINCP": dollars}
    return pd.DataFrame({name: columns[name] for name in income.COLUMNS})


def _draw(rng: np.random.Generator, woman: np.ndarray, count: int) -> np.ndarray:
    """Category `[N]` of each person, unevenly popular and in part typical of one sex.

    The first rows take one category each, so that none is absent.
    """
    popular, typical = rng.normal(size=count), 0.5 * rng.normal(size=count)
    weight = np.exp(popular + np.outer((-1, 1), typical))
    upto = np.cumsum(weight, axis=1) / weight.sum(axis=1, keepdims=True)
    chance = rng.random(len(woman))
    found = [np.searchsorted(each[:-1], chance, side="right") for each in upto]
    drawn = np.where(woman, found[1], found[0])
    drawn[:count] = np.arange(count)
    return drawn

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from fljax.data.split import split_rows
from fljax.data.table import DataError, Table


def table(num_rows=50):
    frame = pd.DataFrame(
        {
            "x": np.arange(num_rows),
            "y": np.arange(num_rows),
            "state": np.arange(num_rows) % 3,
        }
    )
    kinds = {"x": "numeric"}
    return Table(
        name="some",
        frame=frame,
        target="y",
        kinds=kinds,
        sensitive=None,
        task="regression",
    )


def split(rule, *, num_rows=50, fraction=0.1, column="state", seed=42):
    return split_rows(
        table(num_rows), rule, test_fraction=fraction, column=column, seed=seed
    )


@given(
    rule=st.sampled_from(["sklearn", "pandas", "per_column", "none"]),
    num_rows=st.integers(20, 60),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=40)
def test_every_row_is_used_exactly_once(rule, num_rows, seed):
    train, test = split(rule, num_rows=num_rows, seed=seed)
    np.testing.assert_array_equal(
        np.sort(np.concatenate([train, test])), np.arange(num_rows)
    )


@pytest.mark.parametrize("seed,drawn", [(42, 89), (0, 850), (1, 473), (2, 837)])
def test_sklearn_draws_its_state_from_the_seed_and_keeps_the_order(seed, drawn):
    train, test = split("sklearn", seed=seed)
    expected = train_test_split(np.arange(50), test_size=0.1, random_state=drawn)
    np.testing.assert_array_equal(train, expected[0])
    np.testing.assert_array_equal(test, expected[1])


def test_pandas_is_what_a_sampled_frame_gives():
    frame = table().frame
    expected = frame.sample(frac=0.9, random_state=7)
    train, test = split("pandas", seed=7)
    np.testing.assert_array_equal(train, expected["x"])
    np.testing.assert_array_equal(test, frame.drop(expected.index)["x"])


def test_per_column_rounds_every_groups_training_rows_down():
    train, _ = split("per_column")  # groups of 17, 17 and 16 rows
    np.testing.assert_array_equal(np.bincount(train % 3), [15, 15, 14])


def test_another_seed_is_another_split():
    for rule in ("sklearn", "pandas", "per_column"):
        assert not np.array_equal(split(rule, seed=1)[0], split(rule, seed=2)[0])


def test_an_unknown_split_column_is_named():
    with pytest.raises(DataError, match="split_column='country' is not one of"):
        split("per_column", column="country")


@pytest.mark.parametrize("rule", ["sklearn", "pandas", "per_column"])
def test_too_few_rows_ask_for_no_split(rule):
    with pytest.raises(DataError, match="too few .* use split=none"):
        split(rule, num_rows=1)

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fljax.data.table import DataError
from fljax.data.vocabulary import label, positions, vocabulary


@given(st.lists(st.one_of(st.integers(-9, 9), st.text("ab?", max_size=2)), min_size=1))
def test_positions_and_vocabulary_are_inverse(values):
    series = pd.Series(values, dtype=object)
    words = vocabulary(series)
    assert [words[i] for i in positions(series, words)] == values


def test_values_are_sorted_and_a_categorical_keeps_its_own_order():
    assert list(vocabulary(pd.Series([10, 9, 10, 100]))) == [9, 10, 100]
    ordered = pd.Series(pd.Categorical(["m", "f"], categories=["m", "x", "f"]))
    assert list(vocabulary(ordered)) == ["m", "f"]
    np.testing.assert_array_equal(positions(ordered, vocabulary(ordered)), [0, 1])


def test_a_label_does_not_steer_the_terminal():
    assert label("\x1b[31m\xa0\xe9\u202e") == "\\x1b[31m\xa0\xe9\\u202e"


def test_an_unknown_category_names_column_category_and_known_ones():
    with pytest.raises(
        DataError, match="'town' holds the unknown category 'x', .* a, b"
    ):
        positions(pd.Series(["a", "x"], name="town"), pd.Index(["a", "b"]))


def test_codes_that_are_whole_numbers_are_spelled_without_a_point():
    assert [label(v) for v in (1.0, 2, "a", True, 0.5)] == [
        "1",
        "2",
        "a",
        "True",
        "0.5",
    ]

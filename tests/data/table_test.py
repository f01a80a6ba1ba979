import pandas as pd
import pytest

from fljax.data.table import DataError, Table, check_numbers

FRAME = pd.DataFrame(
    {
        "age": [30, 40, 50, 60],
        "sex": ["f", "m", "f", "m"],
        "town": ["a", "b", "c", "a"],
        "pay": [1.0, 2.0, 3.0, 4.0],
        "only_for_partition": [None, None, None, None],
    }
)
KINDS = {"age": "numeric", "sex": "binary", "town": "categorical"}


def table(frame=FRAME, **changes):
    fields = {
        "name": "some",
        "target": "pay",
        "kinds": KINDS,
        "sensitive": "sex",
        "task": "regression",
        **changes,
    }
    return Table(frame=frame, **fields)


def test_a_good_table_may_hold_columns_that_are_not_features():
    assert list(table().kinds) == ["age", "sex", "town"]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"target": "income"}, "no column 'income'"),
        ({"kinds": {"height": "numeric"}}, "no column 'height'"),
        ({"kinds": {"pay": "numeric"}}, "target 'pay' is also a feature"),
        ({"kinds": {}, "sensitive": None}, "no feature column"),
        ({"kinds": {"sex": "numeric"}}, "column 'sex' is not numeric, it holds 'f'"),
        ({"kinds": {"town": "binary"}}, "binary column 'town' has 3"),
        ({"kinds": {"age": "ordinal"}}, "unknown kind='ordinal'"),
        ({"target": "town", "kinds": {"sex": "binary"}}, "target 'town' is not num"),
        ({"task": "binary"}, "must hold the classes 0 and 1, found 1.0, 2.0"),
        ({"task": "multiclass"}, "must hold the classes 0 to K - 1"),
        ({"sensitive": "pay"}, "sensitive column 'pay' is the target"),
        ({"sensitive": "race"}, "sensitive column 'race' is not a feature"),
        ({"sensitive": ""}, "sensitive column '' is not a feature"),
        ({"also_sensitive": ("race",)}, "sensitive column 'race' is not a feature"),
        ({"also_sensitive": ("age",)}, "'age' is a number, and only categories"),
        ({"also_sensitive": ("sex",)}, "column 'sex' is sensitive twice"),
        ({"also_sensitive": ("sex",), "sensitive": None}, "without a sensitive column"),
    ],
    ids=str,
)
def test_a_bad_table_is_one_clear_line(changes, line):
    with pytest.raises(DataError, match=line) as error:
        table(**changes)
    assert str(error.value).startswith("some: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (
            {"age": [30, None, None, 60]},
            "'age' has 2 missing values, the first in .* 1",
        ),
        ({"pay": [1.0, 2.0, None, 4.0]}, "column 'pay' has 1 missing values"),
        (
            {"age": [30, 40, float("inf"), 60]},
            "'age' holds inf in row 2, expected numbers below",
        ),
        ({"sex": ["f"] * 4}, "sensitive column 'sex' is constant"),
    ],
    ids=["missing feature", "missing target", "infinite", "constant sensitive"],
)
def test_a_bad_value_is_named_with_its_column(values, line):
    with pytest.raises(DataError, match=line):
        table(FRAME.assign(**values))


def test_repeated_columns_are_refused():
    with pytest.raises(DataError, match="column 'age' appears more than once"):
        table(pd.concat([FRAME, FRAME[["age"]]], axis=1))


def test_a_table_without_rows_is_refused():
    with pytest.raises(DataError, match="no rows"):
        table(FRAME.iloc[:0])


def test_a_cell_that_is_no_number_is_shown_and_not_one_that_is():
    cells = pd.Series(["33", "old", "35"], name="age", dtype=object)
    with pytest.raises(DataError, match="column 'age' is not numeric, it holds 'old'"):
        check_numbers("own", "column", cells)


def test_a_number_is_not_taken_for_a_class_of_each_row():
    frame = pd.DataFrame({"age": range(40), "pay": range(40)})
    told = {"kinds": {"age": "numeric"}, "sensitive": None, "task": "multiclass"}
    with pytest.raises(DataError, match="40 classes in 40 rows: .*task=regression"):
        table(frame, **told)
    several = frame.assign(pay=frame.pay // 2)
    assert table(several, **told).task == "multiclass"

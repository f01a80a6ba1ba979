"""Cells that hardly mean what they say: marks, case, and units beside numbers."""

import warnings

import pandas as pd
import pytest

from fljax import data
from fljax.data import csv_spellings
from fljax.data.table import DataError


@pytest.fixture
def load(tmp_path):
    def load_rows(column, **options):
        lines = [f"{text},{i % 7},{i / 3:.2f}" for i, text in enumerate(column)]
        (tmp_path / "own.csv").write_text("\n".join(["what,age,pay", *lines]) + "\n")
        path = str(tmp_path / "own.csv")
        return data.load("csv", path=path, **{"target": "pay"} | options)

    return load_rows


def test_categories_that_differ_in_case_alone_are_told(load):
    with pytest.warns(UserWarning, match="'f' and 'F' of 'what' are categories of"):
        table = load(["f", "F", "m", "m"] * 6)
    assert table.kinds["what"] == "categorical"


def test_a_mark_that_is_taken_for_a_category_is_told_with_its_remedy(load):
    column = ["a", "b", "?", "b"] * 6
    with pytest.warns(
        UserWarning, match="missing_codes=. takes it for a missing value"
    ):
        load(column)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*is taken for a category")
        warnings.filterwarnings("ignore", message=".*are left out")
        table = load(column, missing_codes=["?"], missing="drop")
    assert set(table.frame["what"]) == {"a", "b"}


def test_numbers_with_leading_zeros_are_told(load):
    column = [f"{10 * number:04d}" for number in range(1, 24)] + [" 0 "]
    with pytest.warns(UserWarning, match="own.csv: column 'what' .* '0010' has a lead"):
        table = load(column)
    assert table.kinds["what"] == "numeric"
    for told in ({"numeric": ["what"]}, {"categorical": ["what"]}):
        load(column, **told)  # as they were called, without a word
    load([f"{number}.05" for number in range(24)])
    load([f'"{100 * number}"' for number in range(24)])


def test_decimals_that_may_be_groups_of_thousands_are_told(load):
    column = [f"{number}.{number + 100}" for number in range(1, 20)]
    said = "decimals of 'what' have three digits, as '1.101', .* thousands=. with decimal=,"
    with pytest.warns(UserWarning, match=said):
        table = load([*column, *["645", "728"] * 3])
    assert table.frame["what"].max() == 728
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(column)  # three digits of each are a precision
        load([*column, "1000"])
        load([*column, "7.0625", "645"])
        load([*column, *["645"] * 5, "0.125"])
        load([*column, *["645"] * 5, "4.5"])


@pytest.mark.parametrize("options", [{}, {"missing_codes": ["?"]}], ids=str)
def test_groups_of_thousands_that_begin_with_a_zero_are_no_codes(load, options):
    column = [f'"{number},047"' for number in range(1, 25)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = load(column, thousands=",", **options)
    assert table.frame["what"].tolist() == [*range(1047, 24048, 1000)]
    with pytest.warns(UserWarning, match="'what' .* of which '012' has a leading zero"):
        load([*column, "012"], thousands=",", **options)


def test_two_codes_are_one_input_with_or_without_their_zeros(load):
    with pytest.warns(UserWarning, match="of which '01' has a leading zero"):
        load(["01", "02", "03"] * 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(["01", "02"] * 12)


@pytest.mark.parametrize(
    ("shown", "unit"),
    [("{}%", "%"), ("{} EUR", "EUR"), ("$ {}.50", "$"), ("{},5 kg", "kg")],
)
def test_numbers_with_a_unit_are_no_ids(load, shown, unit):
    column = [shown.format(number).replace(",", ".") for number in range(20, 60)]
    with pytest.raises(DataError) as error:
        load(column)
    assert f"'what' holds numbers with {unit!r}, such as {column[0]!r}" in str(
        error.value
    )
    with pytest.raises(DataError) as error:
        load(column, target="what")
    assert f"; write numbers without {unit!r}, or for classes" in str(error.value)


@pytest.mark.parametrize(
    "texts", [["P0001", "P0002"], ["1 kg", "2 g"], ["1", "2"], ["a", "b"]]
)
def test_other_texts_have_no_unit(texts):
    assert csv_spellings.unit_of_numbers(pd.Series(texts)) == ""


def test_a_comment_above_the_header_is_named(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("# of May\nage,pay\n1,2\n3,4\n")
    with pytest.raises(
        DataError, match="more cells than the first line has names.*comment"
    ):
        data.load("csv", path=str(path), target="pay")

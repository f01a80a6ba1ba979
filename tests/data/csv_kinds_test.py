"""Kinds of columns, and dates and ids, which are refused."""

import numpy as np
import pandas as pd
import pytest

from fljax.data import csv_table
from fljax.data.table import DataError


def rows(num_rows=20):
    return pd.DataFrame(
        {
            "age": np.arange(num_rows) % 7,
            "sex": np.where(np.arange(num_rows) % 3 == 0, "f", "m"),
            "pay": np.linspace(1.0, 9.0, num_rows),
        }
    )


@pytest.mark.parametrize(
    ("column", "line"),
    [
        ([f"2021-03-{i + 1:02}" for i in range(20)], "'new' holds dates such as '2021"),
        (
            [f"{i % 9 + 1}.3.2021 10:30" for i in range(20)],
            "dates such as '1.3.2021 10",
        ),
        (
            [f"{i % 9 + 1} March 21" for i in range(20)],
            "holds dates such as '1 March 21",
        ),
        ([20210301 + i for i in range(20)], "'new' holds dates such as 20210301, 20"),
        (range(1001, 1021), "'new' has 20 different numbers in as many rows"),
        ([f"A{i // 2}" for i in range(20)] + ["A0"] * 0, None),
        ([f"{i % 5},{i % 3}" for i in range(20)], "row 1 .*'0,0'; try decimal=','"),
        (
            [f"{i % 5},{i % 3}00" for i in range(20)],
            "row 1 .* holds '0,000'; try decimal=',' or thousands=','",
        ),
        (
            [f"{i % 5 + 1},{i % 3}00.5" for i in range(20)],
            "holds '1,000.5'; try thousands=','",
        ),
        ([f"{i} 0{i}0" for i in range(10)] * 2, "try thousands='space'"),
        (
            [f"1.00{i % 9},{i}" for i in range(20)],
            "try decimal=',' and thousands='.'",
        ),
    ],
    ids=str,
)
def test_dates_ids_and_other_numbers_are_refused_with_a_way_out(load, column, line):
    frame = rows().assign(new=column)
    if line is None:
        assert load(frame).kinds["new"] == "categorical"
        return
    with pytest.raises(DataError, match=line):
        load(frame)
    assert load(frame, categorical=["new"]).kinds["new"] == "categorical"


def test_all_dates_and_ids_are_named_at_once(load):
    frame = rows().assign(patient_id=np.arange(20)[::-1] ** 2, seen="1/2/20")
    frame.loc[:15, "seen"] = [f"1/{i % 12 + 1}/20" for i in range(16)]
    with pytest.raises(DataError, match="leave out with drop=patient_id,seen, or take"):
        load(frame)
    table = load(frame, numeric=["patient_id"], drop=["seen"])
    assert table.kinds["patient_id"] == "numeric"
    for_a_shell = rows().assign(**{"": range(20), "id, old": range(20)})
    with pytest.raises(DataError, match="drop=',\"id, old\"', or"):
        load(for_a_shell)


@pytest.mark.parametrize(
    ("name", "refused"),
    [("Fallnummer", True), ("case_no", True), ("AufnahmeNr", True), ("number", True),
     ("techno", False), ("no_smoking", False), ("volume", False)],
)  # fmt: skip
def test_names_of_ids_in_english_and_german(load, name, refused):
    frame = rows().assign(**{name: [(7 * i) ** 2 for i in range(20)]})
    if refused:
        with pytest.raises(DataError, match=f"'{name}' has 20 different numbers"):
            load(frame)
    else:
        assert load(frame).kinds[name] == "numeric"


def test_a_target_may_rise_from_row_to_row(load):
    assert load(rows().assign(pay=range(100, 120))).task == "regression"


def test_columns_with_other_faults_are_named_in_the_same_line(load):
    comma = [f"{i % 5},{i % 3}" for i in range(20)]
    frame = rows().assign(id=range(20), bmi=comma, crp=comma)
    two = r"column 'bmi' .* try decimal=','\. Also: column 'crp' .* try decimal=','\. "
    with pytest.raises(DataError, match=f"mine.csv: {two}Also: 'id' has 20 differ"):
        load(frame)
    frame.loc[3, ["age", "bmi"]] = None
    said = r"mine.csv: missing values in age \(1\), bmi \(1\); .*\. Also: "
    with pytest.raises(DataError, match=f"{said}{two}Also: 'id' has"):
        load(frame)


@pytest.mark.parametrize("missing", ["drop", "impute"])
@pytest.mark.parametrize("gap", ["new", "age"])
@pytest.mark.parametrize(
    ("name", "column", "line"),
    [
        ("new", range(2021_03_01, 2021_03_21), "holds dates such as 20210301, "),
        ("new", range(1001, 1021), r"has (19|20) different numbers in as many rows"),
        ("new", range(20, 0, -1), r"has (19|20) different numbers in as many rows"),
        (
            "case_id",
            [(7 * i) ** 2 for i in range(20)],
            r"has (19|20) different numbers in",
        ),
    ],
    ids=["dates", "rising", "falling", "named"],
)
@pytest.mark.filterwarnings("ignore:mine.csv")
def test_dates_and_ids_are_refused_beside_a_missing_cell(
    load, missing, gap, name, column, line
):
    frame = rows().assign(**{name: column}).astype({"age": float, name: float})
    frame.loc[7, name if gap == "new" else gap] = None
    with pytest.raises(DataError, match=f"{name!r} {line}"):
        load(frame.astype({name: "Int64"}), missing=missing)
    kinds = load(frame, missing=missing, numeric=[name]).kinds
    assert kinds[name] == "numeric"


def test_whole_numbers_with_a_point_are_as_those_without(load):
    whole = [(7.0 * i) ** 2 for i in range(20)]
    assert load(rows().assign(new=whole)).kinds["new"] == "numeric"
    with pytest.raises(DataError, match="'case_id' has 20 different numbers"):
        load(rows().assign(case_id=whole))


@pytest.mark.parametrize("role", ["feature", "target", "numeric"])
def test_numbers_too_large_are_named_and_not_the_first_row(load, role):
    large = 2**64 + 7
    frame = rows().assign(new=[*range(5, 15), large, *range(9)])
    told = {"target": {"target": "new"}, "numeric": {"numeric": ["new"]}}.get(role, {})
    said = f"'new' holds {large} in row 11 below the header, expected whole numbers bel"
    with pytest.raises(DataError, match=said):
        load(frame, **told)


@pytest.mark.filterwarnings("ignore:mine.csv")
def test_a_column_that_is_text_because_of_a_row_left_out_is_named_as_that(load):
    frame = rows().assign(new=["many"] + ["9", "8", "7", "6"] * 4 + ["9"] * 3)
    frame = frame.astype({"age": float})
    frame.loc[0, "age"] = None
    with pytest.raises(DataError, match="'new' is not numeric in a row that is left"):
        load(frame, missing="drop")


@pytest.mark.filterwarnings("ignore:mine.csv")
def test_a_row_that_is_named_is_one_of_the_file(load):
    frame = rows().assign(new=["7", None, "many"] + ["9"] * 17)
    for told in ({}, {"target": "new"}):
        with pytest.raises(
            DataError, match="'new' .* row 3 below the header holds 'ma"
        ):
            load(frame, missing="drop", **told)


@pytest.mark.filterwarnings("ignore:.* rows without age are left out")
def test_a_number_that_is_too_large_is_named_with_all_else_and_by_its_row(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("age,code,y\n,1,0\n1,inf,1\n2,3,0\ninf,5,1\n3,inf,0\n4,inf,1\n")
    told = {"path": path, "target": "y", "missing": "drop"}
    with pytest.raises(
        DataError, match="'age' holds inf in row 4 below the header, exp"
    ):
        csv_table.load(**told, drop=["code"])
    # Of a category no square is taken.
    path.write_text(path.read_text().replace("\ninf", "\n9"))
    assert csv_table.load(**told, categorical=["code"]).kinds["code"] == "categorical"

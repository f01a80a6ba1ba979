import warnings

import numpy as np
import pandas as pd
import pytest

from fljax import data
from fljax.data.table import DataError


def rows(num_rows=20):
    return pd.DataFrame(
        {
            "age": np.arange(num_rows) % 7,
            "smoker": np.arange(num_rows) % 2 == 0,
            "sex": np.where(np.arange(num_rows) % 3 == 0, "f", "m"),
            "town": np.array(["a", "b", "c"])[np.arange(num_rows) % 3],
            "grade": np.arange(num_rows) % 4,
            "pay": np.linspace(1.0, 9.0, num_rows),
        }
    )


def test_kinds_are_inferred_and_order_is_kept(load):
    table = load(rows(), sensitive="sex")
    assert table.name == "mine"
    assert table.task == "regression"
    assert table.sensitive == "sex"
    assert dict(table.kinds) == {
        "age": "numeric",
        "smoker": "binary",
        "sex": "binary",
        "town": "categorical",
        "grade": "numeric",
    }
    assert table.files[0].origin == "local" and len(table.files[0].sha256) == 64


def test_kinds_can_be_overridden_and_columns_dropped(load):
    table = load(rows(), categorical=["grade", "smoker"], drop=["town"])
    assert table.kinds["grade"] == "categorical"
    assert table.kinds["smoker"] == "binary"
    assert "town" not in table.kinds
    assert "town" not in load(rows(), drop=["town", "town"]).kinds
    numbers = load(rows().assign(smoker=rows()["smoker"] * 1), numeric=["smoker"])
    assert numbers.kinds["smoker"] == "numeric"


@pytest.mark.parametrize("target", ["town", "sex", "smoker", "grade"])
def test_classes_are_numbered_in_sorted_order(load, target):
    words = sorted(rows()[target].unique())
    task = "binary" if len(words) == 2 else "multiclass"
    table = load(rows(), target=target, task=task, categorical=[target])
    assert table.task == task
    assert [words[i] for i in table.frame[target]] == rows()[target].tolist()


def test_every_loaded_table_can_be_prepared(load):
    for preset in data.presets("csv"):
        dataset = data.prepare(
            load(rows(), sensitive="town"), data.preset("csv", preset), seed=1
        )
        assert np.isfinite(dataset.train.x.numeric).all()


def test_a_binary_target_of_more_values_says_how_many(load):
    with pytest.raises(
        DataError, match=r"has \d+ different values, expected two; .*multi"
    ):
        load(rows(), target="town", task="binary")


@pytest.mark.parametrize("column", ["age", "sex", "pay"])
def test_missing_values_are_an_error_that_names_the_column(load, column):
    frame = rows().astype({"age": float})
    frame.loc[[3, 5], column] = None
    with pytest.raises(DataError, match=rf"missing values in {column} \(2\)") as error:
        load(frame)
    assert "missing=drop" in str(error.value)
    with pytest.warns(UserWarning, match=f"2 rows without {column} are left out"):
        assert len(load(frame, missing="drop").frame) == 18


def test_imputation_fills_features_only(load):
    frame = rows().astype({"age": float})
    frame.loc[3, "age"] = frame.loc[4, "sex"] = None
    with pytest.warns(UserWarning, match=r"csv: filled in: age \(1\), sex \(1\)"):
        table = load(frame, missing="impute")
    assert table.frame.loc[3, "age"] == frame["age"].median()
    assert table.frame.loc[4, "sex"] == "m"
    for protected in ({"sensitive": "sex"}, {"target": "sex", "task": "binary"}):
        said = r"1 rows without sex are left out; filled in: age \(1\)"
        with pytest.warns(UserWarning, match=said):
            table = load(frame, missing="impute", **protected)
        assert len(table.frame) == 19
        assert table.frame["pay"].tolist() == frame["pay"].drop(4).tolist()


def test_categories_are_not_filled_with_a_median(load):
    frame = rows().assign(grade=[1, 4] * 9 + [None, 2])
    with pytest.warns(UserWarning, match="filled in"):
        table = load(frame, missing="impute", categorical=["grade"])
    assert table.frame["grade"].unique().tolist() == [1, 4, 2]


def test_dropped_columns_are_no_inputs_but_a_partition_has_them(load):
    frame = rows().assign(hospital=["Nord", None] * 10)
    with pytest.warns(UserWarning, match="constant columns left out: same"):
        table = load(frame.assign(same=1), drop=["hospital"])
    assert "hospital" not in table.kinds
    assert table.frame["hospital"].notna().sum() == 10
    frame.loc[0, "sex"] = None
    with pytest.warns(UserWarning, match="1 rows without sex are left out"):
        table = load(frame, drop=["hospital"], sensitive="sex", missing="impute")
    assert table.frame["hospital"].iloc[1] == "Nord"
    assert table.frame["pay"].tolist() == frame["pay"].tolist()[1:]


def test_an_ordinal_sensitive_column_may_be_categories(load):
    said = "'grade' is a number of 4 different values; categorical=grade takes"
    with pytest.warns(UserWarning, match=said):
        load(rows(), sensitive="grade")
    table = load(rows(), sensitive="grade", categorical=["grade"])
    assert table.kinds["grade"] == "categorical"


def test_missing_codes_are_those_of_all_columns_or_of_one(load):
    frame = rows().astype({"age": object})
    frame.loc[2, "age"] = frame.loc[3, "town"] = "?"
    frame.loc[4, "grade"] = frame.loc[5, "pay"] = -1
    with pytest.raises(DataError, match="row 3 .*'\\?'; try missing_codes=\\?$"):
        load(frame)
    with pytest.raises(DataError, match="missing_codes=grad=-1: no column 'grad', col"):
        load(frame, missing_codes=["grad=-1"])
    said = r"filled in: age \(1\), town \(1\), grade \(1\)$"
    codes = ["?", "grade=-1"]
    with pytest.warns(UserWarning, match=said):
        table = load(frame, missing="impute", missing_codes=codes)
    assert table.frame.loc[5, "pay"] == -1


def test_constant_columns_are_left_out_with_a_warning(load):
    with pytest.warns(UserWarning, match="constant columns left out: same, none"):
        table = load(rows().assign(same=1, none="x"))
    assert "same" not in table.kinds
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(rows())


@pytest.mark.parametrize(
    ("changes", "options", "line"),
    [
        ({}, {"target": "income"}, "no column 'income' of target=, columns are age"),
        ({}, {"sensitive": "race"}, "no column 'race'"),
        ({}, {"target": ""}, "mine.csv: no column '' of target=, columns are"),
        ({}, {"sensitive": ""}, "mine.csv: no column '' of sensitive=, columns"),
        ({}, {"drop": ["race"]}, "no column 'race'"),
        (
            {},
            {"sensitive": "sex,age"},
            r"'sex,age' of sensitive= \(expected one column",
        ),
        ({}, {"sensitive": "sexe"}, r"'sexe' of sensitive= \(did you mean 'sex'\?\)"),
        (
            {},
            {"sensitive": "pay"},
            "sensitive column 'pay' is the target; expected two",
        ),
        ({}, {"drop": ["pay"]}, "target 'pay' is among the dropped"),
        ({}, {"sensitive": "sex", "drop": ["sex"]}, "sensitive 'sex' is among the dr"),
        (
            {"sex": [None, *"fm" * 9, "f"]},
            {"sensitive": "sex", "drop": ["sex"], "missing": "impute"},
            "sensitive 'sex' is among the dropped columns, drop=; choose another col",
        ),
        (
            {"nr": range(101, 121)},
            {"sensitive": "nr"},
            "sensitive 'nr' has 20 different numbers .*, as an id has; choose another",
        ),
        ({"nr": range(101, 121)}, {"target": "nr"}, "target 'nr' has .* choose anothe"),
        (
            {"seen": [f"{i + 1}.1.2021" for i in range(20)]},
            {"target": "seen"},
            "target 'seen' holds dates such as '1.1.2021', 20 different ones; choose",
        ),
        ({"sex": "f"}, {"sensitive": "sex"}, "sensitive column 'sex' is constant"),
        ({"pay": 1.0}, {}, "target 'pay' is constant"),
        ({}, {"numeric": ["town"]}, "column 'town' is not numeric, it holds 'a'"),
        ({}, {"missing": "guess"}, "missing='guess' is not one of error, drop, impute"),
        ({}, {"task": "regression", "target": "town"}, "target 'town' is not numeric"),
        (
            {},
            {"task": "ranking"},
            "mine.csv: task='ranking' is not one of regression, b",
        ),
        (
            {},
            {"numeric": ["age", "grade"], "categorical": ["grade"]},
            "column 'grade' is in both numeric= and categorical=, expected one of them",
        ),
        (
            {},
            {"categorical": ["pay"]},
            "target 'pay' is in categorical=; for classes choose task=binary or multi",
        ),
        ({}, {"target": "town"}, "target 'town' is not numeric, it holds 'a'"),
        (
            {"name": [f"person {i}" for i in range(20)]},
            {},
            "'name' has 20 different texts in 20 rows, as an id has; leave out with drop",
        ),
        (
            {"age": ["7", "8", "many"] + ["9"] * 17},
            {},
            "column 'age' is not numeric, row 3 .* holds 'many'",
        ),
        (
            {"pay": ["7", "8", "much"] + ["9"] * 17},
            {},
            "column 'pay' is not numeric, row 3 .* holds 'much'",
        ),
    ],
    ids=str,
)
def test_a_doubtful_file_is_one_clear_line(load, changes, options, line):
    with pytest.raises(DataError, match=line) as error:
        load(rows().assign(**changes), **options)
    assert "\n" not in str(error.value)


def test_an_absent_file_and_absent_options_are_one_line():
    with pytest.raises(DataError, match="nowhere.csv: no such file"):
        data.load("csv", path="nowhere.csv", target="y")
    with pytest.raises(DataError, match="csv: the option target= is required"):
        data.load("csv", path="nowhere.csv")


def test_one_column_in_place_of_a_list_is_no_list_of_its_letters(load):
    with pytest.raises(DataError, match="^categorical: expected a list .* got 'sex'"):
        load(rows(), categorical="sex")


@pytest.mark.parametrize(
    ("cell", "option"),
    [("5A11", "categorical=age"), ("I21.4", "categorical=age"), ("?", "missing_codes=.?"),
     ("<5", "missing_codes=<5"), ("unknown", "missing_codes=unknown")],
)  # fmt: skip
def test_codes_with_letters_are_no_missing_values(load, cell, option):
    frame = rows().astype({"age": object})
    frame.loc[2, "age"] = cell
    with pytest.raises(DataError, match=f"row 3 .*; try {option}$"):
        load(frame)


def test_many_copies_of_rows_are_warned_of(load):
    some = rows().iloc[:10]
    with pytest.warns(UserWarning, match="10 of 20 rows are copies of others. If"):
        load(pd.concat([some, some]))
    load(pd.concat([rows(), some.iloc[:2]]))


def test_a_frame_is_read_as_the_file_that_it_makes(tmp_path):
    frame = pd.DataFrame(
        {
            "age": [31.5, 40.0, 28.25, 51.0],
            "grade": [1, 2, 3, 1],
            "y": [1.0, 2.5, 0.5, 3.0],
        },
        index=[7, 8, 9, 10],
    ).astype({"grade": "category"})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    given = {"target": "y", "sensitive": "grade"}
    table = data.load("csv", path=frame, **given)
    path = str(tmp_path / "rows.csv")
    same = data.load("csv", path=path, categorical=["grade"], **given)
    pd.testing.assert_frame_equal(table.frame, same.frame)
    assert table.kinds == same.kinds and table.name == "frame"
    with pytest.raises(DataError, match="frame.csv"):
        data.load("csv", path=frame, target="x")


def test_a_frame_may_have_numbers_for_names_and_nothing_else_is_a_table():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 3)))
    assert data.load("csv", path=frame, target="2").kinds.keys() == {"0", "1"}
    with pytest.raises(DataError, match="path: expected a path or a pandas DataFrame"):
        data.load("csv", path=None, target="y")

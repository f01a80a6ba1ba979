import numpy as np
import pandas as pd
import pytest

from fljax import data
from fljax.data.pums2016 import SCHOOLING, parse


def rows():
    """Six persons in the format of the file, one of them twice."""
    frame = pd.DataFrame(
        {
            "AGEP": [24, 31, 26, 40, 50, 35],
            "COW": [
                "Employee of a private for profit",
                "Private not-for-profit employee",
                "Local government employee",
                "Self employed incorporated",
                "Federal government employee",
                "Self employed not incorporated",
            ],
            "SCHL": [SCHOOLING[i] for i in (0, 3, 5, 6, 7, 8)],
            "MAR": [
                "Married",
                "Divorced",
                "Widowed",
                "Married",
                "Separated",
                "Married",
            ],
            "OCCP": ["a", "b", "c", "d", "e", "f"],
            "POBP": ["Alabama/AL"] * 6,
            "RELP": ["Reference person", "Husband/wife"] * 3,
            "WKHP": [40, 40, 45, 50, 40, 60],
            "SEX": ["Male", "Female"] * 3,
            "RAC1P": ["White alone", "Asian alone"] * 3,
            "ST": ["Alabama/AL"] * 3 + ["Ohio/OH"] * 3,
            "PINCP": [22000, 21000, 25800, 60000, 45000, 30000],
        }
    )
    return pd.concat([frame, frame.iloc[:1]])


def test_repeated_rows_go_schooling_is_a_rank_and_state_stays():
    table = parse(rows(), "all")
    assert table.name == "pums2016"
    assert len(table.frame) == 6
    assert table.frame["SCHL"].tolist() == [1, 4, 6, 7, 8, 9]
    assert "ST" in table.frame.columns and "ST" not in table.kinds
    assert "POBP" not in table.frame.columns


def test_men_come_first_as_in_the_official_codes():
    dataset = data.prepare(
        parse(rows(), "all"), data.Preprocessing(split="none"), seed=0
    )
    assert dataset.attribute.categories == ("Male", "Female")
    np.testing.assert_array_equal(dataset.train.truth, [0, 1, 0, 1, 0, 1])
    assert dataset.numeric_names == ("AGEP", "SCHL", "WKHP", "SEX_Female")


def test_reduced_features_are_merged():
    frame = parse(rows(), "reduced").frame
    assert frame["COW"].tolist() == [0, 0, 1, 2, 1, 2]
    assert frame["MAR"].tolist() == [1, 2, 2, 1, 2, 1]
    assert frame["RAC1P"].tolist() == [1, 2, 1, 2, 1, 2]


def test_the_label_is_an_income_strictly_above_the_median_of_the_table():
    frame = rows()
    table = parse(frame, "all", "binary")
    assert (table.name, table.task) == ("pums2016_above_median", "binary")
    # 22000 21000 25800 60000 45000 30000: the median lies between 25800 and 30000.
    assert table.frame[table.target].tolist() == [0, 0, 0, 1, 1, 1]
    assert table.frame["PINCP"].tolist() == frame["PINCP"].tolist()[:6]
    assert "PINCP" not in table.kinds
    dataset = data.prepare(table, data.preset("pums2016", "neural"), seed=0)
    assert set(dataset.train.y) | set(dataset.test.y) == {0.0, 1.0}
    tied = parse(frame.assign(PINCP=[1, 1, 1, 1, 1, 9, 1]), "all", "binary")
    assert tied.frame[tied.target].tolist() == [0, 0, 0, 0, 0, 1]


def test_regression_stays_the_default_with_its_name():
    assert parse(rows(), "all").target == "PINCP"
    assert data.options("pums2016")["task"] == "regression"


def test_another_task_is_refused_before_the_file_is_read(tmp_path):
    with pytest.raises(data.DataError, match="task='multiclass' is not one of"):
        data.load("pums2016", data_dir=str(tmp_path), task="multiclass")


def test_unknown_schooling_is_named():
    with pytest.raises(
        data.DataError, match="'SCHL' holds the unknown category 'none'"
    ):
        parse(rows().assign(SCHL="none"), "all")


@pytest.mark.parametrize(
    ("features", "preset", "shape"),
    [
        ("all", "neural", (20015, 4, 498)),
        ("all", "neural_by_state", (19993, 4, 498)),
        ("reduced", "linear", (20015, 9, 0)),
    ],
)
def test_the_real_file_has_known_sizes(shared_data, features, preset, shape):
    table = data.load("pums2016", data_dir=shared_data, features=features)
    assert len(table.frame) == 22239
    dataset = data.prepare(table, data.preset("pums2016", preset), seed=42)
    train = dataset.train
    assert (len(train.y), dataset.num_numeric, dataset.num_onehot) == shape

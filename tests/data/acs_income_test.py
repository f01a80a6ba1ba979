import dataclasses
import io
import zipfile

import numpy as np
import pandas as pd
import pytest
from folktables import ACSDataSource, ACSIncome

from fljax import data
from fljax.data import acs_income


def persons(num_rows=300, *, state=22, year=2018, seed=0):
    """Rows with the columns that matter, in the layout of the census files."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "RT": "P",
            "SERIALNO": [f"{year}GQ{i:07d}" for i in range(num_rows)],
            "ST": state,
            "AGEP": rng.integers(10, 90, num_rows),
            "PWGTP": rng.integers(0, 50, num_rows),
            "COW": rng.integers(1, 9, num_rows),
            "SCHL": rng.integers(1, 25, num_rows),
            "MAR": rng.integers(1, 6, num_rows),
            "OCCP": rng.choice([10, 440, 9830], num_rows),
            "POBP": rng.integers(1, 60, num_rows),
            "RELP": rng.integers(0, 18, num_rows),
            "WKHP": rng.integers(0, 99, num_rows).astype(float),
            "SEX": rng.integers(1, 3, num_rows),
            "RAC1P": rng.integers(1, 10, num_rows),
            "PINCP": rng.integers(-100, 90_000, num_rows).astype(float),
        }
    )
    frame.loc[::10, ["COW", "WKHP", "OCCP"]] = None
    return frame


def write(folder, frame, name="psam_p22.csv"):
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / name, index=False)


def test_rows_and_features_are_those_of_folktables(tmp_path):
    write(tmp_path / "2018" / "1-Year", persons())
    table = data.load("acs_income", data_dir=str(tmp_path))
    raw = ACSDataSource("2018", "1-Year", "person", str(tmp_path)).get_data(["LA"])
    features, target, _ = ACSIncome.df_to_pandas(raw)
    assert table.name == "acs_income_LA_2018"
    assert 100 < len(table.frame) == len(features) < 300
    for column in set(features.columns) - {"POBP"}:
        np.testing.assert_array_equal(table.frame[column], features[column])
    np.testing.assert_array_equal(table.frame["PINCP"] > 50_000, target["PINCP"])


def test_a_person_who_is_listed_twice_counts_once(tmp_path):
    frame = persons()
    write(tmp_path, frame, "psam_p22.csv")
    once = data.load("acs_income", data_dir=str(tmp_path)).frame
    write(tmp_path, pd.concat([frame, frame]), "psam_p22.csv")
    pd.testing.assert_frame_equal(
        data.load("acs_income", data_dir=str(tmp_path)).frame, once
    )


def test_the_neural_preset_keeps_dollars_and_codes(tmp_path):
    write(tmp_path, persons(3000))
    table = data.load("acs_income", data_dir=str(tmp_path))
    dataset = data.prepare(table, data.preset("acs_income", "neural"), seed=42)
    assert dataset.numeric_names == ("AGEP", "SCHL", "WKHP", "SEX_2")
    # COW 8, MAR 5, OCCP 3, RELP 18, RAC1P 9 categories, the first of each dropped.
    assert dataset.num_onehot == 7 + 4 + 2 + 17 + 8
    assert dataset.attribute.categories == ("1", "2")
    assert (np.diff(dataset.attribute.candidates, axis=0) > 0).all()
    expected = table.frame.sample(frac=0.9, random_state=42)["PINCP"]
    np.testing.assert_array_equal(dataset.train.y, expected)


def test_the_linear_preset_has_nine_features_and_one_scaling_of_the_target(tmp_path):
    write(tmp_path, persons(500))
    table = data.load("acs_income", data_dir=str(tmp_path), features="reduced")
    dataset = data.prepare(table, data.preset("acs_income", "linear"), seed=42)
    assert (dataset.num_numeric, dataset.num_onehot) == (9, 0)
    assert set(dataset.numeric_names) == {
        *("AGEP", "SCHL", "WKHP", "SEX_2", "MAR_2", "RAC1P_2"),
        *("COW_0", "COW_1", "COW_2"),
    }
    train = dataset.train
    np.testing.assert_allclose(train.y.std(), 1, rtol=1e-5)
    np.testing.assert_allclose(
        dataset.raw_target(train.y), train.frame["PINCP"], rtol=1e-4
    )
    # The logarithm of a column coded 1/2 scales to the same numbers as the column.
    logged = np.log(train.frame["SEX"].to_numpy(float))
    np.testing.assert_allclose(
        train.x.numeric[:, -1], (logged - logged.mean()) / logged.std(), atol=1e-5
    )


def test_several_states_are_sampled_and_split_in_proportion(tmp_path):
    write(tmp_path, persons(2000, state=22))
    write(tmp_path, persons(1000, state=1, seed=1), "psam_p01.csv")
    options = {"data_dir": str(tmp_path), "states": "LA, al"}
    every = data.load("acs_income", **options).frame["ST"].value_counts()
    table = data.load("acs_income", largest_state=500, **options)
    assert table.name == "acs_income_LA_AL_2018"
    assert len(table.files) == 2
    counts = table.frame["ST"].value_counts()
    assert counts[22] == 500
    assert counts[1] == int(500 / every[22] * every[1])
    preset = data.preset("acs_income", "neural_by_state")
    train = data.prepare(table, preset, seed=1).train.frame["ST"].value_counts()
    assert train[22] == 450 and train[1] == int(0.9 * counts[1])


def test_the_median_of_a_classification_is_that_of_the_sampled_rows(tmp_path):
    write(tmp_path, persons(2000))
    options = {"data_dir": str(tmp_path), "largest_state": 101}
    table = data.load("acs_income", task="binary", **options)
    income = table.frame["PINCP"]
    assert table.name == "acs_income_LA_2018_above_median"
    assert len(income) == 101 and table.frame[table.target].sum() == 50
    np.testing.assert_array_equal(table.frame[table.target], income > income.median())


def test_a_zip_from_the_official_address_is_read(tmp_path, server, reply, monkeypatch):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("psam_p22.csv", persons().to_csv(index=False))
        archive.writestr("ACS2018_PUMS_README.pdf", b"")
    path = "/programs-surveys/acs/data/pums/2018/1-Year/csv_pla.zip"
    url = server.serve(path, reply(buffer.getvalue()))
    template = server.url(path).replace(
        "2018/1-Year/csv_pla", "{year}/{horizon}/csv_p{st}"
    )
    source = dataclasses.replace(acs_income.ACS_INCOME, url=template)
    monkeypatch.setattr(acs_income, "ACS_INCOME", source)
    table = data.load("acs_income", data_dir=str(tmp_path))
    again = data.load("acs_income", data_dir=str(tmp_path))
    assert server.num_requests == 1
    assert table.files[0].origin == url
    assert table.files == again.files


@pytest.mark.parametrize(
    ("state", "year", "member", "address"),
    [
        ("LA", 2018, "psam_p22.csv", "2018/1-Year/csv_pla.zip"),
        ("PR", 2016, "ss16ppr.csv", "2016/1-Year/csv_ppr.zip"),
    ],
)
def test_names_follow_the_census(state, year, member, address):
    source = acs_income.person_file(state=state, year=year, horizon="1-Year")
    assert source.member == member
    assert source.url.startswith(
        "https://www2.census.gov/programs-surveys/acs/data/pums"
    )
    assert source.url.endswith(address)


def test_later_names_of_columns_are_understood(tmp_path):
    frame = persons(year=2023).rename(columns={"RELP": "RELSHIPP", "ST": "STATE"})
    write(tmp_path, frame)
    table = data.load("acs_income", data_dir=str(tmp_path), year=2023)
    assert {"RELP", "ST"} <= set(table.frame.columns)


def test_a_file_of_another_year_is_refused(tmp_path):
    write(tmp_path, persons(year=2019))
    with pytest.raises(data.DataError, match="holds the survey of 2019, expected 2018"):
        data.load("acs_income", data_dir=str(tmp_path))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"states": "XX"}, "unknown state 'XX', expected all or some of AL,AK"),
        ({"states": ""}, "unknown state ''"),
        ({"states": []}, "empty or names a state twice"),
        ({"states": ["LA", "la"]}, "names a state twice"),
        ({"year": 2013}, "expected year >= 2014"),
        ({"horizon": "2-Year"}, "horizon='2-Year'"),
        ({"task": "multiclass"}, "task='multiclass'"),
        ({"features": "some"}, "features='some'"),
    ],
    ids=str,
)
def test_a_wrong_option_is_one_line(options, line):
    with pytest.raises(data.DataError, match=line):
        data.load("acs_income", **options)


def test_an_absent_column_is_named(tmp_path):
    write(tmp_path, persons().drop(columns="RAC1P"))
    with pytest.raises(data.DataError, match="psam_p22.csv: no column 'RAC1P'"):
        data.load("acs_income", data_dir=str(tmp_path))

import dataclasses

import numpy as np
import pandas as pd
import pytest

from fljax import data
from fljax.data import medical


@pytest.fixture
def table(shared_data):
    return data.load("medical", data_dir=shared_data)


def test_the_file_has_its_known_rows_and_record(table):
    assert len(table.frame) == 1338
    assert table.name == "medical"
    assert table.files[0].sha256.startswith("505c1cbc")


def test_the_neural_preset_is_the_protocols(table):
    dataset = data.prepare(table, data.preset("medical", "neural"), seed=42)
    assert (len(dataset.train.y), len(dataset.test.y)) == (1204, 134)
    assert (dataset.num_numeric, dataset.num_onehot) == (8, 0)
    inputs = table.frame.drop(columns="charges")
    pandas_names = pd.get_dummies(inputs, drop_first=True).columns
    assert sorted(dataset.numeric_names) == sorted(pandas_names)
    assert dataset.numeric_names[-1] == "smoker_yes"
    np.testing.assert_allclose(
        dataset.attribute.candidates, [[-0.504], [1.984]], atol=1e-3
    )
    assert dataset.attribute.categories == ("no", "yes")
    np.testing.assert_allclose(dataset.train.x.numeric.mean(0), 0, atol=1e-5)
    assert dataset.train.y.min() > 1000  # dollars
    # Shares of non-smokers of the protocol's two clients, halves of these rows.
    halves = dataset.train.truth.reshape(2, 602)
    np.testing.assert_allclose((halves == 0).mean(1), [0.7807, 0.8140], atol=1e-4)


def test_the_linear_preset_is_the_protocols(table):
    dataset = data.prepare(table, data.preset("medical", "linear"), seed=42)
    assert (dataset.num_numeric, dataset.num_onehot) == (8, 0)
    dummies = dataset.train.x.numeric[:, 3:]
    assert set(np.unique(dummies)) == {0.0, 1.0}
    logged = np.log1p(dataset.train.frame["bmi"])
    expected = (logged - logged.mean()) / logged.std(ddof=0)
    np.testing.assert_allclose(dataset.train.x.numeric[:, 1], expected, atol=1e-5)
    np.testing.assert_allclose(
        dataset.raw_target(dataset.test.y), dataset.test.frame["charges"], rtol=1e-5
    )


def test_without_the_file_the_error_says_where_to_get_it(tmp_path, monkeypatch):
    offline = dataclasses.replace(medical.MEDICAL, download=False)
    monkeypatch.setattr(medical, "MEDICAL", offline)
    with pytest.raises(data.DataError, match="get insurance.csv from https://"):
        data.load("medical", data_dir=str(tmp_path))

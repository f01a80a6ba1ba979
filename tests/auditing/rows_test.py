"""How columns become inputs, and in which order."""

import numpy as np
import pandas as pd
import pytest

from fljax.auditing import case, inputs, rows, table
from fljax.driver.config import ConfigError

_FRAME = pd.DataFrame(
    {
        "job": ["b", "a", "c", "a", "b", "c"],
        "sex": [1, 2, 2, 1, 2, 1],
        "fixed": 7.0,
        "age": [30.0, 40.0, 50.0, 20.0, 35.0, 45.0],
        "smokes": ["no", "yes", "no", "no", "yes", "yes"],
        "client": [0, 0, 0, 1, 1, 1],
        "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
)


@pytest.fixture
def encoded(tmp_path, config):
    """`(**flags) -> Encoding` of the frame above."""
    _FRAME.to_csv(tmp_path / "rows.csv", index=False)

    def encode(two=False, **flags):
        chosen = config(tmp_path, **{"sensitive": "sex"} | flags)
        read = table.read(chosen.files.known, chosen.files, chosen.rows)
        return rows.encode(read, chosen.rows, two)

    return encode


def _inputs(encoding):
    """What the model reads, `[N, D]`."""
    frame = encoding.dataset.train.frame
    return rows.inputs(encoding, frame)[:, encoding.columns.order]


def test_numbers_go_in_as_they_stand_in_the_files_order(encoded):
    encoding = encoded()
    assert encoding.columns.names == (
        "job_a", "job_b", "job_c", "sex", "fixed", "age", "smokes_yes",
    )  # fmt: skip
    np.testing.assert_array_equal(
        _inputs(encoding)[:3],
        [[0, 1, 0, 1, 7, 30, 0], [1, 0, 0, 2, 7, 40, 1], [0, 0, 1, 2, 7, 50, 0]],
    )
    np.testing.assert_array_equal(encoding.columns.candidates, [[1], [2]])


def test_standardised_columns_have_the_files_mean_and_deviation(encoded):
    found = _inputs(encoded(standardise=True, drop_first=True))
    np.testing.assert_allclose(found[:, [2, 4, 5]].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(found[:, [2, 4, 5]].std(axis=0), 1, atol=1e-6)
    np.testing.assert_array_equal(found[:, 3], 0)  # the column that does not vary
    np.testing.assert_array_equal(found[:3, :2], [[1, 0], [0, 0], [0, 1]])


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("neural", ("fixed", "age", "smokes_yes", "sex", "job_b", "job_c")),
        ("linear", ("fixed", "age", "smokes_yes", "job_b", "job_c", "sex")),
    ],
)
def test_the_orders_of_experiments_aia(encoded, order, names):
    found = encoded(input_order=order, drop_first=True).columns
    assert found.names == names


@pytest.mark.parametrize("drop_first", [False, True])
def test_a_sensitive_category_has_one_candidate_per_value(encoded, drop_first):
    encoding = encoded(sensitive="job", drop_first=drop_first)
    columns = encoding.columns
    expected = np.eye(3)[:, int(drop_first) :]
    np.testing.assert_array_equal(columns.candidates, expected)
    assert columns.categories == ("a", "b", "c")
    np.testing.assert_array_equal(
        _inputs(encoding)[:3, : expected.shape[1]], expected[[1, 0, 2]]
    )


def test_what_is_known_lacks_the_sensitive_column(encoded):
    encoding = encoded(sensitive="age")
    every, own = rows.everyone(encoding, None), [np.arange(3), np.array([5])]
    known, truth = rows.split(encoding, every, own, 1, most=3)
    assert known.public.numeric.shape == (2, 3, 6)
    ages = _FRAME.age.to_numpy()
    for age in ages:
        assert not (known.public.numeric == age).any()
    np.testing.assert_array_equal(truth.sensitive[0], ages[:3])
    np.testing.assert_array_equal(known.mask, [[1, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(known.y[1, :1], [6])


@pytest.mark.parametrize("sensitive", ["sex", "smokes", "job"])
def test_two_texts_may_be_two_inputs_as_in_get_dummies(encoded, sensitive):
    flags = {"sensitive": sensitive, "input_order": "dummies", "two": True}
    encoding = encoded(**flags)
    expected = pd.get_dummies(_FRAME.drop(columns=["client", "y"]), dtype=float)
    assert encoding.columns.names == tuple(expected)
    np.testing.assert_array_equal(_inputs(encoding), expected)
    if sensitive == "smokes":
        np.testing.assert_array_equal(encoding.columns.candidates, np.eye(2))
        assert encoding.columns.categories == ("no", "yes")
    one = pd.get_dummies(
        _FRAME.drop(columns=["client", "y"]), dtype=float, drop_first=True
    )
    np.testing.assert_array_equal(_inputs(encoded(**flags, drop_first=True)), one)


def test_numbers_that_are_categories_are_dummies_as_in_get_dummies(encoded):
    flags = {"categorical": ("age",), "input_order": "dummies", "sensitive": "smokes"}
    encoding = encoded(**flags, two=True)
    frame = _FRAME.drop(columns=["client", "y"]).astype({"age": "category"})
    expected = pd.get_dummies(frame, dtype=float)
    np.testing.assert_array_equal(_inputs(encoding), expected)


def test_two_numbers_that_are_called_categories_are_refused(tmp_path, config):
    frame = _FRAME.assign(ward=[4, 7] * 3)
    frame.to_csv(tmp_path / "wards.csv", index=False)

    def read(**told):
        chosen = config(tmp_path, sensitive="sex", **told)
        return table.read(str(tmp_path / "wards.csv"), chosen.files, chosen.rows)

    said = "--categorical: column 'ward' has two numbers, 4 and 7, which are one input"
    with pytest.raises(ConfigError, match=said):
        read(categorical=("ward",))
    for told in ({}, {"standardise": True, "categorical": ("ward",)}):
        assert read(**told).table.kinds["ward"] == "binary"


def test_rows_are_compared_in_deviations_of_the_files_columns(linear, config):
    chosen = config(linear)
    ready = case.prepare(chosen, inputs.read(chosen.files, chosen.rows))
    frame = pd.read_csv(linear / "rows.csv")[["age", "height", "married"]]
    np.testing.assert_allclose(ready.truth.scale, frame.std(ddof=0), rtol=1e-5)


@pytest.mark.parametrize("value", [0.1, 37.3])
@pytest.mark.filterwarnings("ignore:.*one value")
def test_a_column_of_one_value_is_compared_as_it_is(linear, config, value):
    frame = pd.read_csv(linear / "rows.csv")
    frame.assign(height=value).to_csv(linear / "rows.csv", index=False)
    chosen = config(linear)
    ready = case.prepare(chosen, inputs.read(chosen.files, chosen.rows))
    assert ready.truth.scale[1] == 1


@pytest.mark.filterwarnings("ignore:.*are left out")
def test_of_rows_that_are_dropped_nothing_is_left(encoded, tmp_path, config):
    frame = _FRAME.assign(fixed=[9.0, *[7.0] * 5], age=[None, *_FRAME.age[1:]])
    frame.to_csv(tmp_path / "dropped.csv", index=False)
    chosen = config(tmp_path, sensitive="sex", missing="drop")
    read = table.read(str(tmp_path / "dropped.csv"), chosen.files, chosen.rows)
    assert read.table.frame.fixed.tolist() == [7.0] * 5


@pytest.mark.filterwarnings("ignore:.*are left out")
def test_a_class_of_dropped_rows_alone_is_missed(tmp_path, config):
    frame = _FRAME.assign(y=[1, 0, 2, 0, 2, 0], age=[None, *_FRAME.age[1:]])
    frame.to_csv(tmp_path / "dropped.csv", index=False)
    told = {"sensitive": "sex", "missing": "drop", "task": "multiclass"}
    chosen = config(tmp_path, **told)
    with pytest.raises(ConfigError, match="--target: expected classes 0 to K - 1"):
        table.read(str(tmp_path / "dropped.csv"), chosen.files, chosen.rows)

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from fljax.data.options import Preprocessing
from fljax.data.preprocess import prepare
from fljax.data.table import DataError, Table

KINDS = {"town": "categorical", "sex": "binary", "age": "numeric", "job": "categorical"}


def table(sensitive="sex", task="regression", num_rows=40):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["a", "b", "c"], num_rows),
            "sex": rng.choice(["f", "m"], num_rows),
            "age": rng.integers(20, 60, num_rows),
            "job": rng.choice([1.0, 2.0, 3.0, 7.0], num_rows),
            "pay": rng.uniform(1.0, 9.0, num_rows),
        }
    )
    if task != "regression":
        frame["pay"] = np.arange(num_rows) % (2 if task == "binary" else 3)
    return Table(
        name="some",
        frame=frame,
        target="pay",
        kinds=KINDS,
        sensitive=sensitive,
        task=task,
    )


def one_hot(codes, width):
    """The block that positions stand for; the position `width` is no one."""
    return np.eye(width + 1)[codes].sum(axis=-2)[..., :width]


def test_scaling_is_sklearns_on_the_training_rows():
    data = prepare(table(), Preprocessing(), seed=42)
    scaler = StandardScaler().fit(data.train.frame[["age"]].to_numpy())
    for split in (data.train, data.test):
        expected = scaler.transform(split.frame[["age"]].to_numpy())
        np.testing.assert_allclose(split.x.numeric[:, :1], expected, rtol=1e-6)


def test_three_rows_by_hand():
    frame = pd.DataFrame(
        {"age": [1.0, 3.0, 5.0], "sex": ["f", "m", "m"], "y": [7.0, 8.0, 9.0]}
    )
    kinds = {"age": "numeric", "sex": "binary"}
    raw = Table(
        name="hand",
        frame=frame,
        target="y",
        kinds=kinds,
        sensitive="sex",
        task="regression",
    )
    options = Preprocessing(split="none", target="standardise")
    data = prepare(raw, options, seed=0)
    std = np.sqrt(8 / 3)  # population variance of 1, 3, 5
    women, men = -np.sqrt(2.0), 1 / np.sqrt(2.0)  # mean 2/3, variance 2/9
    expected = [[-2 / std, women], [0, men], [2 / std, men]]
    np.testing.assert_allclose(data.train.x.numeric, expected, atol=1e-6)
    np.testing.assert_allclose(data.attribute.candidates, [[women], [men]], atol=1e-6)
    np.testing.assert_array_equal(data.train.truth, [0, 1, 1])
    np.testing.assert_allclose(
        data.train.y, [-np.sqrt(1.5), 0, np.sqrt(1.5)], rtol=1e-6
    )
    assert len(data.test.y) == 0 and data.test.x.numeric.shape == (0, 2)


def test_a_target_that_never_varies_has_no_deviation():
    frame = pd.DataFrame({"age": [1.0, 2, 3], "sex": ["f", "m", "m"], "y": [0.1] * 3})
    raw = Table(
        name="hand",
        frame=frame,
        target="y",
        kinds={"age": "numeric", "sex": "binary"},
        sensitive="sex",
        task="regression",
    )
    data = prepare(raw, Preprocessing(split="none", target="standardise"), seed=0)
    assert data.target_std == 1.0
    np.testing.assert_allclose(data.train.y, 0, atol=1e-12)


@pytest.mark.parametrize("drop_first", [True, False])
def test_codes_stand_for_the_dummies(drop_first):
    coded = prepare(table(), Preprocessing(drop_first=drop_first), seed=42)
    written = prepare(
        table(), Preprocessing(drop_first=drop_first, categorical="dummies"), seed=42
    )
    width = coded.num_onehot
    assert width == (3 + 4) - 2 * drop_first
    assert coded.num_numeric + width == written.num_numeric
    for split, other in ((coded.train, written.train), (coded.test, written.test)):
        # Both orders end with the sensitive column among the numeric ones.
        block = one_hot(split.x.codes, width)
        dense = np.concatenate(
            [split.x.numeric[:, :-1], block, split.x.numeric[:, -1:]], axis=1
        )
        np.testing.assert_array_equal(dense, other.x.numeric)


def test_dummies_are_those_of_pandas():
    data = prepare(table(), Preprocessing(categorical="dummies", split="none"), seed=0)
    frame = data.train.frame
    expected = pd.get_dummies(frame[["town", "job"]].astype({"job": str}))
    expected = expected.drop(columns=["town_a", "job_1.0"])
    np.testing.assert_array_equal(data.train.x.numeric[:, 1:-1], expected)
    names = ("age", "town_b", "town_c", "job_2", "job_3", "job_7", "sex_m")
    assert data.numeric_names == names


def test_codes_carry_their_offsets_and_the_dropped_category_is_no_one():
    data = prepare(table(), Preprocessing(split="none"), seed=0)
    frame = data.train.frame
    town = frame["town"].map({"a": 5, "b": 0, "c": 1})
    job = frame["job"].map({1.0: 5, 2.0: 2, 3.0: 3, 7.0: 4})
    np.testing.assert_array_equal(data.train.x.codes, np.stack([town, job], axis=1))
    assert data.train.x.codes.dtype == np.int32
    assert data.num_onehot == 5


def test_standardised_dummies_have_mean_zero_and_variance_one():
    options = Preprocessing(categorical="standardised_dummies")
    data = prepare(table(), options, seed=42)
    np.testing.assert_allclose(data.train.x.numeric.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(data.train.x.numeric.std(0), 1, atol=1e-5)


@pytest.mark.parametrize("categorical", ["codes", "standardised_dummies"])
@pytest.mark.parametrize("sensitive", ["sex", "town", "job"])
def test_the_sensitive_block_is_last_and_holds_the_true_candidate(
    sensitive, categorical
):
    data = prepare(table(sensitive), Preprocessing(categorical=categorical), seed=42)
    attribute = data.attribute
    for split in (data.train, data.test):
        block = split.x.numeric[:, -attribute.width :]
        np.testing.assert_array_equal(block, attribute.candidates[split.truth])
        labels = [attribute.categories[i] for i in split.truth]
        raw = split.frame[sensitive]
        assert labels == [str(int(v)) if sensitive == "job" else v for v in raw]
    assert attribute.candidates.dtype == np.float32
    assert len(attribute.candidates) == len(attribute.categories)


def test_columns_inferred_together_are_each_combination_of_their_values():
    both = dataclasses.replace(table("job"), also_sensitive=("sex",))
    data = prepare(both, Preprocessing(categorical="codes"), seed=0)
    found, split = data.attribute, data.train
    assert (found.name, found.kind, found.width) == ("job and sex", "categorical", 4)
    assert found.categories[:3] == ("1, f", "1, m", "2, f")
    np.testing.assert_array_equal(
        split.x.numeric[:, -4:], found.candidates[split.truth]
    )
    for column, values in (("job", [1, 2, 3, 7]), ("sex", ["f", "m"])):
        told = np.array(values)[found.parts[column][split.truth]]
        assert (told == split.frame[column].to_numpy()).all()


@pytest.mark.parametrize("categorical", ["codes", "dummies"])
def test_unknown_values_get_no_column_and_all_others_one(categorical):
    options = Preprocessing(drop_first=False, unknown="b", categorical=categorical)
    data = prepare(table("age"), options, seed=42)
    columns = [*data.encoder.dense, *data.encoder.coded]
    names = {name for column in columns for name in column.names}
    assert {name for name in names if name.startswith("town")} == {"town_a", "town_c"}
    assert len([name for name in names if name.startswith("job")]) == 4
    unknown = data.train.frame["town"] == "b"
    if categorical == "codes":
        block = one_hot(data.train.x.codes[:, :1], data.num_onehot)
    else:
        block = data.train.x.numeric[:, 1:3]
    np.testing.assert_array_equal(block.sum(axis=1), 1 - unknown)


def test_a_categorical_attribute_is_drop_first_dummies_even_beside_codes():
    data = prepare(table("town"), Preprocessing(drop_first=False), seed=42)
    assert data.attribute.kind == "categorical"
    np.testing.assert_array_equal(data.attribute.candidates, [[0, 0], [1, 0], [0, 1]])
    assert data.numeric_names[-2:] == ("town_b", "town_c")
    assert data.num_onehot == 4


def test_a_continuous_attribute_has_the_range_of_the_training_rows():
    data = prepare(table("age"), Preprocessing(), seed=42)
    truth = data.train.truth
    assert truth.dtype == np.float32
    np.testing.assert_array_equal(truth, data.train.x.numeric[:, -1])
    np.testing.assert_array_equal(
        data.attribute.candidates, [[truth.min()], [truth.max()]]
    )
    assert data.attribute.categories == ()


def test_without_a_sensitive_attribute_there_is_no_truth():
    data = prepare(table(None), Preprocessing(), seed=42)
    assert data.attribute is None
    assert not data.train.truth.any()


def test_a_constant_column_becomes_zero():
    raw = table()
    raw = dataclasses.replace(raw, frame=raw.frame.assign(age=7))
    data = prepare(raw, Preprocessing(), seed=42)
    assert not data.train.x.numeric[:, 0].any()


@pytest.mark.parametrize(
    ("numeric", "expected"), [("log", np.log), ("log1p", np.log1p)]
)
def test_a_logarithm_is_taken_before_scaling(numeric, expected):
    data = prepare(table(), Preprocessing(numeric=f"{numeric}_standardise"), seed=42)
    logged = expected(data.train.frame["age"].to_numpy(np.float64))
    np.testing.assert_allclose(
        data.train.x.numeric[:, 0], (logged - logged.mean()) / logged.std(), rtol=1e-5
    )


def test_a_logarithm_of_zero_is_one_clear_line():
    raw = table()
    raw = dataclasses.replace(raw, frame=raw.frame.assign(age=0))
    with pytest.raises(DataError, match="'age' holds 0, log needs values above 0"):
        prepare(raw, Preprocessing(numeric="log_standardise"), seed=42)


@pytest.mark.parametrize("target", ["raw", "standardise", "log_standardise"])
def test_a_target_can_be_put_back_to_raw_units(target):
    data = prepare(table(), Preprocessing(target=target), seed=42)
    for split in (data.train, data.test):
        raw = split.frame["pay"]
        np.testing.assert_allclose(data.raw_target(split.y), raw, rtol=1e-5)
    if target != "raw":
        np.testing.assert_allclose(data.train.y.mean(), 0, atol=1e-6)


@pytest.mark.parametrize(
    ("task", "dtype"), [("binary", np.float32), ("multiclass", np.int32)]
)
def test_classes_stay_what_they_are(task, dtype):
    data = prepare(table(task=task), Preprocessing(), seed=42)
    assert data.train.y.dtype == dtype
    np.testing.assert_array_equal(data.train.y, data.train.frame["pay"])
    with pytest.raises(DataError, match="needs a regression target"):
        prepare(table(task=task), Preprocessing(target="standardise"), seed=42)


def test_new_rows_are_encoded_like_old_ones_and_unknown_categories_are_named():
    data = prepare(table(), Preprocessing(), seed=42)
    again = data.encoder.encode(data.test.frame)
    np.testing.assert_array_equal(again.numeric, data.test.x.numeric)
    np.testing.assert_array_equal(again.codes, data.test.x.codes)
    strange = data.test.frame.assign(town="z")
    with pytest.raises(DataError, match="'town' holds the unknown category 'z'"):
        data.encoder.encode(strange)
    with pytest.raises(DataError, match="lack the column 'job'"):
        data.encoder.encode(strange.drop(columns="job").assign(town="a"))


def test_the_vocabulary_comes_from_the_whole_table():
    raw = table()
    raw.frame.loc[0, "town"] = "rare"
    widths = {prepare(raw, Preprocessing(), seed=seed).num_onehot for seed in range(9)}
    assert widths == {6}

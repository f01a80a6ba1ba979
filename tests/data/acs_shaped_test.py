import numpy as np
import pytest

from fljax import data
from fljax.data import acs_shaped


def small(**options):
    return data.load("acs_shaped", largest_state=600, **options)


def test_the_default_has_the_shape_of_income_a():
    table = data.load("acs_shaped")
    sizes = table.frame["ST"].value_counts()
    assert list(sizes.index) == list(range(1, 52))  # the largest first
    assert sizes.iloc[0] == 39133
    assert 300 < sizes.iloc[-1] < 700
    # The paper has 332,900 records.
    assert len(table.frame) == pytest.approx(332_900, rel=0.01)
    # Its median income is 39,000 dollars.
    assert table.frame["PINCP"].median() == pytest.approx(39_000, rel=0.1)
    assert table.name == "acs_shaped" and table.files == ()


@pytest.mark.parametrize("largest", [529, 600])
def test_every_size_has_the_568_inputs_of_income_a(largest):
    table = data.load("acs_shaped", largest_state=largest)
    dataset = data.prepare(table, data.preset("acs_shaped", "neural_by_state"), seed=0)
    assert dataset.numeric_names == ("AGEP", "SCHL", "WKHP", "SEX_2")
    assert dataset.num_numeric + dataset.num_onehot == 568
    assert dataset.attribute.categories == ("1", "2")
    train = dataset.train.frame["ST"].value_counts()
    expected = (0.9 * acs_shaped.state_sizes(largest)).astype(int)
    np.testing.assert_array_equal(train.sort_index(), expected)
    np.testing.assert_array_equal(dataset.train.y, dataset.train.frame["PINCP"])


def test_the_reduced_features_are_those_of_acs_income():
    dataset = data.prepare(
        small(features="reduced"), data.preset("acs_shaped", "linear"), seed=0
    )
    assert (dataset.num_numeric, dataset.num_onehot) == (9, 0)


def test_features_explain_the_income_and_sex_matters():
    frame = data.load("acs_shaped", largest_state=5000).frame
    y = np.log(frame["PINCP"].to_numpy())
    x = frame[["AGEP", "SCHL", "WKHP", "SEX"]].to_numpy(float)
    x = np.column_stack([x, np.square(x[:, 0]), np.ones(len(x))])
    weights, rest, *_ = np.linalg.lstsq(x, y)
    assert 1 - rest[0] / np.sum(np.square(y - y.mean())) > 0.3
    assert weights[3] < -0.1  # women earn less
    assert frame["PINCP"].between(101, 1e6).all()
    by_job = np.bincount(frame["OCCP"] // 10, weights=frame["SEX"] - 1)[1:]
    share = by_job / np.bincount(frame["OCCP"] // 10)[1:]
    assert share.std() > 0.1  # occupations are typical of one sex


def test_the_seed_decides_the_rows():
    one, again, other = (small(seed=seed).frame for seed in (3, 3, 4))
    assert one.equals(again)
    assert not one.equals(other)


def test_binary_labels_split_at_the_median():
    table = small(task="binary")
    assert (table.name, table.task) == ("acs_shaped_above_median", "binary")
    assert table.frame[table.target].mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"states": "LA"}, "acs_shaped: states='LA' is not all"),
        ({"largest_state": 528}, "acs_shaped: largest_state=528 must be >= 529"),
        ({"features": "some"}, "acs_shaped: features='some' is not one of"),
        ({"task": "multiclass"}, "acs_shaped: task='multiclass' is not one of"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_wrong_option_is_one_line(options, line):
    with pytest.raises(data.DataError, match=line):
        data.load("acs_shaped", **options)

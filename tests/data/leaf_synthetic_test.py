import numpy as np
import pytest

from fljax import data


def test_clients_have_the_papers_sizes():
    table = data.load("leaf_synthetic")
    sizes = np.bincount(table.frame["client"])
    np.testing.assert_array_equal(sizes, [280, 184, 1536, 256, 208])
    assert len(table.kinds) == 10
    assert "client" not in table.kinds
    assert table.task == "binary"


def test_a_seed_is_one_draw():
    first, again, other = (
        data.load("leaf_synthetic", seed=s).frame["x0"] for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_later_features_vary_less_around_a_clients_mean():
    table = data.load("leaf_synthetic", sizes=(20_000,))
    std = table.frame[list(table.kinds)].std(ddof=0)
    expected = np.arange(1, 11) ** -0.6
    # Standard error of a standard deviation: std / sqrt(2 n).
    np.testing.assert_allclose(std, expected, rtol=4 / np.sqrt(2 * 20_000))


def test_each_client_is_nearly_separable_by_a_line():
    from sklearn.linear_model import LogisticRegression

    table = data.load("leaf_synthetic", seed=3, generator="text")
    for _, rows in table.frame.groupby("client"):
        if rows["y"].nunique() == 2:
            x = rows[list(table.kinds)]
            model = LogisticRegression(C=100.0, max_iter=500).fit(x, rows["y"])
            assert model.score(x, rows["y"]) > 0.95


def _most_frequent(generator):
    """Share of the most frequent class, of clients in many draws."""
    drawn = [
        data.load("leaf_synthetic", seed=s, generator=generator).frame
        for s in range(30)
    ]
    each = [frame.groupby("client")["y"].mean().to_numpy() for frame in drawn]
    ones = np.concatenate(each)
    return np.maximum(ones, 1 - ones)


def test_the_codes_clients_have_both_classes_and_the_texts_often_one():
    code, text = map(_most_frequent, ("code", "text"))
    assert code.max() < 1
    assert (text == 1).mean() > 0.2
    # 72 % and 89 % in 400 draws.
    assert code.mean() == pytest.approx(0.72, abs=0.05)
    assert text.mean() == pytest.approx(0.89, abs=0.05)


def test_more_classes_make_a_multiclass_task():
    table = data.load("leaf_synthetic", num_classes=4, sizes=(2000, 2000), seed=1)
    assert table.task == "multiclass"


@pytest.mark.parametrize(
    "options",
    [{"sizes": ()}, {"sizes": (0,)}, {"num_classes": 1}, {"generator": "paper"}],
)
def test_impossible_sizes_are_one_line(options):
    with pytest.raises(data.DataError, match="leaf_synthetic: .*must"):
        data.load("leaf_synthetic", **options)

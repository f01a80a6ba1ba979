import numpy as np
import pytest

from fljax import data


def test_the_draw_follows_the_notebooks_order():
    table = data.load("toy")
    rng = np.random.RandomState(42)
    weights = rng.randn(10, 1)
    bias = rng.rand(1)
    x = rng.rand(2048, 10)
    x[:, -1] = np.where(x[:, -1] > 0.5, 1, 0)
    y = x @ weights + bias + 0.1 * rng.randn(2048, 1)
    np.testing.assert_array_equal(table.frame[list(table.kinds)], x)
    np.testing.assert_allclose(table.frame["y"], y[:, 0], rtol=1e-12)
    np.testing.assert_array_equal(table.parameters["weights"], weights[:, 0])
    np.testing.assert_array_equal(table.parameters["bias"], bias[0])


def test_two_clients_hold_half_of_the_rows_each_in_order():
    table = data.load("toy")
    np.testing.assert_array_equal(table.frame["client"], np.repeat([0, 1], 1024))


def test_the_parameters_explain_the_prepared_target():
    table = data.load("toy", noise=0.0, num_rows=100, num_features=3, seed=1)
    dataset = data.prepare(table, data.preset("toy", "linear"), seed=0)
    x, y, truth, _ = dataset.train
    predicted = x.numeric @ table.parameters["weights"] + table.parameters["bias"]
    np.testing.assert_allclose(y, predicted, rtol=1e-5)
    np.testing.assert_array_equal(truth, x.numeric[:, -1])
    np.testing.assert_array_equal(dataset.attribute.candidates, [[0.0], [1.0]])
    assert len(dataset.test.y) == 0


def test_no_rows_are_refused():
    with pytest.raises(data.DataError, match="num_rows=0 must be >= 2"):
        data.load("toy", num_rows=0)

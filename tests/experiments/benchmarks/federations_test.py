"""Generated federations: sizes, inputs, layout."""

import jax
import numpy as np
import pytest

from experiments.benchmarks import federations


@pytest.mark.parametrize(
    ("name", "clients", "rows", "inputs"),
    [("medical", 2, 1204, 8), ("income_l", 10, 14_380, 548),
     ("income_a", 51, 300_000, 568)],
)  # fmt: skip
def test_shapes_are_those_of_the_publication(name, clients, rows, inputs):
    shape = federations.shape(name)
    assert len(shape.sizes) == clients
    assert abs(sum(shape.sizes) - rows) <= clients
    assert shape.num_inputs == inputs


def test_ragged_sizes_stay_in_their_range():
    sizes = federations.shape("income_a").sizes
    assert min(sizes) == 600
    assert 20_000 < max(sizes) <= 23_453


@pytest.mark.slow
def test_the_dense_matrix_gives_the_same_hidden_layer_as_the_codes():
    shape = federations.Shape((3, 4), 4, (2, 3))
    rows = federations.generate(shape, 0)
    (x, y), _ = federations.dense(rows, shape)
    assert x.shape == (3, 9)
    np.testing.assert_array_equal(y, rows.y[:3])
    params = federations.model(shape).init(jax.random.key(0))
    arrays = federations.to_arrays(params)
    hidden = np.maximum(x @ arrays["hidden_kernel"] + arrays["hidden_bias"], 0)
    want = (hidden @ arrays["output_kernel"] + arrays["output_bias"])[:, 0]
    got = jax.vmap(federations.model(shape).apply, (None, 0))(params, rows.x)
    np.testing.assert_allclose(got[:3], want, rtol=1e-5, atol=1e-6)


def test_the_adversary_is_not_given_the_sensitive_column():
    shape = federations.Shape((50,), 3)
    rows = federations.generate(shape, 0)
    known = federations.known(rows)
    np.testing.assert_array_equal(known.public.numeric, rows.x.numeric[:, :2])
    column = federations.candidates()[federations.truth(rows), 0]
    np.testing.assert_array_equal(column, rows.x.numeric[:, 2])

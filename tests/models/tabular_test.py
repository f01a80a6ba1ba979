"""Models against NumPy on materialised one-hot columns."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fljax import models
from fljax.types import Features

# Two categorical columns: positions 0-2 and 3-4; 5 is the reference category.
_CODES = np.array([[0, 3], [2, 5], [5, 4], [5, 5], [1, 3]], np.int32)
_NUMERIC = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
_ROWS = Features(_NUMERIC, _CODES)


def _dense():
    """The same rows with the one-hot block written out, `[5, 3 + 5]` float64."""
    onehot = np.zeros((5, 5))
    for row, codes in enumerate(_CODES):
        for code in codes[codes < 5]:
            onehot[row, code] = 1.0
    return np.concatenate([_NUMERIC.astype(np.float64), onehot], axis=1)


def _draw(model, *lead):
    """Parameters of the model's shapes from N(0, 1/4), without compiling its init."""
    rng = np.random.default_rng(1)
    return jax.tree.map(
        lambda leaf: rng.normal(0, 0.5, (*lead, *leaf.shape)).astype(leaf.dtype),
        jax.eval_shape(model.init, jax.random.key(0)),
    )


def _layers(params):
    """Kernels and biases, first layer first, float64."""
    names = ["TabularDense_0", *sorted(n for n in params if n.startswith("Dense"))]
    return [
        tuple(np.asarray(params[name][k], np.float64) for k in ("kernel", "bias"))
        for name in names
    ]


def _forward(params, inputs):
    layers = _layers(params)
    for kernel, bias in layers[:-1]:
        inputs = np.maximum(inputs @ kernel + bias, 0)
    return inputs @ layers[-1][0] + layers[-1][1]


@pytest.mark.usefixtures("one_hot")
@pytest.mark.parametrize("hidden", [(), (16,), (8, 4)], ids=["linear", "one", "two"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_network_equals_a_dense_one_on_materialised_one_hot(hidden, outputs):
    model = models.mlp(3, 2, hidden=hidden, outputs=outputs, num_onehot=5)
    params = _draw(model)
    found = jax.jit(jax.vmap(model.apply, (None, 0)))(params, _ROWS)
    expected = _forward(params, _dense())
    assert found.shape == ((5,) if outputs == 1 else (5, outputs))
    np.testing.assert_allclose(found.reshape(5, outputs), expected, atol=2e-6)


@pytest.mark.usefixtures("one_hot")
def test_the_gradient_of_the_kernel_equals_that_of_a_dense_layer():
    model = models.mlp(3, 2, hidden=(6,), num_onehot=5)
    params = _draw(model)

    def loss(params):
        return jnp.sum(jnp.square(jax.vmap(model.apply, (None, 0))(params, _ROWS)))

    def dense_loss(params):
        first, second = params["TabularDense_0"], params["Dense_0"]
        inputs = jnp.asarray(_dense(), jnp.float32)
        hidden = jax.nn.relu(inputs @ first["kernel"] + first["bias"][None])
        return jnp.sum(jnp.square(hidden @ second["kernel"] + second["bias"][None]))

    found, expected = (jax.jit(jax.grad(f))(params) for f in (loss, dense_loss))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        found,
        expected,
    )


@pytest.mark.usefixtures("one_hot")
def test_the_public_columns_part_of_the_first_layer_is_that_of_a_dense_one():
    model = models.mlp(3, 2, hidden=(6,), num_onehot=5)
    params = _draw(model)
    found = jax.jit(jax.vmap(model.apply.begin, (None, 0)))(params, _ROWS)
    kernel, bias = _layers(params)[0]
    np.testing.assert_allclose(found, _dense() @ kernel + bias, atol=2e-6)


@pytest.mark.usefixtures("one_hot")
def test_the_reference_category_has_no_kernel_row():
    model = models.linear(3, 2, num_onehot=5)
    params = _draw(model)
    row = jax.tree.map(lambda leaf: leaf[3], _ROWS)
    grads = jax.jit(jax.grad(model.apply))(params, row)["TabularDense_0"]["kernel"]
    np.testing.assert_array_equal(grads[:, 0], [*_NUMERIC[3], 0, 0, 0, 0, 0])


def test_linear_is_a_dot_product_with_intercept():
    model = models.linear(2)
    params = {
        "TabularDense_0": {
            "kernel": jnp.array([[2.0], [3.0]]),
            "bias": jnp.array([1.0]),
        }
    }
    row = Features(jnp.array([10.0, 100.0]), jnp.zeros((0,), jnp.int32))
    assert jax.jit(model.apply)(params, row) == 321.0
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    assert jax.tree.structure(params) == jax.tree.structure(shapes)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((8, 0, 0), 1281), ((4, 5, 544), 70401), ((4, 5, 564), 72961)],
    ids=["medical", "income-l", "income-a"],
)
def test_the_networks_of_the_paper_have_their_number_of_parameters(shape, expected):
    num_numeric, num_codes, num_onehot = shape
    model = models.mlp(num_numeric, num_codes, num_onehot=num_onehot)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == expected
    assert shapes["TabularDense_0"]["kernel"].shape == (num_numeric + num_onehot, 128)
    assert shapes["Dense_0"]["kernel"].shape == (128, 1)


@pytest.fixture(scope="module")
def wide():
    """Many parameters of a network with fan-ins 4 + 96 and 400."""
    model = models.mlp(4, 1, hidden=(400,), outputs=300, num_onehot=96)
    return jax.device_get(jax.jit(model.init)(jax.random.key(0)))


@pytest.mark.parametrize("part", ["kernel", "bias"])
@pytest.mark.parametrize(
    ("layer", "fan_in"), [("TabularDense_0", 4 + 96), ("Dense_0", 400)]
)
def test_torch_initialisation_is_uniform_within_one_over_root_fan_in(
    wide, layer, fan_in, part
):
    values = wide[layer][part].ravel()
    bound = 1 / np.sqrt(fan_in)
    assert np.abs(values).max() <= bound
    assert np.abs(values).max() > 0.95 * bound
    # Mean 0 and variance bound^2 / 3; a square of U(-b, b) has std b^2 * sqrt(4 / 45).
    count = len(values)
    assert abs(values.mean()) < 4 * bound / np.sqrt(3) / np.sqrt(count)
    spread = 4 * bound**2 * np.sqrt(4 / 45) / np.sqrt(count)
    assert abs(np.square(values).mean() - bound**2 / 3) < spread


def test_lecun_initialisation_has_variance_one_over_fan_in_and_no_bias():
    model = models.mlp(4, 1, hidden=(400,), num_onehot=96, initialisation="lecun")
    layer = jax.jit(model.init)(jax.random.key(0))["TabularDense_0"]
    count = layer["kernel"].size
    spread = 4 * np.sqrt(2) / 100 / np.sqrt(count)
    assert abs(np.square(layer["kernel"]).mean() - 1 / 100) < spread
    assert not layer["bias"].any()


def test_the_key_decides_the_initial_parameters():
    init = jax.jit(models.linear(3).init)
    one, again, other = (init(jax.random.key(s)) for s in (0, 0, 1))
    kernels = [np.asarray(p["TabularDense_0"]["kernel"]) for p in (one, again, other)]
    np.testing.assert_array_equal(kernels[0], kernels[1])
    assert (kernels[0] != kernels[2]).all()


def test_layers_are_drawn_independently(wide):
    first, second = wide["TabularDense_0"], wide["Dense_0"]
    correlation = np.corrcoef(first["bias"], second["kernel"][:, 0])[0, 1]
    assert abs(correlation) < 4 / np.sqrt(400)


def test_models_vmap_over_parameters():
    model = models.mlp(3, 2, hidden=(4,), num_onehot=5)
    stack = _draw(model, 3)
    row = jax.tree.map(lambda leaf: leaf[0], _ROWS)
    apply = jax.jit(model.apply)
    draws = [jax.tree.map(operator.itemgetter(i), stack) for i in range(3)]
    expected = [apply(params, row) for params in draws]
    found = jax.jit(jax.vmap(model.apply, (0, None)))(stack, row)
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-5)


def test_an_unknown_initialisation_is_refused():
    with pytest.raises(ValueError, match="'torch', 'lecun' or 'glorot', got 'he'"):
        models.mlp(3, initialisation="he").init(jax.random.key(0))


def test_hidden_layers_are_normalised_before_the_activation():
    model = models.mlp(
        3, 2, hidden=(6, 4), num_onehot=5, activation="gelu", norm="layernorm"
    )
    params = _draw(model)
    out = _dense()
    for number, (kernel, bias) in enumerate(_layers(params)[:-1]):
        out = out @ kernel + bias
        norm = params[f"LayerNorm_{number}"]
        centred = out - out.mean(axis=1, keepdims=True)
        out = centred / np.sqrt(out.var(axis=1, keepdims=True) + 1e-5)
        out = out * norm["scale"] + norm["bias"]
        out = out * stats.norm.cdf(out)
        if not number:
            first = out
    kernel, bias = _layers(params)[-1]
    found = jax.jit(jax.vmap(model.apply, (None, 0)))(params, _ROWS)
    np.testing.assert_allclose(found, (out @ kernel + bias)[:, 0], rtol=1e-4)
    kernel, bias = _layers(params)[0]
    units = model.apply.first_units(params, np.float32(_dense() @ kernel + bias))
    np.testing.assert_allclose(units, first, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["activation", "norm"])
def test_an_unknown_activation_or_norm_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}: expected one of .* got 'tanh'"):
        models.mlp(3, **{name: "tanh"})


def test_glorot_initialisation_is_kerass_and_biases_can_be_left_out():
    model = models.mlp(
        105,
        hidden=models.TWO_HIDDEN,
        outputs=2,
        initialisation="glorot",
        use_bias=False,
    )
    params = jax.jit(model.init)(jax.random.key(0))
    assert [sorted(layer) for layer in params.values()] == [["kernel"]] * 3
    kernels = [layer["kernel"] for layer in params.values()]
    assert sum(kernel.size for kernel in kernels) == 20_700
    for kernel in kernels:
        bound = np.sqrt(6 / sum(kernel.shape))
        assert 0.95 * bound < np.abs(kernel).max() <= bound


def test_two_hidden_layers_without_biases_equal_products_with_relu():
    model = models.mlp(3, hidden=(4, 5), outputs=2, use_bias=False)
    params = _draw(model)
    kernels = [params[n]["kernel"] for n in ("TabularDense_0", "Dense_0", "Dense_1")]
    row = Features(_NUMERIC[0], np.zeros(0, np.int32))
    hidden = np.maximum(row.numeric @ kernels[0], 0)
    expected = np.maximum(hidden @ kernels[1], 0) @ kernels[2]
    np.testing.assert_allclose(jax.jit(model.apply)(params, row), expected, rtol=1e-5)


def test_params_as_a_transcript_has_them_serve_outside_of_a_program():
    model = models.mlp(3, 2, hidden=(6,), num_onehot=5)
    params, row = _draw(model), Features(_NUMERIC[0], _CODES[0])
    whole = model.apply(params, row)
    public = row._replace(numeric=row.numeric[:2])
    assert np.isfinite(whole) and model.apply.begin(params, public).shape == (6,)

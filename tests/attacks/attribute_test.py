"""Model-based attribute inference: planted truths, bounds, and what must not matter."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import losses, models
from fljax.attacks import attribute
from fljax.types import Features, Known


def _loss(params, x, y):
    return jnp.square(jnp.sum(x.numeric * params["w"]) + params["b"] - y)


def _known(public, y, mask=None):
    public, y = jnp.asarray(public, jnp.float32), jnp.asarray(y, jnp.float32)
    codes = jnp.zeros((len(y), 0), jnp.int32)
    mask = jnp.ones(len(y), bool) if mask is None else jnp.asarray(mask)
    return Known(Features(public, codes), y, mask)


def _planted(candidates, seed=0, num_rows=50):
    """A linear model that fits every row exactly; returns known, params, truth."""
    rng = np.random.default_rng(seed)
    candidates = np.asarray(candidates)
    truth = rng.integers(0, len(candidates), num_rows)
    public = rng.normal(size=(num_rows, 3))
    x = np.concatenate([public, candidates[truth]], axis=1)
    w, b = rng.normal(size=x.shape[1]), 0.5
    w[3:] = 1.5 - 0.8 * np.arange(candidates.shape[1])
    params = {"w": jnp.asarray(w, jnp.float32), "b": jnp.float32(b)}
    return _known(public, x @ w + b), params, truth


_CANDIDATES = {
    "binary": [[0.0], [1.0]],
    "standardised": [[-0.504], [1.984]],
    "three values in two columns": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
    "four values in one column": [[-1.0], [0.0], [1.0], [3.0]],
}


@pytest.mark.parametrize("candidates", _CANDIDATES.values(), ids=_CANDIDATES)
def test_a_planted_linear_model_gives_every_row_away(candidates):
    known, params, truth = _planted(candidates)
    found = attribute.model_based(_loss, params, known, jnp.array(candidates))
    np.testing.assert_array_equal(found.index, truth)
    assert found.index.dtype == jnp.int32


def test_a_linear_classifier_gives_no_more_than_the_label_away():
    """Diana et al. (2025), section 6: cross-entropy falls with the logit of the label."""
    known, params, _ = _planted([[0.0], [1.0]])
    known = known._replace(y=(known.y > 0).astype(jnp.float32))
    assert 10 < known.y.sum() < 40

    def loss(params, x, y):
        logit = jnp.sum(x.numeric * params["w"]) + params["b"]
        return losses.logistic(logit, y)

    for sign in (1.0, -1.0):  # of the attribute's coefficient
        told = params | {"w": params["w"].at[3].set(sign)}
        found = attribute.model_based(loss, told, known, jnp.array([[0.0], [1.0]]))
        by_label = known.y if sign > 0 else 1 - known.y
        np.testing.assert_array_equal(found.index, by_label)


def test_a_model_of_other_rows_does_no_better_than_chance():
    known, params, truth = _planted([[0.0], [1.0]], num_rows=400)
    wrong = params | {"w": -params["w"]}
    found = attribute.model_based(_loss, wrong, known, jnp.array([[0.0], [1.0]]))
    accuracy = np.mean(np.asarray(found.index) == truth)
    assert accuracy < 0.5 + 4 * 0.5 / np.sqrt(400)


def test_the_losses_are_those_of_each_row_under_each_candidate():
    known = _known([[1.0], [2.0]], [3.0, 1.0])
    params = {"w": jnp.array([1.0, 2.0]), "b": jnp.float32(0.0)}
    found = attribute.model_based(_loss, params, known, jnp.array([[0.0], [1.0]]))
    np.testing.assert_array_equal(found.losses, [[4.0, 0.0], [1.0, 9.0]])
    np.testing.assert_array_equal(found.index, [1, 0])


def test_ties_go_to_the_first_candidate():
    known, params, _ = _planted([[0.0], [1.0]])
    blind = params | {"w": params["w"].at[3].set(0.0)}
    candidates = jnp.array([[1.0], [0.0], [2.0]])
    found = attribute.model_based(_loss, blind, known, candidates)
    np.testing.assert_array_equal(found.index, 0)


def test_the_sensitive_block_is_the_last_columns():
    public = Features(jnp.ones((2, 3)), jnp.array([[4], [5]]))
    whole = attribute.complete(public, jnp.full((2, 2), 7.0))
    np.testing.assert_array_equal(whole.numeric, [[1, 1, 1, 7, 7]] * 2)
    np.testing.assert_array_equal(whole.codes, [[4], [5]])


def test_what_is_concealed_and_completed_is_the_row_again():
    x = Features(jnp.arange(30.0).reshape(2, 3, 5), jnp.zeros((2, 3, 1), jnp.int32))
    y, mask = jnp.ones((2, 3)), jnp.array([[True, True, False]] * 2)
    known = attribute.conceal(x, y, mask, width=2)
    assert known.public.numeric.shape == (2, 3, 3)
    np.testing.assert_array_equal(known.mask, mask)
    whole = attribute.complete(known.public, x.numeric[..., 3:])
    np.testing.assert_array_equal(whole.numeric, x.numeric)
    np.testing.assert_array_equal(whole.codes, x.codes)


def test_padding_rows_change_nothing_for_the_others():
    known, params, truth = _planted([[0.0], [1.0]])
    public = known.public.numeric.at[40:].set(jnp.nan)
    padded = _known(public, known.y.at[40:].set(jnp.nan), np.arange(50) < 40)
    found = attribute.model_based(_loss, params, padded, jnp.array([[0.0], [1.0]]))
    np.testing.assert_array_equal(found.index[:40], truth[:40])


def test_a_network_with_categorical_columns_is_attacked_alike():
    model = models.mlp(2, 1, hidden=(8,), num_onehot=4)
    params = jax.jit(model.init)(jax.random.key(0))
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 40)
    numeric = np.stack([rng.normal(size=40), truth], axis=1).astype(np.float32)
    codes = jnp.asarray(rng.integers(0, 5, (40, 1)), jnp.int32)
    apply = jax.jit(jax.vmap(model.apply, (None, 0)))
    y = apply(params, Features(jnp.asarray(numeric), codes))
    known = Known(Features(jnp.asarray(numeric[:, :1]), codes), y, jnp.ones(40, bool))
    loss_fn = losses.example_loss(model.apply, losses.squared)
    found = attribute.model_based(loss_fn, params, known, jnp.array([[0.0], [1.0]]))
    np.testing.assert_array_equal(found.index, truth)


def test_the_attack_vmaps_over_models():
    known, params, _ = _planted([[0.0], [1.0]])
    blind = params | {"w": params["w"].at[3].set(0.0)}
    stack = jax.tree.map(lambda a, b: jnp.stack([a, b]), params, blind)
    candidates = jnp.array([[0.0], [1.0]])

    def attack(params):
        return attribute.model_based(_loss, params, known, candidates).index

    found = jax.jit(jax.vmap(attack))(stack)
    np.testing.assert_array_equal(found[0], attack(params))
    np.testing.assert_array_equal(found[1], 0)


def _continuous(values):
    """Rows whose sensitive value is given, under a planted linear model."""
    values = np.asarray(values)
    public = np.linspace(-1, 1, len(values))[:, None]
    params = {"w": jnp.array([0.5, -2.0]), "b": jnp.float32(0.25)}
    return _known(public, 0.5 * public[:, 0] - 2 * values + 0.25), params


@pytest.mark.parametrize(("num_points", "num_zooms"), [(5, 0), (5, 2), (9, 3), (33, 4)])
def test_a_planted_continuous_value_is_found_within_a_cell(num_points, num_zooms):
    values = np.linspace(-3.0, 5.0, 41)
    known, params = _continuous(values)
    found = attribute.model_based_continuous(
        _loss,
        params,
        known,
        jnp.array([[-3.0], [5.0]]),
        num_points=num_points,
        num_zooms=num_zooms,
    )
    cell = 8.0 * (2 / (num_points - 1)) ** num_zooms / (num_points - 1)
    # 4e-6 is the resolution of float32 at these targets.
    np.testing.assert_allclose(found, values, rtol=0, atol=cell + 4e-6)


def test_values_beyond_the_bounds_are_given_as_the_bounds():
    known, params = _continuous([-9.0, 0.5, 9.0])
    found = attribute.model_based_continuous(
        _loss, params, known, jnp.array([[-1.0], [1.0]])
    )
    np.testing.assert_allclose(found, [-1.0, 0.5, 1.0], rtol=0, atol=1e-5)
    assert (np.abs(found) <= 1).all()


def test_a_model_that_is_no_number_says_nothing_of_a_value():
    known, params = _continuous([-0.5, 0.5])
    params = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), params)
    bounds = jnp.array([[-1.0], [1.0]])
    found = attribute.model_based_continuous(_loss, params, known, bounds)
    assert np.isnan(found).all()


def test_the_deepest_of_two_basins_is_found():
    def loss_fn(params, x, y):
        del params, y
        s = x.numeric[-1]
        return jnp.square(s - 0.8) * (jnp.square(s + 0.7) + 0.05)

    known = _known([[0.0]], [0.0])
    found = attribute.model_based_continuous(
        loss_fn, {}, known, jnp.array([[-1.0], [1.0]])
    )
    np.testing.assert_allclose(found, [0.8], atol=1e-4)


_binary_attack = jax.jit(
    lambda params, known, pair: attribute.model_based(_loss, params, known, pair).index
)


@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(
    seed=st.integers(0, 2**31),
    weight=st.floats(-4, 4),
    noise=st.floats(0.05, 2),
    low=st.floats(-2, 2),
    gap=st.floats(0.1, 5),
)
def test_the_bound_never_exceeds_the_accuracy(seed, weight, noise, low, gap):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 20)
    x = np.concatenate([rng.normal(size=(20, 3)), (low + gap * truth)[:, None]], axis=1)
    w = np.append(rng.normal(size=3), weight)
    y = x @ w + noise * rng.normal(size=20)
    params = {"w": jnp.asarray(w, jnp.float32), "b": jnp.float32(0.0)}
    pair = jnp.array([[low], [low + gap]], jnp.float32)
    found = _binary_attack(params, _known(x[:, :3], y), pair)
    accuracy = np.mean(np.asarray(found) == truth)
    error = np.mean((x @ w - y) ** 2)
    bound = attribute.least_squares_bound(
        jnp.float32(error), jnp.float32(weight), jnp.float32(gap)
    )
    assert 0 <= bound <= accuracy + 1e-5


@pytest.mark.parametrize("gap", [0.1, 1.0, 2.488])
def test_the_bound_does_not_depend_on_the_encoding(gap):
    # A column in a unit `gap` times as large has a coefficient so much smaller.
    found = attribute.least_squares_bound(
        jnp.float32(0.09), jnp.float32(1.5 / gap), jnp.float32(gap)
    )
    assert found == pytest.approx(1 - 4 * 0.09 / 1.5**2, rel=1e-5)


@pytest.mark.parametrize(
    ("error", "weight", "expected"),
    [(0.0, 1.0, 1.0), (1.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)],
    ids=["perfect model", "poor model", "attribute unused", "perfect without it"],
)
def test_the_bound_at_its_edges(error, weight, expected):
    found = attribute.least_squares_bound(
        jnp.float32(error), jnp.float32(weight), jnp.float32(1.0)
    )
    assert found == expected

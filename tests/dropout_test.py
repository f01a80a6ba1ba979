"""The mean loss of a network whose units are dropped, and what simulates it."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import dropout, losses, models, per_example
from fljax.attacks.trajectory import fields, relaxation
from fljax.types import Begun, Features, Known

_ROWS, _INPUTS, _UNITS, _RATE = 40, 5, 6, 0.3
MODEL = models.mlp(_INPUTS, hidden=(_UNITS,))
LOSS = losses.example_loss(MODEL.apply, losses.squared)


def _rows(seed=0):
    rng = np.random.default_rng(seed)
    x = Features(
        jnp.asarray(rng.normal(size=(_ROWS, _INPUTS)), jnp.float32),
        jnp.zeros((_ROWS, 0), jnp.int32),
    )
    return x, jnp.asarray(rng.normal(size=_ROWS), jnp.float32)


def _exact(params, x, y):
    """The squared loss and the variance of the output, which is linear in what is kept."""
    first, last = params["TabularDense_0"], params["Dense_0"]

    def one(x, y):
        units = jax.nn.relu(x.numeric @ first["kernel"] + first["bias"])
        terms = units * last["kernel"][:, 0]
        output = terms.sum() + last["bias"][0]
        return (output - y) ** 2 + _RATE / (1 - _RATE) * (terms**2).sum()

    return jax.vmap(one)(x, y)


def test_the_mean_over_draws_is_that_of_every_mask():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    loss = dropout.MeanLoss(LOSS, _RATE, draws=20_000)
    found = jax.jit(jax.vmap(loss, (None, 0, 0)))(params, x, y)
    exact = _exact(params, x, y)
    plain = jax.vmap(LOSS, (None, 0, 0))(params, x, y)
    assert np.abs(found - exact).max() < 0.2 * np.abs(plain - exact).max()


def test_gradients_are_those_of_the_mean_over_rows():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    loss = dropout.MeanLoss(LOSS, _RATE, draws=1000)

    def gradient(of):
        mean = jax.grad(lambda params: of(params).mean())
        return jax.flatten_util.ravel_pytree(jax.jit(mean)(params))[0]

    found = gradient(lambda params: jax.vmap(loss, (None, 0, 0))(params, x, y))
    exact = gradient(lambda params: _exact(params, x, y))
    plain = gradient(lambda params: jax.vmap(LOSS, (None, 0, 0))(params, x, y))
    np.testing.assert_array_less(
        jnp.linalg.norm(found - exact), 0.2 * jnp.linalg.norm(plain - exact)
    )


def test_rows_and_parameters_have_draws_of_their_own():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    numbers = jax.jit(jax.vmap(dropout.MeanLoss(LOSS, 0.5)._numbers, (None, 0, 0)))
    first, moved = numbers(params, x, y), jax.tree.map(lambda leaf: leaf + 1e-6, params)
    assert len(np.unique(first[:, 0])) > 0.9 * _ROWS
    assert np.mean(numbers(moved, x, y)[:, 0] == first[:, 0]) < 0.2


@pytest.mark.slow
def test_candidates_of_a_row_share_their_draws():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    loss = dropout.MeanLoss(LOSS, 0.5, block=1)
    other = x._replace(numeric=x.numeric.at[:, -1].set(7.0))
    numbers = jax.vmap(loss._numbers, (None, 0, 0))
    np.testing.assert_array_equal(numbers(params, x, y), numbers(params, other, y))
    begun = [
        Begun(jnp.ones((_ROWS, _UNITS)), jnp.full((_ROWS, 1), v)) for v in (0.0, 1)
    ]
    np.testing.assert_array_equal(*(numbers(params, each, y) for each in begun))


def test_examples_draw_by_draw_have_the_mean_and_are_wider():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    loss = dropout.MeanLoss(LOSS, 0.5, draws=3)

    @jax.jit
    def both(params, x, y):
        of, inputs, targets = loss.drawn(params, x, y)
        drawn = per_example.gradients(of, params, inputs, targets)
        means = per_example.gradients(loss, params, x, y)
        return len(drawn.values), [_over(each) for each in (drawn, means)]

    count, ((mean, wide), (same, narrow)) = both(params, x, y)
    np.testing.assert_allclose(mean, same, atol=1e-6)
    assert count == 3 * _ROWS and wide.sum() > 1.1 * narrow.sum()


def _over(each):
    """Means over examples of gradients and of their squares, flat."""
    like = jax.tree.map(lambda leaf: jnp.ones(len(leaf)) / len(leaf), each.squares)
    totals = each.weighted_sum(like), each.weighted_squares(like)
    return [jax.flatten_util.ravel_pytree(total)[0] for total in totals]


def test_a_client_that_clips_clips_what_it_draws():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    loss = dropout.MeanLoss(LOSS, 0.5, block=1, draws=2)
    known = Known(x._replace(numeric=x.numeric[:, :-1]), y, jnp.arange(_ROWS) < 30)
    both = jnp.array([[0.0], [1.0]])
    values = jnp.full((_ROWS, 2), 0.5)
    soft = relaxation.categorical(loss, known, both)
    field = fields.clipped(loss, known, soft, "total", jnp.asarray(0.5), unravel)

    @jax.jit
    def of_value(value):
        numeric = x.numeric.at[:, -1].set(value)
        of, inputs, targets = loss.drawn(params, x._replace(numeric=numeric), y)
        each = jax.vmap(jax.grad(of), (None, 0, 0))(params, inputs, targets)
        each = jax.vmap(lambda tree: jax.flatten_util.ravel_pytree(tree)[0])(each)
        norms = jnp.linalg.norm(each, axis=1, keepdims=True)
        return (each * jnp.minimum(1, 0.5 / norms))[: 2 * 30].sum(axis=0)

    total = of_value(0.0) + of_value(1.0)
    found = jax.jit(field.slope)(flat, values)
    np.testing.assert_allclose(found, total / (2 * 60), atol=1e-5)


@pytest.mark.slow
def test_all_rows_in_a_step_vary_with_what_is_dropped():
    params, (x, y) = MODEL.init(jax.random.key(1)), _rows()
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    loss = dropout.MeanLoss(LOSS, 0.5, block=1, draws=300)
    known = Known(x._replace(numeric=x.numeric[:, :-1]), y, jnp.ones(_ROWS, bool))
    soft = relaxation.categorical(loss, known, jnp.array([[0.0], [1.0]]))
    found = fields.of_batch(loss, known, soft, 0, unravel)
    found = found(flat, jnp.eye(2)[jnp.zeros(_ROWS, int)])
    zero = x._replace(numeric=x.numeric.at[:, -1].set(0.0))
    of, inputs, targets = loss.drawn(params, zero, y)
    each = jax.vmap(jax.grad(of), (None, 0, 0))(params, inputs, targets)
    each = jax.vmap(lambda tree: jax.flatten_util.ravel_pytree(tree)[0])(each)
    wanted = each.reshape(_ROWS, loss.draws, -1).var(axis=1).mean(axis=0) / _ROWS
    assert float(found.sum()) == pytest.approx(float(wanted.sum()), rel=0.35)


@pytest.mark.parametrize("kind", ["binary", "signs", "codes", "copies"])
def test_rows_of_round_numbers_have_masks_of_their_own(kind):
    rng, rows = np.random.default_rng(0), 200
    numeric = rng.integers(0, 2, (rows, 12)).astype(np.float32)
    numeric = {"signs": 2 * numeric - 1, "copies": np.ones_like(numeric)}.get(
        kind, numeric
    )
    codes = (
        rng.integers(0, 3, (rows, 9)) if kind == "codes" else np.zeros((rows, 0), int)
    )
    x = Features(jnp.asarray(numeric), jnp.asarray(codes))
    numbers = jax.jit(jax.vmap(dropout.MeanLoss(LOSS, 0.5)._numbers, (None, 0, 0)))
    found = numbers(MODEL.init(jax.random.key(1)), x, jnp.zeros(rows))
    different = len({*zip(*np.asarray(found).T.tolist(), strict=True)})
    assert different == (1 if kind == "copies" else len(np.unique(_all(x), axis=0)))
    assert len(np.unique(found[0])) > 1


def _all(x):
    return np.concatenate([x.numeric, x.codes], axis=1)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_each_unit_is_kept_equally_often(rate):
    kept = dropout._masks(rate, (50,), (0, 7, 1)).mean(axis=0)
    np.testing.assert_allclose(kept, 1 - rate, atol=1 / 1024)
    assert (
        dropout._masks(rate, (50,), (1, 7, 1)) != dropout._masks(rate, (50,), (0, 7, 1))
    ).any()


class _Twice(nn.Module):
    """A layer of dropout that is called twice."""

    @nn.compact
    def __call__(self, x):
        drop = nn.Dropout(0.5, deterministic=True)
        return jnp.stack([drop(inputs=x), drop(x)])


@pytest.mark.slow
def test_a_layer_that_is_called_twice_drops_other_units():
    model = models.from_flax(_Twice(), jnp.zeros(30))
    loss = dropout.MeanLoss(
        lambda params, x, y: jnp.abs(jnp.diff(model.apply(params, x), axis=0)).sum(),
        0.5,
    )
    assert loss({}, jnp.ones(30), 0.0) > 10


def test_a_model_that_drops_nothing_is_refused():
    model = models.mlp(_INPUTS, hidden=())
    loss = dropout.MeanLoss(losses.example_loss(model.apply, losses.squared), 0.5)
    row, y = jax.tree.map(lambda leaf: leaf[0], _rows())
    with pytest.raises(ValueError, match="expected nn.Dropout layers"):
        loss(model.init(jax.random.key(0)), row, y)


@pytest.mark.parametrize(("hidden", "has"), [((), False), ((4,), True), ((4, 3), True)])
def test_networks_with_hidden_layers_have_what_can_be_dropped(hidden, has):
    model = models.mlp(_INPUTS, hidden=hidden)
    row = jax.tree.map(lambda leaf: leaf[0], _rows()[0])
    params = model.init(jax.random.key(0))
    assert [dropout.drops(model.apply, params, row) for _ in range(2)] == [has, has]

"""Shadow clients: their label proportions, their rows and their training."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from fljax import local
from fljax.attacks.label_distribution import shadow_clients

_COUNT = 24  # clients of a chunk: one size, one program


def _few(count, seed=5):
    shares, _ = shadow_clients.dirichlet(jax.random.key(seed), (0.1, 1.0), count, 10)
    return shares


@pytest.fixture
def trained(digits, program):
    """Trains a client per row of shares."""

    def train_all(shares, size=_COUNT, lanes=4, devices=2, scale=0.0):
        found = shadow_clients.chunks(
            program(lanes, devices), jax.random.key(1), np.arange(len(shares)), shares,
            digits.sent, digits.proxy, jnp.float32(scale), size=size,
        )  # fmt: skip
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)

    return train_all


def test_proportions_are_distributions_of_the_stated_concentration():
    shares, alphas = shadow_clients.dirichlet(
        jax.random.key(0), (0.1, 1000.0), 2000, 10
    )
    assert shares.shape == (2000, 10)
    assert alphas.tolist()[:4] == np.float32([0.1, 1000, 0.1, 1000]).tolist()
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-5)
    assert (shares >= 0).all()
    for alpha in (0.1, 1000.0):
        # Variance of a symmetric Dirichlet's entry: (K - 1) / (K^2 (K alpha + 1)).
        expected = 9 / (100 * (10 * alpha + 1))
        found = np.var(shares[alphas == np.float32(alpha)])
        assert 0.85 * expected < found < 1.15 * expected


def test_a_pool_is_sorted_and_wants_rows_of_each_label():
    made = shadow_clients.pool(np.arange(5), np.array([2, 0, 1, 2, 0]), 3)
    assert made.x.tolist() == [1, 4, 2, 0, 3]
    assert made.first.tolist() == [0, 2, 3]
    assert made.count.tolist() == [2, 1, 2]
    with pytest.raises(ValueError, match="none of 1"):
        shadow_clients.pool(np.arange(2), np.array([0, 2]), 3)
    with pytest.raises(ValueError, match="labels in 0 to 1"):
        shadow_clients.pool(np.arange(2), np.array([0, 2]), 2)


@pytest.mark.slow
def test_labels_follow_the_proportions(trained):
    share = np.zeros(10, np.float32)
    share[3], share[7] = 0.8, 0.2
    labels = trained(np.tile(share, (_COUNT, 1))).labels
    np.testing.assert_allclose(labels.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(labels[:, 3] + labels[:, 7], 1, rtol=1e-6)
    assert abs(labels[:, 3].mean() - 0.8) < 4 * np.sqrt(0.16 / (72 * _COUNT))
    assert labels[:, 3].std() > 0


@pytest.mark.slow
def test_many_clients_are_a_loop_over_one(digits, recipe, train, trained):
    """With a smaller last batch and two epochs."""
    shares = _few(6)
    many = trained(shares)
    assert many.labels.shape == (6, 10)
    for i in (0, 5):
        key = jax.random.fold_in(jax.random.key(1), i)
        one = train(key, shares[i], digits.sent, digits.proxy, recipe(), jnp.float32(0))
        np.testing.assert_allclose(many.delta[i], one.delta, atol=1e-6)
        np.testing.assert_array_equal(many.labels[i], one.labels)


@pytest.mark.slow
def test_the_last_batch_is_dropped_where_it_is_smaller(digits, recipe, train):
    told = jax.random.key(3), jax.nn.one_hot(4, 10), digits.sent, digits.proxy
    dropped = recipe(72, 16, 1)._replace(drop_last=True)
    assert (recipe(72, 16, 1).steps, dropped.steps) == (5, 4)
    of_64 = train(*told, recipe(64, 16, 1), jnp.float32(0)).delta
    found = train(*told, dropped, jnp.float32(0)).delta
    whole = train(*told, recipe(72, 16, 1), jnp.float32(0)).delta
    size = [np.linalg.norm(each) for each in (of_64, found, whole)]
    assert size[1] == pytest.approx(size[0], rel=0.1) and size[2] > 1.1 * size[1]


@pytest.mark.slow
def test_chunks_lanes_and_devices_do_not_matter(trained):
    shares = _few(30)
    whole = trained(shares)
    other = trained(shares, size=16, lanes=2, devices=1)
    np.testing.assert_allclose(whole.delta, other.delta, atol=1e-6)
    np.testing.assert_array_equal(whole.labels, other.labels)


@pytest.mark.slow
def test_a_full_batch_of_one_row_is_a_gradient_step(
    digits, recipe, train, one_row_each, rate
):
    told = digits.sent, one_row_each, recipe(40, 40, 1), jnp.float32(0)
    found = train(jax.random.key(0), jax.nn.one_hot(4, 10), *told)
    x = jax.tree.map(lambda leaf: leaf[4], one_row_each.x)
    expected = ravel_pytree(jax.grad(digits.loss_fn)(digits.sent, x, 4))[0] * rate
    np.testing.assert_allclose(found.delta, expected, atol=1e-6)


def test_numbers_of_a_recipe_are_traced(trained):
    shares = _few(4)
    clean, noisy = (trained(shares, scale=scale).delta for scale in (0.0, 0.5))
    added = noisy - clean
    assert abs(added.std() - 0.5) < 4 * 0.5 / np.sqrt(2 * added.size)
    assert not np.allclose(added[0], added[1])


def test_a_number_of_clients_that_lanes_do_not_divide_is_refused(digits, program):
    with pytest.raises(ValueError, match="multiple of 4 lanes"):
        program()(jax.random.key(0), np.arange(3), _few(3), digits.sent, digits.proxy)


@pytest.mark.slow
def test_what_changes_over_rounds_is_that_of_its_round(digits, train, rate):
    def local_of(_):
        return local.sgd(
            digits.loss_fn, optax.sgd(rate),
            encode=lambda key, delta, sender: jax.tree.map(
                lambda leaf: leaf * sender.round, delta
            ),
        )  # fmt: skip

    sent = [
        train(
            jax.random.key(0), np.full(10, 0.1, np.float32), digits.sent, digits.proxy,
            recipe=shadow_clients.Recipe(local_of, 32, 16, round=round_),
        ).delta
        for round_ in (1, 3)
    ]  # fmt: skip
    np.testing.assert_allclose(sent[1], 3 * sent[0], rtol=1e-6)

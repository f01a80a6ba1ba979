"""Label-distribution inference: its parts, and all of it on digits."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from fljax import data, losses, models, parallel, rounds, schedule, transcript
from fljax import local as local_lib
from fljax.attacks import label_distribution
from fljax.attacks.label_distribution import dummies, pca, predictor, rules
from fljax.defenses import noise
from fljax.types import Features, Rows

_RATE = 0.01
_SMALL = label_distribution.Settings(
    alphas=(0.1, 1.0, 10.0),
    num_basis=96,
    num_fit=480,
    kept=64,
    chunk=24,
    predictor=predictor.Settings(hidden=(64, 64), epochs=40, learning_rate=3e-3),
)


_train = jax.jit(dummies.train, static_argnames="recipe")
_COUNT = 24  # clients of a chunk: one size, one program


def _features(x):
    flat = np.asarray(x, np.float32).reshape(len(x), -1) / 16
    return Features(flat, np.zeros((len(x), 0), np.int32))


@functools.cache
def _digits():
    """Loss, sent parameters, proxy pool and the clients' pool, of one size."""
    images = data.load_images("digits")
    x, y = images.train
    model = models.mlp(64, hidden=(32,), outputs=10)
    proxy = dummies.pool(_features(x[:700]), y[:700], 10)
    own = dummies.pool(_features(x[700:1400]), y[700:1400], 10)
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    return loss_fn, jax.jit(model.init)(jax.random.key(0)), proxy, own


@functools.cache
def _recipe(rows=72, batch_size=16, epochs=2):
    """Its number is the deviation of noise on the message."""
    loss_fn = _digits()[0]

    def local(scale):
        noisy = noise.gaussian(scale).encode
        return local_lib.sgd(loss_fn, optax.sgd(_RATE), encode=noisy)

    return dummies.Recipe(local, rows, batch_size, epochs)


@functools.cache
def _program(lanes=4, devices=2):
    return dummies.compiled(_recipe(), parallel.mesh(devices), lanes)


def _few(count, seed=5):
    shares, _ = dummies.dirichlet(jax.random.key(seed), (0.1, 1.0), count, 10)
    return shares


def _trained(shares, size=_COUNT, lanes=4, devices=2, scale=0.0):
    _, sent, proxy, _ = _digits()
    found = dummies.chunks(
        _program(lanes, devices), jax.random.key(1), np.arange(len(shares)), shares,
        sent, proxy, jnp.float32(scale), size=size,
    )  # fmt: skip
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)


def _one_row_each():
    """A pool with a single row of each label."""
    proxy = _digits()[2]
    x = jax.tree.map(lambda leaf: leaf[proxy.first], proxy.x)
    return dummies.pool(x, np.arange(10), 10)


def _spans(first, second):
    """Whether rows span the same space: cosines of all principal angles."""
    return np.linalg.svd(np.asarray(first) @ np.asarray(second).T, compute_uv=False)


# ---- dummy clients


def test_proportions_are_distributions_of_the_stated_concentration():
    shares, alphas = dummies.dirichlet(jax.random.key(0), (0.1, 1000.0), 2000, 10)
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
    made = dummies.pool(np.arange(5), np.array([2, 0, 1, 2, 0]), 3)
    assert made.x.tolist() == [1, 4, 2, 0, 3]
    assert made.first.tolist() == [0, 2, 3]
    assert made.count.tolist() == [2, 1, 2]
    with pytest.raises(ValueError, match="none of 1"):
        dummies.pool(np.arange(2), np.array([0, 2]), 3)
    with pytest.raises(ValueError, match="labels in 0 to 1"):
        dummies.pool(np.arange(2), np.array([0, 2]), 2)


def test_labels_follow_the_proportions():
    share = np.zeros(10, np.float32)
    share[3], share[7] = 0.8, 0.2
    labels = _trained(np.tile(share, (_COUNT, 1))).labels
    np.testing.assert_allclose(labels.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(labels[:, 3] + labels[:, 7], 1, rtol=1e-6)
    assert abs(labels[:, 3].mean() - 0.8) < 4 * np.sqrt(0.16 / (72 * _COUNT))
    assert labels[:, 3].std() > 0


def test_many_clients_are_a_loop_over_one():
    """With a smaller last batch and two epochs."""
    _, sent, proxy, _ = _digits()
    shares = _few(6)
    many = _trained(shares)
    assert many.labels.shape == (6, 10)
    for i in (0, 5):
        key = jax.random.fold_in(jax.random.key(1), i)
        one = _train(key, shares[i], sent, proxy, _recipe(), jnp.float32(0))
        np.testing.assert_allclose(many.delta[i], one.delta, atol=1e-6)
        np.testing.assert_array_equal(many.labels[i], one.labels)


def test_chunks_lanes_and_devices_do_not_matter():
    shares = _few(30)
    whole = _trained(shares)
    other = _trained(shares, size=16, lanes=2, devices=8)
    np.testing.assert_allclose(whole.delta, other.delta, atol=1e-6)
    np.testing.assert_array_equal(whole.labels, other.labels)


def test_a_full_batch_of_one_row_is_a_gradient_step():
    loss_fn, sent, _, _ = _digits()
    single, recipe = _one_row_each(), _recipe(40, 40, 1)
    told = sent, single, recipe, jnp.float32(0)
    found = _train(jax.random.key(0), jax.nn.one_hot(4, 10), *told)
    x = jax.tree.map(lambda leaf: leaf[4], single.x)
    expected = ravel_pytree(jax.grad(loss_fn)(sent, x, 4))[0] * _RATE
    np.testing.assert_allclose(found.delta, expected, atol=1e-6)


def test_numbers_of_a_recipe_are_traced():
    shares = _few(4)
    clean, noisy = (_trained(shares, scale=scale).delta for scale in (0.0, 0.5))
    added = noisy - clean
    assert abs(added.std() - 0.5) < 4 * 0.5 / np.sqrt(2 * added.size)
    assert not np.allclose(added[0], added[1])


def test_a_number_of_clients_that_lanes_do_not_divide_is_refused():
    _, sent, proxy, _ = _digits()
    with pytest.raises(ValueError, match="multiple of 4 lanes"):
        _program()(jax.random.key(0), np.arange(3), _few(3), sent, proxy)


# ---- principal components


def _messages(count=60, size=200, seed=0):
    rng = np.random.default_rng(seed)
    spread = 10.0 ** -np.linspace(0, 6, count)
    left = np.linalg.qr(rng.normal(size=(count, count)))[0]
    right = np.linalg.qr(rng.normal(size=(size, count)))[0]
    return np.float32(1e-4 * ((left * spread) @ right.T + rng.normal(size=size)))


def _streamed(messages, chunk, kept, components=5):
    sketch = pca.start(kept, messages.shape[1])
    for begin in range(0, len(messages), chunk):
        sketch = pca.update(sketch, jnp.asarray(messages[begin : begin + chunk]))
    return pca.basis(sketch, components)


def _exact(messages, components=5):
    centred = np.float64(messages) - np.float64(messages).mean(0)
    _, singular, right = np.linalg.svd(centred, full_matrices=False)
    deviation = singular[:components] / np.sqrt(len(messages) - 1)
    return messages.mean(0), right[:components], deviation


@pytest.mark.parametrize("kept", [60, 20], ids=["nothing is cut", "cut"])
@pytest.mark.parametrize("chunk", [1, 7, 30, 60])
def test_streamed_components_are_the_exact_ones(kept, chunk):
    messages = _messages()
    found = _streamed(messages, chunk, kept)
    mean, directions, deviation = _exact(messages)
    np.testing.assert_allclose(found.mean, mean, atol=1e-9)
    np.testing.assert_allclose(found.deviation, deviation, rtol=1e-3)
    assert _spans(found.directions, directions).min() > 1 - 1e-5
    gram = np.asarray(found.directions @ found.directions.T)
    np.testing.assert_allclose(gram, np.eye(5), atol=1e-3)


def test_components_along_which_nothing_varies_are_zero():
    messages = np.outer([1.0, 2, 4], np.ones(8)).astype(np.float32)
    found = pca.fit(messages, 3)
    assert found.deviation[1:].tolist() == [0, 0]
    along = np.asarray(pca.project(found, jnp.asarray(messages)))
    assert np.var(along, axis=0, ddof=1).mean() == pytest.approx(1, rel=1e-5)
    assert not along[:, 1:].any()


def test_more_components_than_are_held_are_refused():
    with pytest.raises(ValueError, match="components must be in 1 to 4, got 5"):
        pca.basis(pca.start(4, 8), 5)


# ---- rules


def test_the_last_layer_rule_is_exact_for_a_full_batch_step_from_zero_weights():
    model = models.linear(6, outputs=4)
    sent = jax.tree.map(jnp.zeros_like, model.init(jax.random.key(0)))
    rng = np.random.default_rng(0)
    x = Features(
        rng.normal(size=(40, 6)).astype(np.float32), np.zeros((40, 0), np.int32)
    )
    made = dummies.pool(x, np.arange(40) % 4, 4)
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    recipe = dummies.Recipe(
        lambda _: local_lib.sgd(loss_fn, optax.sgd(_RATE)), rows=50, batch_size=50
    )
    share = jnp.array([0.6, 0.3, 0.1, 0.0])
    found = _train(jax.random.key(3), share, sent, made, recipe)
    assert found.labels[0] > found.labels[2]
    bias = rules.span(sent, "TabularDense_0", "bias")
    gradients = rules.mean_gradients(loss_fn, sent, made)
    guess = rules.last_layer(
        found.delta[None, bias], gradients[:, bias], _RATE * recipe.steps
    )
    np.testing.assert_allclose(guess[0], found.labels, atol=1e-5)


def test_class_gradients_are_exact_where_a_label_has_one_row_whatever_the_scale():
    loss_fn, sent, _, _ = _digits()
    single, recipe = _one_row_each(), _recipe(40, 40, 1)
    gradients = rules.mean_gradients(loss_fn, sent, single)
    found = _train(jax.random.key(0), _few(2)[1], sent, single, recipe, jnp.float32(0))
    for scale in (1.0, 1e-3):
        guess = rules.class_gradients(scale * found.delta[None], gradients)[0]
        np.testing.assert_allclose(guess, found.labels, atol=1e-3)


def test_a_place_in_a_message_is_found_by_name():
    sent = _digits()[1]
    place = rules.span(sent, "Dense_0", "bias")
    np.testing.assert_array_equal(ravel_pytree(sent)[0][place], sent["Dense_0"]["bias"])
    with pytest.raises(ValueError, match="Dense_9/bias"):
        rules.span(sent, "Dense_9", "bias")


def test_what_is_no_distribution_becomes_one():
    found = rules.to_simplex(jnp.array([[2.0, -1, 2], [-1, -1, -1], [jnp.nan, 1, 0]]))
    third = 1 / 3
    expected = [[0.5, 0, 0.5], [third, third, third], [0, 1, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# ---- all of it


def _distance(guess, truth):
    return 0.5 * np.abs(np.asarray(guess) - np.asarray(truth)).sum(1)


@functools.cache
def _attacked():
    _, sent, proxy, own = _digits()
    told = sent, proxy, _program(), jnp.float32(0)
    found = [
        label_distribution.fit(jax.random.key(9), *told, settings=_SMALL)
        for _ in range(2)
    ]
    shares, _ = dummies.dirichlet(jax.random.key(4), _SMALL.alphas, 60, 10)
    victims = dummies.chunks(
        _program(), jax.random.key(5), np.arange(60), shares, sent, own,
        jnp.float32(0), size=_COUNT,
    )  # fmt: skip
    return found, jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *victims)


def test_the_attack_beats_the_mean_on_digits():
    (attack, _), victims = _attacked()
    guess = label_distribution.predict(attack, victims.delta)
    np.testing.assert_allclose(guess.sum(1), 1, rtol=1e-5)
    ours = _distance(guess, victims.labels)
    mean = _distance(attack.mean[None], victims.labels)
    assert ours.mean() < 0.5 * mean.mean()


def test_messages_of_others_tell_nothing():
    (attack, _), victims = _attacked()
    guess = label_distribution.predict(attack, jnp.roll(victims.delta, 7, axis=0))
    mean = _distance(attack.mean[None], victims.labels)
    assert _distance(guess, victims.labels).mean() > mean.mean()


def test_an_attack_is_the_same_for_the_same_key():
    (first, second), _ = _attacked()
    jax.tree.map(np.testing.assert_array_equal, first, second)


def test_a_recorded_client_of_any_round_is_attacked():
    _, sent, proxy, own = _digits()
    labels = np.asarray(own.y)
    mine, other = np.flatnonzero(labels == 3)[:50], np.flatnonzero(labels != 3)
    at = np.concatenate([mine, other[:22], other[22:94]])
    rows = Rows(jax.tree.map(lambda leaf: leaf[at], own.x), labels[at])
    plan = schedule.build([72, 72], num_rounds=3, batch_size=16, epochs=2)
    recipe, quiet = _recipe(), jnp.float32(0)
    run = rounds.start(sent, plan, optax.sgd(1.0))
    run = rounds.advance(
        jax.random.key(0), run, rows, plan, 3,
        local=recipe.local(quiet), server_optimiser=optax.sgd(1.0),
    )  # fmt: skip
    seen = transcript.exchange(run.transcript, 0)
    guess = label_distribution.infer(
        jax.random.key(2), seen, 2, proxy, recipe, quiet,
        settings=_SMALL, over=parallel.mesh(2),
    )  # fmt: skip
    assert int(jnp.argmax(guess)) == 3
    assert guess[3] > 0.4

"""The baseline computes what NumPy and JAX compute, written out independently."""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

torch = pytest.importorskip("torch")
# The first optimiser imports it, which takes seconds that belong to no test.
pytest.importorskip("torch._dynamo")

from experiments.benchmarks import torch_baseline

_SHAPES = {
    "hidden_kernel": (3, 4),
    "hidden_bias": (4,),
    "output_kernel": (4, 1),
    "output_bias": (1,),
}


def _params(rng, scale=0.5):
    return {
        name: rng.normal(0, scale, shape).astype(np.float32)
        for name, shape in _SHAPES.items()
    }


def _clients(rng, sizes=(7, 5)):
    return [
        (rng.normal(size=(n, 3)).astype(np.float32), rng.normal(size=n)) for n in sizes
    ]


def _sgd_step(params, x, y, rate):
    """One step on the mean squared error of a perceptron, by hand in float64."""
    before = x @ params["hidden_kernel"] + params["hidden_bias"]
    hidden = np.maximum(before, 0)
    output = hidden @ params["output_kernel"] + params["output_bias"]
    error = 2 * (output - y[:, None]) / len(y)
    back = (error @ params["output_kernel"].T) * (before > 0)
    gradient = {
        "hidden_kernel": x.T @ back,
        "hidden_bias": back.sum(0),
        "output_kernel": hidden.T @ error,
        "output_bias": error.sum(0),
    }
    return {name: params[name] - rate * gradient[name] for name in params}


def _train_by_hand(clients, params, orders, *, rate, batch_size):
    total, returned = sum(len(y) for _, y in clients), []
    for round_ in orders:
        returned.append([])
        for (x, y), order in zip(clients, round_, strict=True):
            mine = params
            for at in range(0, len(y), batch_size):
                batch = order[at : at + batch_size]
                mine = _sgd_step(mine, x[batch].astype(float), y[batch], rate)
            returned[-1].append(mine)
        params = {
            name: sum(
                len(y) / total * mine[name]
                for mine, (_, y) in zip(returned[-1], clients, strict=True)
            )
            for name in params
        }
    return params, returned


def _close(one, other, **tolerance):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **tolerance), one, other)


def test_given_orders_training_equals_federated_averaging_by_hand():
    rng = np.random.default_rng(0)
    clients, params = _clients(rng), _params(rng)
    orders = [[rng.permutation(len(y)) for _, y in clients] for _ in range(3)]
    got = torch_baseline.train_rounds(
        clients, params, learning_rate=0.1, batch_size=3, num_rounds=3, orders=orders
    )
    want = _train_by_hand(clients, params, orders, rate=0.1, batch_size=3)
    _close(got, want, rtol=1e-4, atol=1e-5)


def test_without_orders_the_seed_decides_the_shuffles():
    rng = np.random.default_rng(1)
    clients, params = _clients(rng), _params(rng)

    def trained(seed):
        return torch_baseline.train_rounds(
            clients, params, learning_rate=0.1, batch_size=2, num_rounds=2, seed=seed
        )

    _close(trained(0), trained(0), rtol=0)
    one, other = (trained(seed)[0]["hidden_kernel"] for seed in (0, 1))
    assert not np.array_equal(one, other)


def test_the_number_of_threads_is_put_back():
    rng = np.random.default_rng(2)
    before = torch.get_num_threads()
    torch_baseline.train_rounds(
        _clients(rng), _params(rng), learning_rate=0.1, batch_size=4, num_rounds=1,
        num_threads=before + 1,
    )  # fmt: skip
    assert torch.get_num_threads() == before


def _predict(params, x):
    hidden = jax.nn.relu(x @ params["hidden_kernel"] + params["hidden_bias"][None])
    return (hidden @ params["output_kernel"])[:, 0] + params["output_bias"][0]


def _gradient(params, x, y):
    return jax.grad(lambda p: jnp.mean((_predict(p, x) - y) ** 2))(params)


def _attack_in_jax(params, deltas, public, y, values, noise, rate):
    low, high = values

    def loss_fn(logits, gumbel):
        soft = jax.nn.sigmoid(logits + gumbel)
        hard = soft + jax.lax.stop_gradient((soft > 0.5) - soft)
        column = low + (high - low) * hard
        x = jnp.concatenate([public, column[:, None]], axis=1)
        loss = 0.0
        for sent, delta in zip(params, deltas, strict=True):
            got, _ = jax.flatten_util.ravel_pytree(_gradient(sent, x, y))
            want, _ = jax.flatten_util.ravel_pytree(delta)
            loss += 1 - got @ want / jnp.linalg.norm(got) / jnp.linalg.norm(want)
        return loss

    logits, step = jnp.asarray(noise[0]), jax.jit(jax.value_and_grad(loss_fn))
    for gumbel in noise[1]:
        loss, slope = step(logits, gumbel)
        logits = logits - rate * slope
    return logits, loss


def _victim(rng, num_rows, num_rounds):
    x = rng.normal(size=(num_rows, 3)).astype(np.float32)
    x[:, -1] = np.where(rng.random(num_rows) < 0.5, -1, 1)
    y = (x @ [1.0, -1.0, 3.0]).astype(np.float32)
    params = [_params(rng) for _ in range(num_rounds)]
    returned = [_sgd_step(sent, x, y, rate=1) for sent in params]
    return x, y, params, [jax.tree.map(np.subtract, *p) for p in zip(params, returned)]


def _noise(rng, num_rows, num_iterations):
    start = rng.normal(size=num_rows).astype(np.float32)
    return start, rng.gumbel(size=(num_iterations, num_rows)).astype(np.float32)


def test_given_noise_the_attack_equals_the_one_written_in_jax():
    rng = np.random.default_rng(3)
    x, y, params, deltas = _victim(rng, num_rows=8, num_rounds=2)
    noise = _noise(rng, 8, 4)
    got = torch_baseline.gradient_attack(
        params, deltas, x[:, :-1], y, (-1, 1), learning_rate=5, num_iterations=4,
        noise=noise,
    )  # fmt: skip
    want = _attack_in_jax(params, deltas, x[:, :-1], y, (-1, 1), noise, 5)
    _close(got, want, rtol=1e-4, atol=1e-4)


def test_the_attack_recovers_the_attribute_but_not_from_gradients_reversed():
    rng = np.random.default_rng(4)
    x, y, params, deltas = _victim(rng, num_rows=30, num_rounds=2)

    def accuracy(seen):
        logits, loss = torch_baseline.gradient_attack(
            params, seen, x[:, :-1], y, (-1, 1), learning_rate=100, num_iterations=30,
            num_threads=1,
        )  # fmt: skip
        assert np.isfinite(loss)
        return np.mean((logits > 0) == (x[:, -1] > 0))

    assert accuracy(deltas) >= 0.9
    assert accuracy(jax.tree.map(np.negative, deltas)) <= 0.6


def test_noise_of_another_shape_is_an_error():
    rng = np.random.default_rng(5)
    x, y, params, deltas = _victim(rng, num_rows=8, num_rounds=1)
    with pytest.raises(ValueError, match=r"gumbels of shape \(5, 8\), got \(4, 8\)"):
        torch_baseline.gradient_attack(
            params, deltas, x[:, :-1], y, (-1, 1), learning_rate=1, num_iterations=5,
            noise=_noise(rng, 8, 4),
        )  # fmt: skip

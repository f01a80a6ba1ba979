"""Reconstruction: exact where the theory says so, and honest where it does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.reconstruction import least_squares

pytestmark = pytest.mark.usefixtures("float64")

P = 5  # parameters, the intercept included


_linear = jax.jit(least_squares.reconstruct_linear, static_argnames="rcond")
_subset = jax.jit(least_squares.reconstruct_linear_subset, static_argnames="num_trials")


def _client(seed):
    """A client's inputs with intercept `[40, P]` and its targets."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(size=(40, P - 1)), np.ones((40, 1))], axis=1)
    return x, x @ rng.normal(size=P) + rng.normal(size=40)


def _optimum(seed):
    x, y = _client(seed)
    return np.linalg.solve(x.T @ x, x.T @ y)


def _messages(seed, num_messages, num_steps, noise=0.0):
    """Generic sent models, and deltas after full-batch steps on the squared loss."""
    x, y = _client(seed)
    rng = np.random.default_rng(seed + 1000)
    sent = rng.normal(size=(num_messages, P))
    theta = sent.copy()
    for _ in range(num_steps):
        theta -= 0.05 * 2 * (theta @ x.T - y) @ x / len(y)
    return sent, sent - theta + noise * rng.normal(size=sent.shape)


def _error(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


@pytest.mark.parametrize("num_steps", [1, 5, 40])
@pytest.mark.parametrize("num_messages", [P + 1, P + 2, 60])
def test_enough_messages_give_the_optimum_whatever_the_local_steps(
    num_messages, num_steps
):
    # Proposition 2 of Diana et al.: d + 1 messages, any number of full-batch steps.
    sent, delta = _messages(0, num_messages, num_steps)
    found = _linear(jnp.asarray(sent), jnp.asarray(delta))
    assert found.determined
    assert found.rank == P
    assert found.estimate.dtype == jnp.float64
    assert _error(found.estimate, _optimum(0)) < 1e-8
    assert found.residual < 1e-8
    assert (np.diff(found.singular_values) <= 0).all()


@pytest.mark.parametrize("num_messages", [1, 2, P])
def test_too_few_messages_are_reported_as_such(num_messages):
    sent, delta = _messages(0, num_messages, 5)
    found = _linear(jnp.asarray(sent), jnp.asarray(delta))
    assert not found.determined
    assert found.rank == num_messages - 1
    assert found.singular_values.shape == (num_messages,)
    assert np.isfinite(found.estimate).all()
    assert _error(found.estimate, _optimum(0)) > 1e-3


# Proposition 3 of Diana et al.: with one full-batch step a round, fewer than about
# d messages do not determine the optimum. Each row of the client ties a parameter to the
# one before, so in every round of FedAvg from zero one more parameter begins to move.


def _chain(last):
    """Rows `[P, P]` of the client, `last` being one entry of the last row; targets."""
    x = np.eye(P) - 0.5 * np.eye(P, k=-1)
    x[-1, -1] = last
    return x, np.eye(P)[0]


def _federated_messages(x, y, num_messages):
    """FedAvg with two more clients, whose rows pull every parameter to zero."""
    theta, sent, delta = np.zeros(P), [], []
    for _ in range(num_messages):
        own = 0.5 * x.T @ (x @ theta - y)
        sent.append(theta)
        delta.append(own)
        theta = theta - (own + 2 * 0.5 * theta) / 3
    return np.stack(sent), np.stack(delta)


def test_other_rows_with_another_optimum_send_the_same_first_messages():
    data = [_chain(last) for last in (1.0, 2.0)]
    optima = [np.linalg.solve(x, y) for x, y in data]
    assert np.abs(optima[0] - optima[1]).max() > 0.01
    first, second = (_federated_messages(x, y, P) for x, y in data)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one[: P - 1], other[: P - 1])
    assert not np.array_equal(first[1], second[1])


@pytest.mark.parametrize("num_messages", range(1, P + 2))
def test_every_federated_message_adds_one_direction(num_messages):
    x, y = _chain(1.0)
    args = map(jnp.asarray, _federated_messages(x, y, num_messages))
    found = _linear(*args, rcond=1e-12)
    assert found.rank == num_messages - 1
    assert found.determined == (num_messages == P + 1)
    error = np.abs(found.estimate - np.linalg.solve(x, y)).max()
    assert error < 1e-8 if found.determined else error > 1e-3


def test_repeated_messages_tell_nothing_new():
    sent, delta = (np.tile(a, (3, 1)) for a in _messages(0, P, 5))
    found = _linear(jnp.asarray(sent), jnp.asarray(delta))
    assert not found.determined
    assert found.rank == P - 1
    assert np.isfinite(found.estimate).all()


def test_repeated_messages_do_no_harm():
    sent, delta = (np.tile(a, (3, 1)) for a in _messages(0, P + 1, 5))
    found = _linear(jnp.asarray(sent), jnp.asarray(delta))
    assert found.determined
    assert _error(found.estimate, _optimum(0)) < 1e-8


def test_a_parameter_that_never_moves_is_not_determined():
    sent, delta = _messages(0, 30, 5)
    delta[:, 2] = 0.0
    found = _linear(jnp.asarray(sent), jnp.asarray(delta))
    assert found.rank == P - 1
    assert not found.determined
    assert np.isfinite(found.estimate).all()


def test_the_unit_of_a_column_does_not_matter():
    # Scaled columns keep a feature in a small unit from falling under the cut-off.
    unit = np.array([1e-9, 1.0, 1e6, 1.0, 1.0])
    sent, delta = (a * unit for a in _messages(0, 30, 5))
    found = _linear(jnp.asarray(sent), jnp.asarray(delta))
    assert found.determined
    np.testing.assert_allclose(found.estimate / unit, _optimum(0), rtol=1e-8)


def test_a_cut_off_removes_directions_that_hold_only_rounding():
    # The last feature's delta is another's up to the rounding of float32.
    sent, delta = _messages(0, 30, 5)
    delta[:, 3] = (delta[:, 2] * (1 + 1e-8)).astype(np.float32)
    args = jnp.asarray(sent), jnp.asarray(delta)
    assert _linear(*args).determined
    found = _linear(*args, rcond=1e-6)
    assert found.rank == P - 1
    assert not found.determined


def test_messages_that_travelled_as_float32_still_give_the_optimum():
    sent, delta = (a.astype(np.float32) for a in _messages(0, 60, 5))
    args = jnp.asarray(sent, jnp.float64), jnp.asarray(delta, jnp.float64)
    found = _linear(*args, rcond=1e-6)
    assert found.determined
    assert _error(found.estimate, _optimum(0)) < 1e-5


def test_single_precision_is_enough_for_generic_messages():
    args = (jnp.asarray(a, jnp.float32) for a in _messages(0, 60, 5))
    found = _linear(*args)
    assert found.estimate.dtype == jnp.float32
    assert _error(found.estimate, _optimum(0)) < 1e-3


def test_the_residual_is_the_noise_seen_in_what_was_sent():
    # delta = W (sent - optimum): noise of 1e-3 in delta is W^-1 of it in sent.
    x, _ = _client(0)
    sent, delta = _messages(0, 4000, 1, noise=1e-3)
    found = _linear(jnp.asarray(sent), jnp.asarray(delta))
    inverse = np.linalg.inv(0.05 * 2 * x.T @ x / 40)
    expected = 1e-3 * np.linalg.norm(inverse) / np.sqrt(P)
    assert found.residual == pytest.approx(expected, rel=0.1)


def test_another_clients_messages_do_not_give_this_clients_optimum():
    sent, delta = _messages(1, 60, 5)
    found = _linear(jnp.asarray(sent), jnp.asarray(delta))
    assert found.determined
    assert _error(found.estimate, _optimum(0)) > 0.1


@pytest.mark.parametrize("num_messages", [P + 1, 20])
def test_the_subset_inverse_is_exact_on_exact_messages(num_messages):
    sent, delta = _messages(0, num_messages, 5)
    found = _subset(
        jax.random.key(0), jnp.asarray(sent), jnp.asarray(delta), num_trials=20
    )
    assert found.determined
    assert found.rank == P
    assert found.singular_values.shape == (P + 1,)
    assert _error(found.estimate, _optimum(0)) < 1e-8


def test_more_trials_find_a_better_conditioned_subset():
    sent, delta = (jnp.asarray(a) for a in _messages(0, 30, 5))

    def condition(num_trials):
        s = _subset(
            jax.random.key(0), sent, delta, num_trials=num_trials
        ).singular_values
        return s[0] / s[-1]

    assert condition(20) < condition(1)


def test_the_subset_inverse_needs_a_message_more_than_parameters():
    sent, delta = (jnp.asarray(a) for a in _messages(0, P, 5))
    with pytest.raises(ValueError, match="at least 6 messages, got 5"):
        least_squares.reconstruct_linear_subset(jax.random.key(0), sent, delta)


def test_the_subset_inverse_knows_repeated_messages():
    sent, delta = (jnp.asarray(np.tile(a, (3, 1))) for a in _messages(0, P, 5))
    found = _subset(jax.random.key(0), sent, delta, num_trials=20)
    assert not found.determined
    assert found.rank < P


def test_messages_that_are_no_numbers_determine_nothing():
    sent, delta = (jnp.asarray(a) for a in _messages(0, P, 20))
    for broken in ((sent.at[3].set(jnp.nan), delta), (sent, delta.at[3].set(jnp.nan))):
        assert not least_squares.reconstruct_linear(*broken).determined


def test_the_subset_inverse_knows_messages_that_float32_alone_sets_apart():
    rng, optimum = np.random.default_rng(0), np.arange(P)
    moved = rng.normal(size=(40, 2)) @ rng.normal(size=(2, P))
    sent = (optimum + 3 + moved).astype(np.float32).astype(float)
    returned = sent - (sent - optimum) * np.linspace(0.1, 0.4, P)
    delta = sent - returned.astype(np.float32)
    key = jax.random.key(0)
    with jax.enable_x64():
        found = [
            least_squares.reconstruct_linear_subset(
                key, jnp.asarray(sent), jnp.asarray(delta), num_trials=50, rcond=rcond
            )
            for rcond in (None, 1e-6)
        ]
    assert [bool(each.determined) for each in found] == [True, False]
    assert found[1].rank == 2
    assert np.linalg.norm(found[0].estimate - optimum) > 0.1  # it only looks determined


def test_all_noisy_messages_are_at_least_as_accurate_as_a_subset():
    num_draws = 24
    draws = [_messages(seed, 40, 5, noise=0.02) for seed in range(num_draws)]
    sent, delta = (jnp.asarray(np.stack(a)) for a in zip(*draws, strict=True))
    keys = jax.random.split(jax.random.key(0), num_draws)
    whole = jax.jit(jax.vmap(least_squares.reconstruct_linear))(sent, delta)

    def subset(key, sent, delta):
        return least_squares.reconstruct_linear_subset(key, sent, delta, num_trials=30)

    part = jax.jit(jax.vmap(subset))(keys, sent, delta)
    truth = np.stack([_optimum(seed) for seed in range(num_draws)])
    errors = [np.linalg.norm(r.estimate - truth, axis=1) for r in (whole, part)]
    assert np.median(errors[0]) <= np.median(errors[1])
    assert np.median(errors[0]) < 0.2


def test_clients_vmap_under_jit():
    draws = [_messages(seed, 20, 3) for seed in range(3)]
    sent, delta = (jnp.asarray(np.stack(a)) for a in zip(*draws, strict=True))
    found = jax.jit(jax.vmap(least_squares.reconstruct_linear))(sent, delta)
    assert found.determined.all()
    for seed in range(3):
        assert _error(found.estimate[seed], _optimum(seed)) < 1e-8

"""The noise that is drawn: as much as is accounted for, and independent."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from fljax import local, rounds, schedule
from fljax.defenses.dp_sgd import dp_sgd
from fljax.types import Rows


def _draws(linear, client, count=4000, rows=(), clip=3.0, **changed):
    """`[count, 4]` noisy gradients of one client."""
    how = {"noise_multiplier": linear.sigma, "batch_size": linear.expected} | changed
    defense = linear.defense(clip=clip, **how)
    batch = linear.batch(
        np.array(rows or [[0] * 4]), [bool(rows)] * max(len(rows), 1), client
    )
    keys = jax.random.split(jax.random.key(7), count)
    draw = jax.vmap(lambda key: defense.gradient(key, linear.params, batch)[0])
    grads = jax.jit(draw)(keys)
    return np.concatenate([grads["a"], grads["b"]], axis=1), defense.noise[0]


@pytest.mark.parametrize("client", [0, 1])
def test_the_noise_on_the_sum_is_what_the_accountant_is_told(linear, client):
    found, spec = _draws(linear, client)
    on_sum = (found * linear.expected[client]).ravel()
    scale = spec.noise_multiplier[client] * spec.sensitivity
    assert on_sum.std() == pytest.approx(scale, rel=4 / np.sqrt(2 * on_sum.size))
    assert abs(on_sum.mean()) < 4 * scale / np.sqrt(on_sum.size)
    assert stats.kstest(on_sum / scale, "norm").pvalue > 1e-3


def test_noise_is_added_to_the_clipped_sum_before_the_division(linear):
    rows = [[3, 0, 0, 0], [0, 30, 0, 0]]
    found, _ = _draws(linear, 0, rows=rows)
    scale = linear.sigma[0] * 3.0
    mean = found.mean(axis=0) * linear.expected[0]
    np.testing.assert_allclose(mean, [3, 3, 0, 0], atol=4 * scale / np.sqrt(len(found)))
    deviation = found.std(axis=0) * linear.expected[0]
    np.testing.assert_allclose(deviation, scale, rtol=4 / np.sqrt(2 * len(found)))


def test_an_empty_batch_gives_noise_and_no_loss(linear):
    batch = linear.batch(np.full((3, 4), np.nan), [False] * 3)
    grads, loss = linear.defense(noise_multiplier=linear.sigma).gradient(
        jax.random.key(0), linear.params, batch
    )
    assert loss == 0
    assert np.isfinite(grads["a"]).all() and (np.asarray(grads["a"]) != 0).all()
    np.testing.assert_array_equal(
        linear.clipped_sum(np.full((3, 4), np.nan), [False] * 3), 0
    )


def test_arrays_of_the_same_shape_get_different_noise(linear):
    found, _ = _draws(linear, 0)
    correlation = np.corrcoef(found.T)
    off = correlation[~np.eye(4, dtype=bool)]
    assert np.abs(off).max() < 4.5 / np.sqrt(len(found))


def _noise_of_a_training(num_rounds=60, steps=3):
    """Deltas `[R, C, 2 * 40]` of clients whose loss is flat: nothing but noise."""
    sizes, width = [9, 9, 5], 40
    params = {"a": jnp.zeros(width), "b": jnp.zeros(width)}
    plan = schedule.build(
        sizes, num_rounds=num_rounds, batch_size=3, steps=steps, poisson=True
    )
    defense = dp_sgd(
        lambda params, x, y: 0.0 * jnp.sum(params["a"]),
        clip=2.0,
        noise_multiplier=np.array([1.5, 1.5, 0.5]),
        sampling_rate=plan.sampling_rate[:-1],
        batch_size=np.ones(3),
    )
    update = local.sgd(None, optax.sgd(1.0), gradient=defense.gradient)
    server = optax.sgd(1.0)
    run = rounds.start(params, plan, server)
    advance = functools.partial(rounds.advance, local=update, server_optimiser=server)
    rows = Rows(jnp.zeros((23, 1)), jnp.zeros(23))
    run = jax.jit(advance)(jax.random.key(0), run, rows, plan, num_rounds)
    return np.concatenate([run.transcript.delta["a"], run.transcript.delta["b"]], -1)


def test_in_a_training_noise_is_independent_across_clients_layers_rounds_and_steps():
    num_rounds, steps = 60, 3
    delta = _noise_of_a_training(num_rounds, steps)
    # Equal noise in all steps would give `steps` times the deviation, not its root.
    scale = 2.0 * np.array([1.5, 1.5, 0.5]) * np.sqrt(steps)
    found, count = delta.std(axis=(0, 2)), delta[:, 0].size
    np.testing.assert_allclose(found, scale, rtol=4 / np.sqrt(2 * count))
    first, second = delta[..., :40], delta[..., 40:]
    streams = {
        (part, client, shift): np.roll(values[:, client], shift, axis=0).ravel()
        for part, values in (("a", first), ("b", second))
        for client in range(3)
        for shift in (0, 1)
    }
    for one, other in itertools.combinations(streams, 2):
        correlation = np.corrcoef(streams[one], streams[other])[0, 1]
        assert abs(correlation) < 4.5 / np.sqrt(first[:, 0].size), (one, other)

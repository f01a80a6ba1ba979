"""Federated averaging and its kin, against arithmetic written out by hand."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local, rounds, schedule


def _batches(size, batch, epochs, steps):
    one = [range(s, min(s + batch, size)) for s in range(0, size, batch)]
    if steps is None:
        return one * epochs
    return list(itertools.islice(itertools.cycle(one), steps))


def _by_hand(federation, num_rounds, weights, batch, epochs=1, steps=None):
    """FedAvg in float64; returns the models sent `[R + 1]`, deltas and mean losses."""
    x, y = (np.asarray(leaf, np.float64) for leaf in federation.rows())
    x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    starts = np.cumsum([0, *federation.sizes])
    sent = [np.array([0.3, -0.1, 0.2, 0.5])]
    deltas, mean_losses = [], []
    for _ in range(num_rounds):
        round_deltas, round_losses = [], []
        for start, size in zip(starts, federation.sizes, strict=False):
            theta, seen = sent[-1].copy(), []
            for rows in _batches(size, batch, epochs, steps):
                a, b = x[start + np.array(rows)], y[start + np.array(rows)]
                error = a @ theta - b
                seen.append(np.mean(error**2))
                theta -= federation.rate * 2 * a.T @ error / len(b)
            round_deltas.append(sent[-1] - theta)
            round_losses.append(np.mean(seen))
        deltas.append(round_deltas)
        mean_losses.append(np.average(round_losses, weights=weights))
        sent.append(sent[-1] - np.average(round_deltas, axis=0, weights=weights))
    return np.array(sent), np.array(deltas), np.array(mean_losses)


@pytest.mark.parametrize(
    ("how", "weights"),
    [
        ({"batch_size": 2}, "rows"),
        ({"batch_size": 2}, "uniform"),
        ({"batch_size": 3, "epochs": 3}, "rows"),
        ({"batch_size": None, "epochs": 2}, "rows"),
        ({"batch_size": 2, "steps": 3}, "rows"),
    ],
    ids=["rows", "uniform", "three epochs", "full batch", "three steps"],
)
def test_federated_averaging_equals_a_loop_written_by_hand(federation, how, weights):
    plan = schedule.build(
        federation.sizes, num_rounds=4, weights=weights, shuffle=False, **how
    )
    run = federation.train(plan)
    by_hand = {"batch": how["batch_size"] or max(federation.sizes), **how}
    del by_hand["batch_size"]
    weight = federation.sizes if weights == "rows" else [1] * len(federation.sizes)
    sent, deltas, mean_losses = _by_hand(federation, 4, weights=weight, **by_hand)
    np.testing.assert_allclose(federation.flat(run.server.params), sent[-1], atol=1e-5)
    np.testing.assert_allclose(
        federation.flat(run.transcript.params), sent[:-1], atol=1e-5
    )
    np.testing.assert_allclose(federation.flat(run.transcript.delta), deltas, atol=1e-5)
    np.testing.assert_allclose(run.loss, mean_losses, rtol=1e-5)
    assert run.server.round == 4


def test_fedsgd_is_one_gradient_step_on_all_rows(federation):
    plan = schedule.build(
        federation.sizes, num_rounds=3, batch_size=None, shuffle=False
    )
    run = federation.train(
        plan, local.sgd(federation.loss, optax.sgd(1.0)), optax.sgd(0.1)
    )
    params, rows = federation.params(), federation.rows()
    for _ in range(3):
        grads = jax.grad(
            lambda p: jnp.mean(
                jax.vmap(federation.loss, (None, 0, 0))(p, rows.x, rows.y)
            )
        )(params)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    np.testing.assert_allclose(
        federation.flat(run.server.params), federation.flat(params), atol=1e-5
    )


def test_what_idle_lanes_hold_does_not_count(federation):
    update = local.sgd(
        federation.loss,
        optax.sgd(federation.rate),
        encode=lambda key, delta, sender: jax.tree.map(lambda d: d / jnp.abs(d), delta),
    )
    plan = schedule.build([6, 2], num_rounds=1, batch_size=2, lanes=2)
    run = federation.train(plan, update, rows=federation.rows((6, 2)))
    assert np.isfinite(federation.flat(run.server.params)).all()


def test_fedprox_without_the_term_is_fedavg(federation):
    plan = schedule.build(federation.sizes, num_rounds=3, batch_size=2, shuffle=False)
    proximal = local.sgd(federation.loss, optax.sgd(federation.rate), proximal=0.0)
    found, expected = federation.train(plan, proximal), federation.train(plan)
    np.testing.assert_allclose(
        federation.flat(found.transcript.delta),
        federation.flat(expected.transcript.delta),
        atol=1e-6,
    )


def test_fedprox_with_a_strong_term_stays_near_what_was_sent(federation):
    plan = schedule.build(
        federation.sizes,
        num_rounds=1,
        batch_size=2,
        steps=20,
        shuffle=False,
        record_clients=[0],
    )

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    def delta(mu, plan):
        update = local.sgd(federation.loss, optax.sgd(federation.rate), proximal=mu)
        run = rounds.start(federation.params(), plan, federation.average)
        key = jax.random.key(0)
        run = rounds.advance(
            key,
            run,
            federation.rows(),
            plan,
            1,
            local=update,
            server_optimiser=federation.average,
        )
        return run.transcript.delta

    none, weak, strong = np.linalg.norm(
        federation.flat(delta(jnp.array([0.0, 1.0, 10.0]), plan))[:, 0, 0], axis=-1
    )
    assert strong < 0.5 * weak < 0.5 * none


def test_server_momentum_adds_earlier_deltas(federation):
    plan = schedule.build(federation.sizes, num_rounds=3, batch_size=2, shuffle=False)
    run = federation.train(plan, server=optax.sgd(0.5, momentum=0.9))
    velocity = 0
    sent = [*federation.flat(run.transcript.params), federation.flat(run.server.params)]
    for t in range(3):
        velocity = 0.9 * velocity + federation.mean_delta(run, t)
        np.testing.assert_allclose(sent[t + 1], sent[t] - 0.5 * velocity, atol=1e-6)


@pytest.mark.parametrize("server", [optax.sgd(0.5, momentum=0.9), optax.adam(0.1)])
def test_a_round_of_nobody_leaves_the_server_as_it_is(federation, server):
    both = [np.arange(len(federation.sizes))]
    plan = schedule.build(
        federation.sizes, num_rounds=3, batch_size=2,
        participants=[*both, np.arange(0), *both],
    )  # fmt: skip
    run = federation.train(plan, server=server)
    sent = federation.flat(run.transcript.params)
    np.testing.assert_array_equal(sent[2], sent[1])
    assert run.loss[1] == 0 and (sent[1] != sent[0]).all()
    again = federation.train(plan, server=server, stop=2)
    before = federation.train(plan, server=server, stop=1)
    jax.tree.map(
        np.testing.assert_array_equal, again.server.opt_state, before.server.opt_state
    )


def test_server_adam_first_moves_every_parameter_by_its_rate(federation):
    plan = schedule.build(federation.sizes, num_rounds=1, batch_size=2, shuffle=False)
    run = federation.train(plan, server=optax.adam(0.01))
    moved = federation.flat(run.server.params) - federation.flat(federation.params())
    np.testing.assert_allclose(
        moved, -0.01 * np.sign(federation.mean_delta(run, 0)), rtol=1e-4
    )


def test_a_clients_optimiser_starts_anew_each_round(federation):
    plan = schedule.build(
        federation.sizes, num_rounds=3, batch_size=None, shuffle=False
    )
    run = federation.train(plan, local.sgd(federation.loss, optax.adam(0.01)))
    # Adam's first step has length rate in every coordinate; a later one has not.
    np.testing.assert_allclose(
        np.abs(federation.flat(run.transcript.delta)), 0.01, rtol=1e-3
    )


def test_divergence_shows_in_the_loss(federation):
    plan = schedule.build(federation.sizes, num_rounds=4, batch_size=2, shuffle=False)
    rows = jax.tree.map(lambda leaf: 1e3 * leaf, federation.rows())
    run = federation.train(plan, rows=rows)
    assert np.isfinite(run.loss[0])
    assert not np.isfinite(run.loss[-1])

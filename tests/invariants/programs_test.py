"""However it is compiled, a training is the same: stacked, in chunks, without jit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from fljax import local, rounds, schedule, stacking

# `jax.vmap` over runs that are in the same round. A loop whose rounds could differ would
# keep the transcript of before each round, to choose between the two.
_AXES = rounds.Run(rounds.ServerState(0, 0, None), 0, 0)


def test_stacked_seeds_equal_each_seed_alone(training, assert_close):
    sizes = [training.sizes, [5, 12, 3, 2, 30, 9, 4, 1, 11]]
    plans = [schedule.build(s, **training.shuffled) for s in sizes]
    both, axes = stacking.stack(plans)
    keys = jax.random.split(jax.random.key(5), 2)
    stack = functools.partial(jax.tree.map, lambda *leaves: jnp.stack(leaves))
    rows = [training.rows(), jax.tree.map(lambda leaf: leaf[::-1], training.rows())]
    starts = [rounds.start(training.params(), plan, training.average) for plan in plans]

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, _AXES, 0, axes), out_axes=_AXES)
    def train(key, run, rows, plan):
        return rounds.advance(
            key,
            run,
            rows,
            plan,
            20,
            local=training.sgd,
            server_optimiser=training.average,
        )

    found = train(keys, _in_one_round(stack(*starts)), stack(*rows), both)
    # The smaller of the two, which the joint program pads.
    alone = training.train(plans[0], rows=rows[0], key=keys[0])
    first, second = (
        jax.tree.map(lambda leaf, at=i: leaf[at], found.transcript) for i in (0, 1)
    )
    assert_close(first, alone.transcript, rtol=1e-6)
    assert found.server.round == alone.server.round == 20
    assert_close(found.loss[0], alone.loss, rtol=1e-6)
    assert not np.allclose(first.delta["second"], second.delta["second"])


def test_the_transcript_of_seeds_side_by_side_is_written_in_place(training):
    plan = schedule.build([4] * 50, **training.stored)
    run = rounds.start(training.params(), plan, training.average)
    both = jax.tree.map(lambda leaf: jnp.stack([leaf] * 2), run)
    rows = jax.tree.map(
        lambda leaf: jnp.resize(leaf, (200, *leaf.shape[1:])), training.rows()
    )
    advance = functools.partial(
        rounds.advance, local=training.sgd, server_optimiser=training.average
    )

    def extra(both, axes):
        over = jax.vmap(advance, (0, axes, None, None, None), axes)
        keys = jax.random.split(jax.random.key(0))
        lowered = jax.jit(over, donate_argnums=1).lower(keys, both, rows, plan, 2)
        return lowered.compile().memory_analysis().temp_size_in_bytes

    seen = sum(leaf.nbytes for leaf in jax.tree.leaves(both.transcript))
    assert extra(_in_one_round(both), _AXES) < extra(both, 0) - 0.9 * seen


def _in_one_round(run):
    """All runs of a stack are in the round of the first."""
    return run._replace(server=run.server._replace(round=run.server.round[0]))


def test_vmapped_learning_rates_equal_each_rate_alone(training, assert_close):
    plan = schedule.build(training.sizes, **training.stored)
    run = rounds.start(training.params(), plan, training.average)
    rates = jnp.array([0.01, 0.1, 0.3])

    def train(rate, run, plan):
        update = local.sgd(training.loss, optax.sgd(rate))
        key = jax.random.key(0)
        return rounds.advance(
            key,
            run,
            training.rows(),
            plan,
            2,
            local=update,
            server_optimiser=training.average,
        )

    alone, joint = jax.jit(train), jax.jit(jax.vmap(train, (0, None, None)))
    runs = [alone(rate, run, plan) for rate in rates]
    expected = jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)
    assert_close(joint(rates, run, plan), expected, rtol=1e-6)
    assert len(np.unique(expected.loss[:, 1])) == 3


def test_a_training_needs_no_jit(training, assert_close):
    plan = schedule.build(training.sizes, **training.stored)
    run = rounds.start(training.params(), plan, training.average)
    eager = rounds.advance(
        jax.random.key(0),
        run,
        training.rows(),
        plan,
        2,
        local=training.sgd,
        server_optimiser=training.average,
    )
    assert_close(eager, training.train(plan), rtol=1e-6)


def test_ten_and_ten_rounds_are_twenty(training):
    plan = schedule.build(training.sizes, **training.shuffled)
    whole = training.train(plan)
    half = training.train(plan, stop=10)
    assert half.server.round == 10
    jax.tree.map(np.testing.assert_array_equal, training.train(plan, run=half), whole)


def test_the_loss_is_traced_once_for_all_chunks(training):
    calls = []

    def counted(params, x, y):
        calls.append(1)
        return training.loss(params, x, y)

    update = local.sgd(counted, optax.sgd(training.rate))
    advance = jax.jit(
        functools.partial(
            rounds.advance, local=update, server_optimiser=training.average
        )
    )
    plan = schedule.build(training.sizes, num_rounds=4, batch_size=4, shuffle=False)
    run = rounds.start(training.params(), plan, training.average)
    for stop in (1, 4):
        run = advance(jax.random.key(0), run, training.rows(), plan, stop)
    assert run.server.round == 4
    assert len(calls) == 1

"""Poisson batches: their law, and what they do not depend on."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fljax import batches, rounds, schedule, stacking
from fljax.types import Rows

_sample = jax.jit(batches._poisson_sample, static_argnums=3)
_samples = jax.jit(
    jax.vmap(batches._poisson_sample, (0, None, None, None)), static_argnums=3
)


def _included(rate, size, capacity, num_draws):
    """`[draws, size]` bool, whether each row is in each sample."""
    keys = jax.random.split(jax.random.key(0), num_draws)
    found = np.asarray(_samples(keys, jnp.float32(rate), jnp.int32(size), capacity))
    assert (np.diff(found, axis=1) > 0).all() and (found >= 0).all()
    return (found[:, :, None] == np.arange(size)).any(axis=1)


@pytest.mark.parametrize("rate", [1 / 2, 1 / 3, 1 / 19], ids=["1/2", "1/3", "1/19"])
def test_every_row_is_in_a_poisson_sample_with_the_rate_and_independently(rate):
    num_draws, size = 20_000, 24
    found = _included(rate, size, size, num_draws)
    error = 4.5 * np.sqrt(rate * (1 - rate) / num_draws)
    np.testing.assert_allclose(found.mean(axis=0), rate, atol=error)
    correlation = np.corrcoef(found.T)[~np.eye(size, dtype=bool)]
    assert np.abs(correlation).max() < 4.8 / np.sqrt(num_draws)


@pytest.mark.parametrize("rate", [1 / 2, 1 / 5], ids=["1/2", "1/5"])
def test_the_size_of_a_poisson_sample_is_binomial(rate):
    num_draws, size = 20_000, 12
    counts = _included(rate, size, size, num_draws).sum(axis=1)
    expected = stats.binom.pmf(np.arange(size + 1), size, rate) * num_draws
    observed = np.bincount(counts, minlength=size + 1)
    likely = expected > 5
    rest = [observed[~likely].sum()], [expected[~likely].sum()]
    found = stats.chisquare(*(np.append(a, b) for a, b in
                              zip((observed[likely], expected[likely]), rest)))  # fmt: skip
    assert found.pvalue > 1e-3


def test_all_subsets_of_three_rows_come_as_often_as_independent_draws_say():
    rate, num_draws = 1 / 3, 20_000
    code = _included(rate, 3, 3, num_draws) @ [1, 2, 4]
    for subset in range(8):
        rows = subset.bit_count()
        expected = rate**rows * (1 - rate) ** (3 - rows)
        error = 4.5 * np.sqrt(expected * (1 - expected) / num_draws)
        assert abs(np.mean(code == subset) - expected) < error


def test_a_poisson_sample_with_rate_one_is_everything():
    found = _sample(jax.random.key(0), jnp.float32(1), jnp.int32(9), 12)
    np.testing.assert_array_equal(found, np.arange(12))


def test_more_room_changes_no_drawn_row():
    few, many = (
        _sample(jax.random.key(3), jnp.float32(0.1), jnp.int32(400), room)
        for room in (60, 97)
    )
    np.testing.assert_array_equal(many[:60], few)


def _drawn(federation, sizes, num_rounds=2, batch=4, **how):
    """Rows seen `[R][K][steps]`, from 0 per client, under Poisson batches."""
    plan = schedule.build(
        sizes, num_rounds=num_rounds, batch_size=batch, poisson=True, **how
    )
    return _seen(federation, plan, sizes)


def _seen(federation, plan, sizes, start=0):
    length = int(plan.slots.step.max()) + 1
    rows = Rows(jnp.arange(sum(sizes), dtype=jnp.float32), jnp.zeros(sum(sizes)))
    update = federation.recorder(length, plan.capacity)
    run = rounds.start(jnp.zeros((length, plan.capacity)), plan, federation.average)
    run = run._replace(server=run.server._replace(round=jnp.int32(start)))
    run = federation.advance(
        jax.random.key(0), run, rows, plan, plan.num_rounds,
        local=update, server_optimiser=federation.average,
    )  # fmt: skip
    starts = np.cumsum([0, *sizes])
    return [
        [
            [step[step >= 0].astype(int) - starts[c] for step in seen]
            for seen, c in zip(deltas, clients, strict=True)
            if c >= 0
        ]
        for deltas, clients in zip(
            np.asarray(run.transcript.delta), run.transcript.client, strict=True
        )
    ]


def _equal(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


_POISSON_SIZES = [40, 9, 40, 1]


@pytest.fixture(scope="module")
def drawn(federation):
    return _drawn(federation, _POISSON_SIZES, lanes=3)


def test_poisson_batches_hold_a_clients_own_rows_once_each(drawn):
    for round_ in drawn:
        for steps, size in zip(round_, _POISSON_SIZES, strict=True):
            for rows in steps:
                assert len(np.unique(rows)) == len(rows)
                assert len(rows) == 0 or (0 <= rows[0] and rows[-1] < size)
        # A single row is a batch of its own, with rate 1.
        np.testing.assert_array_equal(round_[3][0], [0])
        # Beyond a client's last step there is nothing.
        assert not any(len(rows) for rows in round_[1][3:])


def test_poisson_batches_differ_between_steps_rounds_and_clients(drawn):
    seen = [drawn[t][c][s] for t in (0, 1) for c in (0, 2) for s in range(10)]
    assert len({tuple(rows) for rows in seen}) > 0.9 * len(seen)
    mean = np.mean([len(rows) for rows in seen])
    assert abs(mean - 4) < 4 * np.sqrt(40 * 0.1 * 0.9 / len(seen))


def test_poisson_batches_depend_neither_on_lanes_nor_on_other_clients(
    federation, drawn
):
    # A larger client beside it asks for more room, too.
    other = _drawn(
        federation, [*_POISSON_SIZES[:3], 300], lanes=2, participants=[[0, 2, 3]]
    )
    for t in (0, 1):
        _equal(other[t][0][:10], drawn[t][0])
        _equal(other[t][1][:10], drawn[t][2])


def test_a_round_with_poisson_batches_is_the_same_when_it_is_done_alone(
    federation, drawn
):
    plan = schedule.build(
        _POISSON_SIZES, num_rounds=2, batch_size=4, poisson=True, participants=[[2]]
    )
    _equal(_seen(federation, plan, _POISSON_SIZES, start=1)[1][0], drawn[1][2])


@pytest.mark.slow
def test_stacked_seeds_draw_what_each_draws_alone(federation):
    sizes = [[12, 5], [90, 7]]
    plans = [
        schedule.build(s, num_rounds=2, batch_size=4, poisson=True, lanes=2)
        for s in sizes
    ]
    both, axes = stacking.stack(plans)
    assert plans[0].capacity < both.capacity
    rows = federation.rows([97])
    padded = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), rows)
    keys = jax.vmap(jax.random.key)(np.arange(2))

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, 0, axes))
    def train(key, rows, plan):
        run = rounds.start(federation.params(), plan, federation.average)
        return rounds.advance(
            key,
            run,
            rows,
            plan,
            2,
            local=federation.sgd,
            server_optimiser=federation.average,
        ).transcript.delta

    found = federation.flat(train(keys, padded, both))
    # The smaller of the two, which the joint program gives more room.
    alone = federation.flat(federation.train(plans[0], rows=rows).transcript.delta)
    np.testing.assert_allclose(found[0], alone, atol=1e-6)

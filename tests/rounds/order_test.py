"""The order of rows and the keys of steps, read off the messages."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import local, rounds, schedule
from fljax.types import Message, Rows


def _orders(federation, sizes, num_rounds, batch, epochs, seed=0, **how):
    """Rows `[R][K]` in the order of training, `[epochs, size]`, from 0 per client."""
    plan = schedule.build(
        sizes, num_rounds=num_rounds, batch_size=batch, epochs=epochs, **how
    )
    length = int(plan.slots.step.max()) + 1
    num_rows = sum(sizes)
    rows = Rows(jnp.arange(num_rows, dtype=jnp.float32), jnp.zeros(num_rows))
    run = federation.train(
        plan,
        federation.recorder(length, plan.batch_size),
        seed=seed,
        rows=rows,
        params=jnp.zeros((length, plan.batch_size)),
    )
    starts = np.cumsum([0, *sizes])
    return [
        [
            (seen[seen >= 0] - starts[c]).astype(int).reshape(epochs, -1)
            for seen, c in zip(deltas, clients, strict=True)
        ]
        for deltas, clients in zip(
            np.asarray(run.transcript.delta), run.transcript.client, strict=True
        )
    ]


@pytest.fixture(scope="module")
def orders(federation):
    """Two rounds of two epochs; clients 0 and 2 have the same number of rows."""
    return _orders(federation, [40, 9, 40, 1], num_rounds=2, batch=8, epochs=2)


def test_each_epoch_visits_each_of_a_clients_rows_once(orders):
    for round_ in orders:
        for order, size in zip(round_, [40, 9, 40, 1], strict=True):
            np.testing.assert_array_equal(np.sort(order), [np.arange(size)] * 2)


@pytest.mark.slow
def test_the_last_batch_is_dropped_where_it_is_smaller(federation):
    found = _orders(federation, [43, 9, 8], 1, batch=8, epochs=3, drop_last=True)[0]
    assert [order.shape for order in found] == [(3, 40), (3, 8), (3, 8)]
    for order, size in zip(found, [43, 9, 8], strict=True):
        assert all(len(set(epoch)) == len(epoch) for epoch in order.tolist())
        assert set(order.ravel()) <= set(range(size))
    assert len(set(found[0].ravel())) > 40  # others are left out in each epoch


def test_the_order_differs_between_rounds_epochs_and_clients(orders):
    seen = [orders[t][c][e] for t in (0, 1) for c in (0, 2) for e in (0, 1)]
    for one, other in itertools.combinations(seen, 2):
        # Two random orders of 40 rows agree in 1 place on average.
        assert np.mean(one == other) < 0.3


def test_the_order_differs_between_keys(federation, orders):
    other = _orders(federation, [40, 9, 40, 1], num_rounds=2, batch=8, epochs=2, seed=1)
    assert np.mean(orders[0][0][0] == other[0][0][0]) < 0.3


def test_the_order_does_not_depend_on_the_other_clients(federation, orders):
    # Another lane, a larger client beside it, one absent and one more.
    other = _orders(
        federation,
        [40, 9, 40, 100, 3],
        num_rounds=2,
        batch=8,
        epochs=2,
        lanes=2,
        participants=[np.array([0, 1, 2, 3])],
    )
    for t, c in itertools.product((0, 1), (0, 1, 2)):
        np.testing.assert_array_equal(orders[t][c], other[t][c])


def test_the_order_of_a_later_round_is_the_same_when_it_is_done_alone(
    federation, orders
):
    plan = schedule.build([40, 9, 40, 1], num_rounds=2, batch_size=8, epochs=2)
    update = federation.recorder(10, 8)
    run = rounds.start(jnp.zeros((10, 8)), plan, federation.average)
    run = run._replace(server=run.server._replace(round=jnp.ones((), jnp.int32)))
    rows = Rows(jnp.arange(90.0), jnp.zeros(90))
    run = federation.advance(
        jax.random.key(0),
        run,
        rows,
        plan,
        2,
        local=update,
        server_optimiser=federation.average,
    )
    seen = np.asarray(run.transcript.delta)[1, 0]
    np.testing.assert_array_equal(seen.reshape(2, 40), orders[1][0])


def test_without_shuffling_rows_keep_their_stored_order(federation):
    ((order, _),) = _orders(
        federation, [5, 3], num_rounds=1, batch=2, epochs=2, shuffle=False
    )
    np.testing.assert_array_equal(order, [[0, 1, 2, 3, 4]] * 2)


def _key_recorder(length):
    """A local update whose message is one random number per step."""

    def init(sent):
        return jnp.zeros_like(sent), jnp.zeros((), jnp.int32)

    def step(key, carry, sent, batch):
        del sent, batch
        seen, at = carry
        return seen.at[at].set(jax.random.uniform(key)), at + 1

    def final(key, carry, sent, sender):
        del key, sent, sender
        return Message(carry[0], jnp.zeros(()))

    return local.LocalUpdate(init, step, final), jnp.zeros(length)


def test_every_step_of_every_client_and_round_has_its_own_key(federation):
    update, params = _key_recorder(4)
    plan = schedule.build(
        federation.sizes, num_rounds=2, batch_size=2, steps=4, lanes=2, shuffle=False
    )
    draws = np.asarray(
        federation.train(plan, update, params=params).transcript.delta
    ).ravel()
    assert len(np.unique(draws)) == 2 * 5 * 4


def test_what_the_server_draws_is_not_what_the_client_drew(federation):
    def final(key, carry, sent, sender):
        del carry, sent, sender
        return Message(jax.random.uniform(key), jnp.zeros(()))

    update = local.LocalUpdate(
        lambda sent: sent, lambda key, carry, sent, batch: carry, final
    )
    plan = schedule.build(federation.sizes, num_rounds=1, batch_size=2)
    run = rounds.advance(
        jax.random.key(0),
        rounds.start(jnp.zeros(()), plan, federation.average),
        federation.rows(),
        plan,
        1,
        local=update,
        server_optimiser=federation.average,
        receive=lambda key, delta, sender: delta - jax.random.uniform(key),
    )
    assert run.server.params != 0


@pytest.mark.parametrize(
    "how",
    [{"epochs": 2}, pytest.param({"steps": 4}, marks=pytest.mark.slow)],
    ids=["epochs", "fixed steps"],
)
def test_the_keys_of_a_clients_steps_do_not_depend_on_the_other_clients(
    federation, how
):
    update, params = _key_recorder(8)
    how = {"num_rounds": 1, "batch_size": 2, "shuffle": False, **how}
    everyone = federation.train(
        schedule.build(federation.sizes, **how), update, params=params
    )
    alone = schedule.build(federation.sizes, participants=[np.array([0])], **how)
    found = federation.train(alone, update, params=params)
    np.testing.assert_array_equal(
        found.transcript.delta[0, 0], everyone.transcript.delta[0, 0]
    )


@pytest.mark.parametrize("poisson", [False, True], ids=["shuffled", "Poisson"])
def test_a_batch_says_whose_rows_it_holds(federation, poisson):
    def step(key, carry, sent, batch):
        del key, sent
        return carry + jnp.where(batch.mask.any(), batch.client + 1.0, 0)

    update = local.LocalUpdate(
        lambda sent: sent,
        step,
        lambda key, carry, sent, sender: Message(carry - sent, jnp.zeros(())),
    )
    plan = schedule.build(
        federation.sizes, num_rounds=2, batch_size=7, lanes=2, poisson=poisson,
        participants=[[0, 2, 4], [1, 2, 3]],
    )  # fmt: skip
    run = federation.train(plan, update, params=jnp.zeros(()))
    np.testing.assert_array_equal(run.transcript.delta, [[1, 3, 5], [2, 3, 4]])


@pytest.mark.parametrize(
    "how",
    [{"poisson": True}, pytest.param({}, marks=pytest.mark.slow)],
    ids=["poisson", "shuffled"],
)
def test_what_is_drawn_for_a_client_in_a_round_has_keys_of_its_own(
    federation, how, monkeypatch
):
    seen: dict[str, set[tuple[int, ...]]] = {}

    def noted(name, keys):
        def note(data):
            each = np.asarray(data).reshape(-1, data.shape[-1])
            seen.setdefault(name, set()).update(map(tuple, each.tolist()))

        jax.debug.callback(note, jax.random.key_data(keys))

    def rows(keys, *arguments):
        noted("rows", keys)
        return dealt(keys, *arguments)

    def step(key, carry, sent, batch):
        noted("step", key)
        return usual.step(key, carry, sent, batch)

    def final(key, carry, sent, sender):
        noted("message", key)
        return usual.final(key, carry, sent, sender)

    def receive(key, delta, sender):
        noted("receive", key)
        return delta

    dealt, usual = rounds.batches.rows, federation.sgd
    monkeypatch.setattr(rounds.batches, "rows", rows)
    plan = schedule.build([3, 2], num_rounds=2, batch_size=1, **how)
    rounds.advance(
        jax.random.key(0), rounds.start(federation.params(), plan, federation.average),
        federation.rows([3, 2]), plan, 2, local=local.LocalUpdate(usual.init, step, final),
        server_optimiser=federation.average, receive=receive,
    )  # fmt: skip
    jax.effects_barrier()
    assert set(seen) == {"rows", "step", "message", "receive"}
    assert {len(seen[name]) for name in ("rows", "message", "receive")} == {4}
    assert len(set().union(*seen.values())) == sum(map(len, seen.values()))


def test_who_takes_all_rows_at_once_drops_none():
    plan = schedule.build(
        [4, 3], num_rounds=1, batch_size=None, epochs=2, drop_last=True
    )
    assert plan.local_steps.tolist() == [2, 2] and not plan.drop_last

"""Clients whose optimiser goes on from round to round, beside loops written by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local, losses, rounds, schedule
from fljax.types import Batch

_ADAM, _MOMENTUM = optax.adam(0.1), optax.sgd(0.02, momentum=0.9)


def _update(federation, optimiser):
    return local.sgd(federation.loss, optimiser, keeps=True)


def _train(federation, plan, update, *stops, rows=None):
    """The run after all stops, one call each."""
    server = federation.average
    run = rounds.start(federation.params(), plan, server, local=update)
    rows = federation.rows() if rows is None else rows
    for stop in stops or (plan.num_rounds,):
        run = federation.advance(
            jax.random.key(0), run, rows, plan, stop, local=update,
            server_optimiser=server,
        )  # fmt: skip
    return run


class _Alone:
    """A client that steps by hand."""

    def __init__(self, federation, optimiser):
        @jax.jit
        def step(params, state, x, y):
            batch = Batch(x, y, jnp.ones(len(y), bool), jnp.int32(0), jnp.int32(0))
            gradient = jax.grad(losses.batch_loss, 1)(federation.loss, params, batch)
            update, state = optimiser.update(gradient, state, params)
            return optax.apply_updates(params, update), state

        self._step = step
        self.begun = optimiser.init(federation.params())

    def train(self, params, state, rows, batch_size):
        """Model and state after an epoch, rows in their order."""
        for at in range(0, len(rows.y), batch_size):
            batch = slice(at, at + batch_size)
            params, state = self._step(params, state, rows.x[batch], rows.y[batch])
        return params, state


def _by_hand(federation, optimiser, present):
    """The last model of clients who are present `[R][...]`, two rows a step."""
    alone, rows = _Alone(federation, optimiser), federation.rows()
    ends = np.cumsum([0, *federation.sizes])
    params, states = federation.params(), [alone.begun] * len(federation.sizes)
    for clients in present:
        returned = []
        for c in clients:
            own = jax.tree.map(lambda leaf, c=c: leaf[ends[c] : ends[c + 1]], rows)
            mine = params
            for _ in range(2):
                mine, states[c] = alone.train(mine, states[c], own, 2)
            returned.append(federation.flat(mine))
        sizes = [federation.sizes[c] for c in clients]
        mean = np.average(returned, axis=0, weights=sizes).astype(np.float32)
        params = {"w": jnp.asarray(mean[:-1]), "b": jnp.asarray(mean[-1])}
    return federation.flat(params)


@pytest.mark.parametrize(
    ("optimiser", "lanes"),
    [
        pytest.param(_ADAM, 1, marks=pytest.mark.slow),
        (_ADAM, 3),
        pytest.param(_MOMENTUM, 1, marks=pytest.mark.slow),
        pytest.param(_MOMENTUM, 3, marks=pytest.mark.slow),
    ],
    ids=["adam-1", "adam-3", "momentum-1", "momentum-3"],
)
def test_a_client_goes_on_from_its_own_last_round(federation, optimiser, lanes):
    present = [[0, 1, 4], [1, 2, 3], [0, 2, 4], [1, 3, 4], [0, 1, 2]]
    plan = schedule.build(
        federation.sizes, num_rounds=5, batch_size=2, epochs=2, lanes=lanes, shuffle=False,
        participants=[np.array(each) for each in present],
    )  # fmt: skip
    found = _train(federation, plan, _update(federation, optimiser))
    wanted = _by_hand(federation, optimiser, present)
    np.testing.assert_allclose(
        federation.flat(found.server.params), wanted, rtol=2e-5, atol=2e-6
    )
    anew = federation.train(plan, local.sgd(federation.loss, optimiser))
    assert np.abs(federation.flat(anew.server.params) - wanted).max() > 1e-2


@pytest.mark.slow
def test_one_client_alone_trains_as_without_rounds(federation):
    rows = federation.rows([6])
    plan = schedule.build([6], num_rounds=7, batch_size=None, steps=3)
    found = _train(federation, plan, _update(federation, _ADAM), rows=rows)
    alone = _Alone(federation, _ADAM)
    params, state = federation.params(), alone.begun
    for _ in range(7 * 3):
        params, state = alone.train(params, state, rows, 6)
    np.testing.assert_allclose(
        federation.flat(found.server.params), federation.flat(params), rtol=2e-5
    )


@pytest.mark.slow
def test_a_training_that_stops_goes_on_bit_for_bit(federation):
    plan = schedule.build(federation.sizes, num_rounds=6, batch_size=2)
    update = _update(federation, _ADAM)
    whole, parts = (
        _train(federation, plan, update, *stops) for stops in ([6], [1, 4, 6])
    )
    jax.tree.map(np.testing.assert_array_equal, whole, parts)


@pytest.mark.slow
def test_who_does_not_come_keeps_what_it_had(federation):
    plan = schedule.build(
        federation.sizes, num_rounds=1, batch_size=2, participants=[np.array([1, 3])]
    )
    moments, _ = _train(federation, plan, _update(federation, _ADAM)).kept
    assert np.asarray(moments.count).tolist() == [0, 2, 0, 1, 0, 0]
    assert (np.abs(federation.flat(moments.mu)).sum(-1) > 0).tolist() == [
        False, True, False, True, False, False,
    ]  # fmt: skip


def test_a_run_that_was_not_started_so_is_refused(federation):
    plan = schedule.build(federation.sizes, num_rounds=1, batch_size=2)
    with pytest.raises(ValueError, match=r"run: expected one that was started with"):
        federation.train(plan, _update(federation, _ADAM))


@pytest.mark.slow
def test_plain_sgd_keeps_nothing(federation):
    plan = schedule.build(federation.sizes, num_rounds=3, batch_size=2)
    kept = _train(federation, plan, _update(federation, optax.sgd(0.05)))
    assert not jax.tree.leaves(kept.kept)
    anew = federation.train(plan)
    jax.tree.map(np.testing.assert_array_equal, kept.server, anew.server)

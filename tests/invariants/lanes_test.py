"""Neither lanes nor devices nor a plain loop over clients change a training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import parallel, rounds, schedule
from fljax.types import Batch


@pytest.fixture(scope="module")
def one_lane_each(training):
    return training.train(
        schedule.build(training.sizes, lanes=len(training.sizes), **training.stored)
    )


@pytest.mark.parametrize(
    "lanes",
    [
        1,
        pytest.param(2, marks=pytest.mark.slow),
        3,
        pytest.param(8, marks=pytest.mark.slow),
    ],
)
def test_lanes_do_not_matter(training, assert_close, one_lane_each, lanes):
    plan = schedule.build(training.sizes, lanes=lanes, **training.stored)
    assert plan.num_lanes == lanes
    assert_close(training.train(plan), one_lane_each, rtol=1e-6)


def _batches(training, rows, client):
    """A client's batches in stored order, padded to 4 rows by zeros."""
    start, size = sum(training.sizes[:client]), training.sizes[client]
    for first in range(0, size, 4):
        count = min(4, size - first)
        take = slice(start + first, start + first + count)
        yield Batch(
            jnp.pad(rows.x[take], ((0, 4 - count), (0, 0))),
            jnp.pad(rows.y[take], (0, 4 - count)),
            jnp.arange(4) < count,
        )


def _final(training, carry, sent):
    return training.sgd.final(jax.random.key(0), carry, sent, None).delta


def _average(training, deltas):
    weight = np.array(training.sizes) / sum(training.sizes)
    return jax.tree.map(
        lambda *leaves: sum(w * leaf for w, leaf in zip(weight, leaves, strict=True)),
        *deltas,
    )


def test_lanes_equal_a_python_loop_over_clients_and_batches(training, assert_close):
    step = jax.jit(training.sgd.step)
    params, rows, deltas = training.params(), training.rows(), []
    for _ in range(2):
        deltas = []
        for client in range(len(training.sizes)):
            carry = training.sgd.init(params)
            for batch in _batches(training, rows, client):
                carry = step(jax.random.key(0), carry, params, batch)
            deltas.append(_final(training, carry, params))
        params = jax.tree.map(jnp.subtract, params, _average(training, deltas))
    run = training.train(schedule.build(training.sizes, lanes=3, **training.stored))
    assert_close(run.server.params, params, rtol=1e-6)
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *deltas)
    last = jax.tree.map(lambda leaf: leaf[1], run.transcript.delta)
    assert_close(last, stack, rtol=1e-5)


def test_lanes_equal_a_vmap_over_clients_padded_to_the_largest(training, assert_close):
    most = -(-max(training.sizes) // 4)
    rows = training.rows()
    empty = Batch(jnp.zeros((4, 3)), jnp.zeros(4), jnp.zeros(4, bool))
    padded = []
    for client in range(len(training.sizes)):
        batches = list(_batches(training, rows, client))
        batches += [empty] * (most - len(batches))
        padded.append(jax.tree.map(lambda *leaves: jnp.stack(leaves), *batches))
    padded = jax.tree.map(lambda *leaves: jnp.stack(leaves), *padded)

    def one_client(params, batches):
        def step(carry, batch):
            return training.sgd.step(jax.random.key(0), carry, params, batch), None

        return _final(
            training, jax.lax.scan(step, training.sgd.init(params), batches)[0], params
        )

    @jax.jit
    def round_(params):
        deltas = jax.vmap(one_client, (None, 0))(params, padded)
        weight = jnp.array(training.sizes) / sum(training.sizes)
        mean = jax.tree.map(lambda d: jnp.tensordot(weight, d, 1), deltas)
        return jax.tree.map(jnp.subtract, params, mean)

    run = training.train(schedule.build(training.sizes, lanes=3, **training.stored))
    assert_close(run.server.params, round_(round_(training.params())), rtol=1e-6)


def test_lanes_on_all_devices_equal_one_device(training, assert_close):
    plan = schedule.build(training.sizes, **training.shuffled)
    over = parallel.mesh()
    assert over.size > 1
    run = rounds.start(training.params(), plan, training.average)
    spread = training.train(
        parallel.place_lanes(plan, over),
        rows=parallel.place(training.rows(), over),
        key=parallel.place(jax.random.key(0), over),
        run=parallel.place(run, over),
    )
    single = training.train(plan)
    assert len(spread.server.params["first"].sharding.device_set) == over.size
    np.testing.assert_array_equal(spread.transcript.client, single.transcript.client)
    assert_close(spread, single, rtol=1e-6)

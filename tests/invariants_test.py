"""What must not change a training: lanes, devices, chunks, padding, names, company."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local, losses, models, parallel, rounds, schedule, stacking
from fljax.types import Batch, Features, Rows

SIZES = [10, 7, 3, 20, 1, 9, 5, 15, 8]  # 78 rows
RATE = 0.05
AVERAGE = optax.sgd(1.0)

_advance = jax.jit(rounds.advance, static_argnames=("local", "server_optimiser"))


def _loss(params, x, y):
    hidden = jnp.tanh(x @ params["first"])
    return jnp.square(jnp.sum(hidden * params["second"]) - y)


SGD = local.sgd(_loss, optax.sgd(RATE))


def _params():
    rng = np.random.default_rng(1)
    return {
        "first": jnp.asarray(rng.normal(size=(3, 4)), jnp.float32),
        "second": jnp.asarray(rng.normal(size=4), jnp.float32),
    }


def _rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(78, 3))
    return Rows(jnp.asarray(x, jnp.float32), jnp.asarray(x.sum(axis=1), jnp.float32))


def _train(plan, rows=None, key=None, run=None, stop=None):
    return _advance(
        jax.random.key(0) if key is None else key,
        rounds.start(_params(), plan, AVERAGE) if run is None else run,
        _rows() if rows is None else rows,
        plan,
        plan.num_rounds if stop is None else stop,
        local=SGD,
        server_optimiser=AVERAGE,
    )


def _assert_close(found, expected, rtol):
    """Every leaf to `rtol` of its largest entry."""

    def check(a, b):
        a, b = np.asarray(a), np.asarray(b)
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * np.abs(b).max())

    jax.tree.map(check, found, expected)


def _assert_equal(found, expected):
    jax.tree.map(np.testing.assert_array_equal, found, expected)


# The shuffle takes long to compile, so tests with it share one shape.
_SHUFFLED = {"num_rounds": 20, "batch_size": 4, "lanes": 8}


_STORED = {"num_rounds": 2, "batch_size": 4, "shuffle": False}


@pytest.fixture(scope="module")
def one_lane_each():
    return _train(schedule.build(SIZES, lanes=len(SIZES), **_STORED))


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_lanes_do_not_matter(one_lane_each, lanes):
    plan = schedule.build(SIZES, lanes=lanes, **_STORED)
    assert plan.num_lanes == lanes
    _assert_close(_train(plan), one_lane_each, rtol=1e-6)


# ---- other ways to train all clients


def _batches(rows, client):
    """A client's batches in stored order, padded to 4 rows by zeros."""
    start, size = sum(SIZES[:client]), SIZES[client]
    for first in range(0, size, 4):
        count = min(4, size - first)
        take = slice(start + first, start + first + count)
        yield Batch(
            jnp.pad(rows.x[take], ((0, 4 - count), (0, 0))),
            jnp.pad(rows.y[take], (0, 4 - count)),
            jnp.arange(4) < count,
        )


def _final(carry, sent):
    return SGD.final(jax.random.key(0), carry, sent, None).delta


def _average(deltas):
    weight = np.array(SIZES) / sum(SIZES)
    return jax.tree.map(
        lambda *leaves: sum(w * leaf for w, leaf in zip(weight, leaves, strict=True)),
        *deltas,
    )


def test_lanes_equal_a_python_loop_over_clients_and_batches():
    step = jax.jit(SGD.step)
    params, rows, deltas = _params(), _rows(), []
    for _ in range(2):
        deltas = []
        for client in range(len(SIZES)):
            carry = SGD.init(params)
            for batch in _batches(rows, client):
                carry = step(jax.random.key(0), carry, params, batch)
            deltas.append(_final(carry, params))
        params = jax.tree.map(jnp.subtract, params, _average(deltas))
    run = _train(schedule.build(SIZES, lanes=3, **_STORED))
    _assert_close(run.server.params, params, rtol=1e-6)
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *deltas)
    last = jax.tree.map(lambda leaf: leaf[1], run.transcript.delta)
    _assert_close(last, stack, rtol=1e-5)


def test_lanes_equal_a_vmap_over_clients_padded_to_the_largest():
    most = -(-max(SIZES) // 4)
    rows = _rows()
    empty = Batch(jnp.zeros((4, 3)), jnp.zeros(4), jnp.zeros(4, bool))
    padded = []
    for client in range(len(SIZES)):
        batches = list(_batches(rows, client))
        batches += [empty] * (most - len(batches))
        padded.append(jax.tree.map(lambda *leaves: jnp.stack(leaves), *batches))
    padded = jax.tree.map(lambda *leaves: jnp.stack(leaves), *padded)

    def one_client(params, batches):
        def step(carry, batch):
            return SGD.step(jax.random.key(0), carry, params, batch), None

        return _final(jax.lax.scan(step, SGD.init(params), batches)[0], params)

    @jax.jit
    def round_(params):
        deltas = jax.vmap(one_client, (None, 0))(params, padded)
        weight = jnp.array(SIZES) / sum(SIZES)
        mean = jax.tree.map(lambda d: jnp.tensordot(weight, d, 1), deltas)
        return jax.tree.map(jnp.subtract, params, mean)

    run = _train(schedule.build(SIZES, lanes=3, **_STORED))
    _assert_close(run.server.params, round_(round_(_params())), rtol=1e-6)


# ---- devices, seeds, hyper-parameters


def test_lanes_on_eight_devices_equal_one_device():
    plan = schedule.build(SIZES, **_SHUFFLED)
    over = parallel.mesh()
    assert over.size == 8
    run = rounds.start(_params(), plan, AVERAGE)
    spread = _train(
        parallel.place_lanes(plan, over),
        rows=parallel.place(_rows(), over),
        key=parallel.place(jax.random.key(0), over),
        run=parallel.place(run, over),
    )
    single = _train(plan)
    assert len(spread.server.params["first"].sharding.device_set) == 8
    np.testing.assert_array_equal(spread.transcript.client, single.transcript.client)
    _assert_close(spread, single, rtol=1e-6)


def test_stacked_seeds_equal_each_seed_alone():
    sizes = [SIZES, [5, 12, 3, 2, 30, 9, 4, 1, 11]]
    plans = [schedule.build(s, **_SHUFFLED) for s in sizes]
    both, axes = stacking.stack(plans)
    keys = jax.random.split(jax.random.key(5), 2)
    stack = functools.partial(jax.tree.map, lambda *leaves: jnp.stack(leaves))
    rows = [_rows(), jax.tree.map(lambda leaf: leaf[::-1], _rows())]
    starts = [rounds.start(_params(), plan, AVERAGE) for plan in plans]

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, 0, 0, axes))
    def train(key, run, rows, plan):
        return rounds.advance(
            key, run, rows, plan, 20, local=SGD, server_optimiser=AVERAGE
        )

    found = train(keys, stack(*starts), stack(*rows), both)
    # The smaller of the two, which the joint program pads.
    alone = _train(plans[0], rows=rows[0], key=keys[0])
    first, second = ([leaf[i] for leaf in jax.tree.leaves(found)] for i in (0, 1))
    _assert_close(first, jax.tree.leaves(alone), rtol=1e-6)
    assert not np.allclose(first[0], second[0])


def test_vmapped_learning_rates_equal_each_rate_alone():
    plan = schedule.build(SIZES, **_STORED)
    run, rates = rounds.start(_params(), plan, AVERAGE), jnp.array([0.01, 0.1, 0.3])

    def train(rate, run, plan):
        update = local.sgd(_loss, optax.sgd(rate))
        key = jax.random.key(0)
        return rounds.advance(
            key, run, _rows(), plan, 2, local=update, server_optimiser=AVERAGE
        )

    alone, joint = jax.jit(train), jax.jit(jax.vmap(train, (0, None, None)))
    runs = [alone(rate, run, plan) for rate in rates]
    expected = jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)
    _assert_close(joint(rates, run, plan), expected, rtol=1e-6)
    assert len(np.unique(expected.loss[:, 1])) == 3


def test_a_training_needs_no_jit():
    plan = schedule.build(SIZES, **_STORED)
    run = rounds.start(_params(), plan, AVERAGE)
    eager = rounds.advance(
        jax.random.key(0), run, _rows(), plan, 2, local=SGD, server_optimiser=AVERAGE
    )
    _assert_close(eager, _train(plan), rtol=1e-6)


# ---- chunks and traces


def test_ten_and_ten_rounds_are_twenty():
    plan = schedule.build(SIZES, **_SHUFFLED)
    whole = _train(plan)
    half = _train(plan, stop=10)
    assert half.server.round == 10
    _assert_equal(_train(plan, run=half), whole)


def test_the_loss_is_traced_once_for_all_chunks():
    calls = []

    def counted(params, x, y):
        calls.append(1)
        return _loss(params, x, y)

    update = local.sgd(counted, optax.sgd(RATE))
    advance = jax.jit(
        functools.partial(rounds.advance, local=update, server_optimiser=AVERAGE)
    )
    plan = schedule.build(SIZES, num_rounds=4, batch_size=4, shuffle=False)
    run = rounds.start(_params(), plan, AVERAGE)
    for stop in (1, 4):
        run = advance(jax.random.key(0), run, _rows(), plan, stop)
    assert run.server.round == 4
    assert len(calls) == 1


# ---- names and padding


def test_relabelling_the_clients_relabels_the_transcript_and_nothing_else():
    order = [3, 0, 8, 2, 5, 7, 1, 6, 4]  # new client i is old client order[i]
    rows, starts = _rows(), np.cumsum([0, *SIZES])
    index = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in order])
    moved = jax.tree.map(lambda leaf: leaf[index], rows)
    found = _train(
        schedule.build([SIZES[c] for c in order], lanes=3, **_STORED), rows=moved
    )
    expected = _train(schedule.build(SIZES, lanes=3, **_STORED))
    _assert_close(found.server, expected.server, rtol=1e-6)
    _assert_close(found.loss, expected.loss, rtol=1e-6)
    relabelled = jax.tree.map(
        lambda leaf: leaf[:, np.array(order)], expected.transcript.delta
    )
    _assert_close(found.transcript.delta, relabelled, rtol=1e-5)


def test_rows_that_belong_to_nobody_do_not_matter():
    plan = schedule.build(SIZES, **_SHUFFLED)
    more = jax.tree.map(
        lambda leaf: jnp.concatenate([leaf, jnp.full((5, *leaf.shape[1:]), jnp.nan)]),
        _rows(),
    )
    _assert_equal(_train(plan, rows=more), _train(plan))


def test_a_diverging_client_leaves_the_messages_of_the_others_alone():
    rows, start = _rows(), sum(SIZES[:3])
    broken = rows._replace(y=rows.y.at[start : start + SIZES[3]].set(jnp.nan))
    how = {"num_rounds": 1, "batch_size": 4, "shuffle": False}
    plan = schedule.build(SIZES, lanes=3, **how)
    found = _train(plan, rows=broken).transcript.delta
    expected = _train(plan).transcript.delta
    others = np.array([c for c in range(len(SIZES)) if c != 3])
    _assert_equal(
        jax.tree.map(lambda leaf: leaf[:, others], found),
        jax.tree.map(lambda leaf: leaf[:, others], expected),
    )
    assert not np.isfinite(found["first"][0, 3]).any()


# ---- replay of one client's round from the transcript


class _Federation:
    """A multilayer perceptron of the paper's kind on 9 ragged clients, B = 32."""

    sizes = (100, 70, 33, 64, 200, 31, 90, 5, 150)
    client, round = 4, 2

    def __init__(self):
        model = models.mlp(8, hidden=(64,))
        rng = np.random.default_rng(0)
        num_rows = sum(self.sizes)
        numeric = jnp.asarray(rng.normal(size=(num_rows, 8)), jnp.float32)
        codes = jnp.zeros((num_rows, 0), jnp.int32)
        target = jnp.asarray(rng.normal(size=num_rows), jnp.float32)
        self.rows = Rows(Features(numeric, codes), target)
        loss_fn = losses.example_loss(model.apply, losses.squared)
        self.local = local.sgd(loss_fn, optax.sgd(0.01))
        plan = self.plan(lanes=8)
        params = jax.tree.map(
            lambda leaf: jnp.asarray(rng.normal(0, 0.2, leaf.shape), leaf.dtype),
            jax.eval_shape(model.init, jax.random.key(0)),
        )
        run = rounds.start(params, plan, AVERAGE)
        self.transcript = self.advance(run, plan, 3).transcript

    def plan(self, **how):
        return schedule.build(self.sizes, num_rounds=3, batch_size=32, **how)

    def advance(self, run, plan, stop):
        return _advance(
            jax.random.key(3),
            run,
            self.rows,
            plan,
            stop,
            local=self.local,
            server_optimiser=AVERAGE,
        )

    def message(self, transcript):
        """What the client sent back in the round."""
        (slot,) = np.flatnonzero(transcript.client[self.round] == self.client)
        return jax.tree.map(lambda leaf: leaf[self.round, slot], transcript.delta)

    def replay(self, **how):
        """Her message of the round, from the model that the transcript says was sent."""
        plan = self.plan(**how)
        sent = jax.tree.map(lambda leaf: leaf[self.round], self.transcript.params)
        run = rounds.start(sent, plan, AVERAGE)
        run = run._replace(server=run.server._replace(round=jnp.int32(self.round)))
        return self.message(self.advance(run, plan, self.round + 1).transcript)


@pytest.fixture(scope="module")
def federation():
    return _Federation()


@pytest.mark.parametrize(
    "how",
    [{"lanes": 8}, {"lanes": 2, "participants": [np.array([4, 7])]}],
    ids=["same lanes", "beside one other in two lanes"],
)
def test_a_replayed_round_is_bit_identical_in_two_or_more_lanes(federation, how):
    _assert_equal(federation.replay(**how), federation.message(federation.transcript))


def test_a_round_replayed_alone_in_one_lane_agrees_to_rounding(federation):
    # One lane is a matrix product and no longer a batched one: sums in another order.
    found = federation.replay(participants=[np.array([4])])
    expected = federation.message(federation.transcript)
    _assert_close(found, expected, rtol=1e-4)


def test_a_replay_of_another_round_is_not_her_message(federation):
    sent = jax.tree.map(lambda leaf: leaf[0], federation.transcript.delta)
    other = jax.tree.map(lambda leaf: leaf[federation.client], sent)
    found = federation.message(federation.transcript)
    assert not np.allclose(
        found["Dense_0"]["kernel"], other["Dense_0"]["kernel"], rtol=1e-2
    )

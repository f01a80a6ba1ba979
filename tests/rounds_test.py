"""Rounds against arithmetic written out by hand, and the order of rows."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from fljax import local, participation, rounds, schedule, stacking
from fljax.types import Message, Rows

SIZES = [7, 3, 5, 1, 4]
RATE = 0.05


def _loss(params, x, y):
    return jnp.square(jnp.sum(x * params["w"]) + params["b"] - y)


SGD = local.sgd(_loss, optax.sgd(RATE))
AVERAGE = optax.sgd(1.0)

# One program for all tests whose tables have the same shapes.
_advance = jax.jit(rounds.advance, static_argnames=("local", "server_optimiser"))


def _rows(sizes=SIZES):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(sum(sizes), 3))
    y = x @ [1.0, -2.0, 0.5] + rng.normal(size=len(x))
    return Rows(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))


def _params():
    return {"w": jnp.array([0.3, -0.1, 0.2]), "b": jnp.array(0.5)}


def _train(plan, update=SGD, server=AVERAGE, seed=0, rows=None, params=None, stop=None):
    run = rounds.start(_params() if params is None else params, plan, server)
    return _advance(
        jax.random.key(seed),
        run,
        _rows() if rows is None else rows,
        plan,
        plan.num_rounds if stop is None else stop,
        local=update,
        server_optimiser=server,
    )


def _flat(params):
    return np.concatenate(
        [np.asarray(params["w"]), np.asarray(params["b"])[..., None]], -1
    )


def _mean_delta(run, t, weights=SIZES):
    return np.average(_flat(run.transcript.delta)[t], axis=0, weights=weights)


# ---- FedAvg by hand


def _batches(size, batch, epochs, steps):
    one = [range(s, min(s + batch, size)) for s in range(0, size, batch)]
    if steps is None:
        return one * epochs
    return list(itertools.islice(itertools.cycle(one), steps))


def _by_hand(num_rounds, batch, epochs=1, steps=None, weights=SIZES):
    """FedAvg in float64; returns the models sent `[R + 1]`, deltas and mean losses."""
    x, y = (np.asarray(leaf, np.float64) for leaf in _rows())
    x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    starts = np.cumsum([0, *SIZES])
    sent = [np.array([0.3, -0.1, 0.2, 0.5])]
    deltas, mean_losses = [], []
    for _ in range(num_rounds):
        round_deltas, round_losses = [], []
        for start, size in zip(starts, SIZES, strict=False):
            theta, seen = sent[-1].copy(), []
            for rows in _batches(size, batch, epochs, steps):
                a, b = x[start + np.array(rows)], y[start + np.array(rows)]
                error = a @ theta - b
                seen.append(np.mean(error**2))
                theta -= RATE * 2 * a.T @ error / len(b)
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
def test_federated_averaging_equals_a_loop_written_by_hand(how, weights):
    plan = schedule.build(SIZES, num_rounds=4, weights=weights, shuffle=False, **how)
    run = _train(plan)
    by_hand = {"batch": how["batch_size"] or max(SIZES), **how}
    del by_hand["batch_size"]
    weight = SIZES if weights == "rows" else [1] * len(SIZES)
    sent, deltas, mean_losses = _by_hand(4, weights=weight, **by_hand)
    np.testing.assert_allclose(_flat(run.server.params), sent[-1], atol=1e-5)
    np.testing.assert_allclose(_flat(run.transcript.params), sent[:-1], atol=1e-5)
    np.testing.assert_allclose(_flat(run.transcript.delta), deltas, atol=1e-5)
    np.testing.assert_allclose(run.loss, mean_losses, rtol=1e-5)
    assert run.server.round == 4


def test_fedsgd_is_one_gradient_step_on_all_rows():
    plan = schedule.build(SIZES, num_rounds=3, batch_size=None, shuffle=False)
    run = _train(plan, local.sgd(_loss, optax.sgd(1.0)), optax.sgd(0.1))
    params, rows = _params(), _rows()
    for _ in range(3):
        grads = jax.grad(
            lambda p: jnp.mean(jax.vmap(_loss, (None, 0, 0))(p, rows.x, rows.y))
        )(params)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    np.testing.assert_allclose(_flat(run.server.params), _flat(params), atol=1e-5)


# ---- clients' and servers' optimisers


def test_fedprox_without_the_term_is_fedavg():
    plan = schedule.build(SIZES, num_rounds=3, batch_size=2, shuffle=False)
    proximal = local.sgd(_loss, optax.sgd(RATE), proximal=0.0)
    found, expected = _train(plan, proximal), _train(plan)
    np.testing.assert_allclose(
        _flat(found.transcript.delta), _flat(expected.transcript.delta), atol=1e-6
    )


def test_fedprox_with_a_strong_term_stays_near_what_was_sent():
    plan = schedule.build(
        SIZES, num_rounds=1, batch_size=2, steps=20, shuffle=False, record_clients=[0]
    )

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    def delta(mu, plan):
        update = local.sgd(_loss, optax.sgd(RATE), proximal=mu)
        run = rounds.start(_params(), plan, AVERAGE)
        key = jax.random.key(0)
        run = rounds.advance(
            key, run, _rows(), plan, 1, local=update, server_optimiser=AVERAGE
        )
        return run.transcript.delta

    none, weak, strong = np.linalg.norm(
        _flat(delta(jnp.array([0.0, 1.0, 10.0]), plan))[:, 0, 0], axis=-1
    )
    assert strong < 0.5 * weak < 0.5 * none


def test_server_momentum_adds_earlier_deltas():
    plan = schedule.build(SIZES, num_rounds=3, batch_size=2, shuffle=False)
    run = _train(plan, server=optax.sgd(0.5, momentum=0.9))
    velocity = 0
    sent = [*_flat(run.transcript.params), _flat(run.server.params)]
    for t in range(3):
        velocity = 0.9 * velocity + _mean_delta(run, t)
        np.testing.assert_allclose(sent[t + 1], sent[t] - 0.5 * velocity, atol=1e-6)


def test_server_adam_first_moves_every_parameter_by_its_rate():
    plan = schedule.build(SIZES, num_rounds=1, batch_size=2, shuffle=False)
    run = _train(plan, server=optax.adam(0.01))
    moved = _flat(run.server.params) - _flat(_params())
    np.testing.assert_allclose(moved, -0.01 * np.sign(_mean_delta(run, 0)), rtol=1e-4)


def test_a_clients_optimiser_starts_anew_each_round():
    plan = schedule.build(SIZES, num_rounds=3, batch_size=None, shuffle=False)
    run = _train(plan, local.sgd(_loss, optax.adam(0.01)))
    # Adam's first step has length rate in every coordinate; a later one has not.
    np.testing.assert_allclose(np.abs(_flat(run.transcript.delta)), 0.01, rtol=1e-3)


def test_divergence_shows_in_the_loss():
    plan = schedule.build(SIZES, num_rounds=4, batch_size=2, shuffle=False)
    rows = jax.tree.map(lambda leaf: 1e3 * leaf, _rows())
    run = _train(plan, rows=rows)
    assert np.isfinite(run.loss[0])
    assert not np.isfinite(run.loss[-1])


# ---- participation and recording


def test_a_round_averages_its_participants_only():
    chosen = participation.uniform(np.random.default_rng(0), 5, 4, 0.4)
    plan = schedule.build(
        SIZES, num_rounds=4, batch_size=2, participants=chosen, shuffle=False
    )
    run = _train(plan)
    np.testing.assert_array_equal(run.transcript.client, chosen)
    sent = [*_flat(run.transcript.params), _flat(run.server.params)]
    for t, members in enumerate(chosen):
        mean = _mean_delta(run, t, np.array(SIZES)[members])
        np.testing.assert_allclose(sent[t + 1], sent[t] - mean, atol=1e-6)


def test_an_empty_round_leaves_the_model_as_it_is():
    chosen = [np.array([0, 3]), np.array([], int), np.array([2])]
    plan = schedule.build(
        SIZES, num_rounds=3, batch_size=2, participants=chosen, shuffle=False
    )
    run = _train(plan)
    np.testing.assert_array_equal(run.transcript.client, [[0, 3], [-1, -1], [2, -1]])
    sent, delta = _flat(run.transcript.params), _flat(run.transcript.delta)
    np.testing.assert_array_equal(sent[2], sent[1])
    assert (sent[1] != sent[0]).all()
    assert not delta[1].any() and not delta[2, 1].any()
    assert delta[0].all() and delta[2, 0].all()
    assert run.loss[1] == 0.0


def test_a_training_in_which_nobody_takes_part_changes_nothing():
    plan = schedule.build(
        SIZES, num_rounds=2, batch_size=2, participants=[np.array([], int)]
    )
    run = _train(plan)
    np.testing.assert_array_equal(_flat(run.server.params), _flat(_params()))


def test_the_transcript_keeps_what_was_asked_for():
    how = {"num_rounds": 4, "batch_size": 2, "shuffle": False}
    whole = _train(schedule.build(SIZES, **how)).transcript
    part = _train(
        schedule.build(SIZES, record_rounds=[1, 3], record_clients=[4, 0], **how)
    ).transcript
    np.testing.assert_array_equal(part.round, [1, 3])
    np.testing.assert_array_equal(part.client, [[0, 4], [0, 4]])
    np.testing.assert_allclose(
        _flat(part.params), _flat(whole.params)[[1, 3]], atol=1e-6
    )
    np.testing.assert_allclose(
        _flat(part.delta), _flat(whole.delta)[[1, 3]][:, [0, 4]], atol=1e-6
    )


def test_rounds_not_yet_done_are_zeros():
    plan = schedule.build(SIZES, num_rounds=4, batch_size=2, shuffle=False)
    run = _train(plan, stop=2)
    assert run.server.round == 2
    assert not _flat(run.transcript.params)[2:].any()
    assert not _flat(run.transcript.delta)[2:].any()
    assert not run.loss[2:].any()
    assert run.loss[:2].all()


def test_a_stop_beyond_the_last_round_is_the_last_round():
    plan = schedule.build(SIZES, num_rounds=4, batch_size=2, shuffle=False)
    found, expected = _train(plan, stop=9), _train(plan)
    assert found.server.round == 4
    jax.tree.map(np.testing.assert_array_equal, found, expected)


# ---- the order of rows and the keys of steps, read off the messages


@functools.cache
def _recorder(length, batch):
    """A local update whose message is the rows of each of its steps, -1 if masked."""

    def init(sent):
        return jnp.full((length, batch), -1.0), jnp.zeros((), jnp.int32)

    def step(key, carry, sent, batch):
        del key, sent
        seen, at = carry
        return seen.at[at].set(jnp.where(batch.mask, batch.x, -1.0)), at + 1

    def final(key, carry, sent, sender):
        del key, sent, sender
        return Message(carry[0], jnp.zeros(()))

    return local.LocalUpdate(init, step, final)


def _orders(sizes, num_rounds, batch, epochs, seed=0, **how):
    """Rows `[R][K]` in the order of training, `[epochs, size]`, from 0 per client."""
    plan = schedule.build(
        sizes, num_rounds=num_rounds, batch_size=batch, epochs=epochs, **how
    )
    length = int(plan.slots.step.max()) + 1
    num_rows = sum(sizes)
    rows = Rows(jnp.arange(num_rows, dtype=jnp.float32), jnp.zeros(num_rows))
    run = _train(
        plan,
        _recorder(length, plan.batch_size),
        seed=seed,
        rows=rows,
        params=jnp.zeros((length, plan.batch_size)),
    )
    starts = np.cumsum([0, *sizes])
    return [
        [
            (seen[seen >= 0] - starts[c]).astype(int).reshape(epochs, sizes[c])
            for seen, c in zip(deltas, clients, strict=True)
        ]
        for deltas, clients in zip(
            np.asarray(run.transcript.delta), run.transcript.client, strict=True
        )
    ]


@pytest.fixture(scope="module")
def orders():
    """Two rounds of two epochs; clients 0 and 2 have the same number of rows."""
    return _orders([40, 9, 40, 1], num_rounds=2, batch=8, epochs=2)


def test_each_epoch_visits_each_of_a_clients_rows_once(orders):
    for round_ in orders:
        for order, size in zip(round_, [40, 9, 40, 1], strict=True):
            np.testing.assert_array_equal(np.sort(order), [np.arange(size)] * 2)


def test_the_order_differs_between_rounds_epochs_and_clients(orders):
    seen = [orders[t][c][e] for t in (0, 1) for c in (0, 2) for e in (0, 1)]
    for one, other in itertools.combinations(seen, 2):
        # Two random orders of 40 rows agree in 1 place on average.
        assert np.mean(one == other) < 0.3


def test_the_order_differs_between_keys(orders):
    other = _orders([40, 9, 40, 1], num_rounds=2, batch=8, epochs=2, seed=1)
    assert np.mean(orders[0][0][0] == other[0][0][0]) < 0.3


def test_the_order_does_not_depend_on_the_other_clients(orders):
    # Another lane, a larger client beside her, one absent and one more.
    other = _orders(
        [40, 9, 40, 100, 3],
        num_rounds=2,
        batch=8,
        epochs=2,
        lanes=2,
        participants=[np.array([0, 1, 2, 3])],
    )
    for t, c in itertools.product((0, 1), (0, 1, 2)):
        np.testing.assert_array_equal(orders[t][c], other[t][c])


def test_the_order_of_a_later_round_is_the_same_when_it_is_done_alone(orders):
    plan = schedule.build([40, 9, 40, 1], num_rounds=2, batch_size=8, epochs=2)
    update = _recorder(10, 8)
    run = rounds.start(jnp.zeros((10, 8)), plan, AVERAGE)
    run = run._replace(server=run.server._replace(round=jnp.ones((), jnp.int32)))
    rows = Rows(jnp.arange(90.0), jnp.zeros(90))
    run = _advance(
        jax.random.key(0), run, rows, plan, 2, local=update, server_optimiser=AVERAGE
    )
    seen = np.asarray(run.transcript.delta)[1, 0]
    np.testing.assert_array_equal(seen.reshape(2, 40), orders[1][0])


def test_without_shuffling_rows_keep_their_stored_order():
    ((order, _),) = _orders([5, 3], num_rounds=1, batch=2, epochs=2, shuffle=False)
    np.testing.assert_array_equal(order, [[0, 1, 2, 3, 4]] * 2)


_order = jax.jit(rounds._permutation, static_argnums=2)
_orders_of_many = jax.jit(
    jax.vmap(rounds._permutation, (0, None, None)), static_argnums=2
)


def _permutation(size, max_rows):
    return np.asarray(_order(jax.random.key(0), jnp.int32(size), max_rows))[:size]


@pytest.mark.parametrize(
    ("size", "max_rows"),
    [
        (7, 2**16),
        (7, 2**16 + 1),
        (2**16, 2**16 + 1),
        (2**16 + 1, 2**16 + 3),
    ],
    ids=["packed", "pairs", "largest packed", "smallest pairs"],
)
def test_a_permutation_does_not_depend_on_the_room_for_larger_clients(size, max_rows):
    found = _permutation(size, max_rows)
    np.testing.assert_array_equal(np.sort(found), np.arange(size))
    np.testing.assert_array_equal(found, _permutation(size, size))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 31, 32, 33])
def test_a_permutation_has_each_row_once_at_any_size(size):
    keys = jax.random.split(jax.random.key(0), 50)
    found = _orders_of_many(keys, jnp.int32(size), 33)
    expected = np.broadcast_to(np.arange(size), (50, size))
    np.testing.assert_array_equal(np.sort(found[:, :size]), expected)


def test_all_orders_of_three_rows_are_equally_likely():
    num_draws = 6000
    keys = jax.random.split(jax.random.key(0), num_draws)
    found = np.asarray(_orders_of_many(keys, jnp.int32(3), 5))[:, :3]
    for order in itertools.permutations(range(3)):
        share = np.mean((found == order).all(axis=1))
        assert abs(share - 1 / 6) < 4 * np.sqrt(1 / 6 * 5 / 6) / np.sqrt(num_draws)


def test_large_clients_are_shuffled_evenly():
    size = 2**16 + 2
    order = _permutation(size, size)
    assert abs(np.corrcoef(order, np.arange(size))[0, 1]) < 4 / np.sqrt(size)
    # Half of the neighbours ascend, more if rows with equal random bits abound; the
    # number of ascents has variance (size + 1) / 12.
    ascents = np.mean(np.diff(order) > 0)
    assert abs(ascents - 0.5) < 4 * np.sqrt(1 / 12) / np.sqrt(size)


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


def test_every_step_of_every_client_and_round_has_its_own_key():
    update, params = _key_recorder(4)
    plan = schedule.build(
        SIZES, num_rounds=2, batch_size=2, steps=4, lanes=2, shuffle=False
    )
    draws = np.asarray(_train(plan, update, params=params).transcript.delta).ravel()
    assert len(np.unique(draws)) == 2 * 5 * 4


@pytest.mark.parametrize(
    "how", [{"epochs": 2}, {"steps": 4}], ids=["epochs", "fixed steps"]
)
def test_the_keys_of_a_clients_steps_do_not_depend_on_the_other_clients(how):
    update, params = _key_recorder(8)
    how = {"num_rounds": 1, "batch_size": 2, "shuffle": False, **how}
    everyone = _train(schedule.build(SIZES, **how), update, params=params)
    alone = schedule.build(SIZES, participants=[np.array([0])], **how)
    found = _train(alone, update, params=params)
    np.testing.assert_array_equal(
        found.transcript.delta[0, 0], everyone.transcript.delta[0, 0]
    )


# ---- Poisson batches


_sample = jax.jit(rounds._poisson_sample, static_argnums=3)
_samples = jax.jit(
    jax.vmap(rounds._poisson_sample, (0, None, None, None)), static_argnums=3
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


def _drawn(sizes, num_rounds=2, batch=4, **how):
    """Rows seen `[R][K][steps]`, from 0 per client, under Poisson batches."""
    plan = schedule.build(
        sizes, num_rounds=num_rounds, batch_size=batch, poisson=True, **how
    )
    return _seen(plan, sizes)


def _seen(plan, sizes, start=0):
    length = int(plan.slots.step.max()) + 1
    rows = Rows(jnp.arange(sum(sizes), dtype=jnp.float32), jnp.zeros(sum(sizes)))
    update = _recorder(length, plan.capacity)
    run = rounds.start(jnp.zeros((length, plan.capacity)), plan, AVERAGE)
    run = run._replace(server=run.server._replace(round=jnp.int32(start)))
    run = _advance(
        jax.random.key(0), run, rows, plan, plan.num_rounds,
        local=update, server_optimiser=AVERAGE,
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
def drawn():
    return _drawn(_POISSON_SIZES, lanes=3)


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


def test_poisson_batches_depend_neither_on_lanes_nor_on_other_clients(drawn):
    # A larger client beside her asks for more room, too.
    other = _drawn([*_POISSON_SIZES[:3], 300], lanes=2, participants=[[0, 2, 3]])
    for t in (0, 1):
        _equal(other[t][0][:10], drawn[t][0])
        _equal(other[t][1][:10], drawn[t][2])


def test_a_round_with_poisson_batches_is_the_same_when_it_is_done_alone(drawn):
    plan = schedule.build(
        _POISSON_SIZES, num_rounds=2, batch_size=4, poisson=True, participants=[[2]]
    )
    _equal(_seen(plan, _POISSON_SIZES, start=1)[1][0], drawn[1][2])


def test_stacked_seeds_draw_what_each_draws_alone():
    sizes = [[12, 5], [90, 7]]
    plans = [
        schedule.build(s, num_rounds=2, batch_size=4, poisson=True, lanes=2)
        for s in sizes
    ]
    both, axes = stacking.stack(plans)
    assert plans[0].capacity < both.capacity
    rows = _rows([97])
    padded = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), rows)
    keys = jax.vmap(jax.random.key)(np.arange(2))

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, 0, axes))
    def train(key, rows, plan):
        run = rounds.start(_params(), plan, AVERAGE)
        return rounds.advance(
            key, run, rows, plan, 2, local=SGD, server_optimiser=AVERAGE
        ).transcript.delta

    found = _flat(train(keys, padded, both))
    # The smaller of the two, which the joint program gives more room.
    alone = _flat(_train(plans[0], rows=rows).transcript.delta)
    np.testing.assert_allclose(found[0], alone, atol=1e-6)


@pytest.mark.parametrize("poisson", [False, True], ids=["shuffled", "Poisson"])
def test_a_batch_says_whose_rows_it_holds(poisson):
    def step(key, carry, sent, batch):
        del key, sent
        return carry + jnp.where(batch.mask.any(), batch.client + 1.0, 0)

    update = local.LocalUpdate(
        lambda sent: sent,
        step,
        lambda key, carry, sent, sender: Message(carry - sent, jnp.zeros(())),
    )
    plan = schedule.build(
        SIZES, num_rounds=2, batch_size=7, lanes=2, poisson=poisson,
        participants=[[0, 2, 4], [1, 2, 3]],
    )  # fmt: skip
    run = _train(plan, update, params=jnp.zeros(()))
    np.testing.assert_array_equal(run.transcript.delta, [[1, 3, 5], [2, 3, 4]])


def test_a_training_of_which_nothing_is_recorded_ends_at_the_same_model():
    how = {"num_rounds": 3, "batch_size": 2, "shuffle": False}
    found = _train(schedule.build(SIZES, record_rounds=[], record_clients=[], **how))
    expected = _train(schedule.build(SIZES, **how))
    np.testing.assert_allclose(
        _flat(found.server.params), _flat(expected.server.params), atol=1e-6
    )

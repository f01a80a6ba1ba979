"""A federation as a whole: many trainings, one program."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import federation, local, losses, models, rounds, schedule
from fljax.federation import FedAvg, Federation, Tables, Training
from fljax.types import Features, Model, Rows

_SIZES = ((5, 9, 4), (7, 2, 11))
_ROUNDS = 6
_TRACED = []


def _loss(params, x, y):
    _TRACED.append(1)
    return jnp.square(jnp.sum(params["w"] * x) - y)


def _init(key):
    return {"w": jax.random.normal(key, (3,))}


def _sgd(numbers):
    return optax.sgd(numbers["rate"])


_MODEL = Model(_init, lambda params, x: jnp.sum(params["w"] * x))
_METHOD = FedAvg(model=_MODEL, loss_fn=_loss, optimiser=_sgd)


def _clients(seed):
    rng = np.random.default_rng(seed)
    return [
        Rows(rng.normal(size=(n, 3)).astype(np.float32),
             rng.normal(size=n).astype(np.float32))
        for n in _SIZES[seed]
    ]  # fmt: skip


def _plan(position, sizes):
    del position
    return schedule.build(sizes, num_rounds=_ROUNDS, batch_size=4, lanes=2)


@pytest.fixture(scope="module")
def small():
    return Federation(_METHOD, federation.tables([_clients(0), _clients(1)], _plan))


def _trainings(*which, rate=0.1):
    index = np.array(which, np.int32)
    rates = np.full(len(which), rate, np.float32)
    return Training(index, index, index.astype(np.uint32), numbers={"rate": rates})


def _same(found, expected):
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def _at(tree, index):
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _distance(run, training, tables):
    rows, _ = federation.of(tables, training)
    return jnp.sum(run.server.params["w"]) + rows.y[0]


class _States:
    """Keeps what it is told, and stops a training that has come so far."""

    def __init__(self, last=None):
        self.kept, self.last = None, last

    def latest(self, like):
        if self.kept is not None:
            jax.tree.map(
                lambda a, b: np.testing.assert_equal((a.shape, a.dtype), (b.shape, b.dtype)),
                self.kept[1], like,
            )  # fmt: skip
        return self.kept

    def reached(self, step, state):
        self.kept = step, jax.tree.map(np.array, state())
        if step == self.last:
            raise KeyboardInterrupt


def test_a_training_is_that_of_the_rounds_alone(small):
    found = federation.train(small, _trainings(0, 1)).run
    for seed in (0, 1):
        whole = [np.concatenate(leaves) for leaves in zip(*_clients(seed), strict=True)]
        plan, server = _plan(0, _SIZES[seed]), optax.sgd(1.0)

        @jax.jit
        def alone(key, rows, plan, server=server):
            return rounds.advance(
                jax.random.fold_in(key, 1),
                rounds.start(_init(jax.random.fold_in(key, 0)), plan, server),
                rows, plan, _ROUNDS,
                local=local.sgd(_loss, optax.sgd(0.1)), server_optimiser=server,
            )  # fmt: skip

        run = alone(jax.random.key(seed), Rows(*whole), plan)
        np.testing.assert_allclose(
            found.server.params["w"][seed], run.server.params["w"], rtol=1e-5
        )
        np.testing.assert_allclose(found.loss[seed], run.loss, rtol=1e-5)


def test_a_sweep_over_rates_and_seeds_is_traced_once(small):
    federation.train(small, _trainings(0, 1))
    before = len(_TRACED)
    for rate in (0.01, 0.05):
        again = dataclasses.replace(_METHOD)  # another object that says the same
        federation.train(small._replace(method=again), _trainings(1, 0, rate=rate))
    assert len(_TRACED) == before


def test_equal_models_and_losses_share_their_programs():
    def method():
        model = models.mlp(3, hidden=(4,))
        loss_fn = losses.example_loss(model.apply, losses.squared)
        return FedAvg(model=model, loss_fn=loss_fn, optimiser=_sgd)

    assert method() == method() and hash(method()) == hash(method())
    example = Features(jnp.zeros(3), jnp.zeros(0, jnp.int32))
    (first, second) = method(), method()
    params = first.model.init(jax.random.key(0))
    _same(params, second.model.init(jax.random.key(0)))
    assert first.model.apply(params, example).shape == ()


def test_a_training_does_not_depend_on_the_others(small):
    both = federation.train(small, _trainings(0, 1, 0)).run
    alone = federation.train(small, _trainings(1)).run
    _same(_at(alone, 0), _at(both, 1))
    _same(_at(both, 0), _at(both, 2))


@pytest.mark.slow
def test_trials_of_one_seed_draw_apart(small):
    both = _trainings(0, 0)._replace(trial=np.arange(2, dtype=np.int32))
    found = federation.train(small, both).run.server.params["w"]
    assert (found[0] != found[1]).all()


@pytest.mark.slow
def test_trials_may_begin_alike_and_go_apart(small):
    plain = _trainings(0, 0)
    trials = plain._replace(trial=np.arange(2, dtype=np.int32))
    alike = trials._replace(start=np.zeros(2, np.uint32))
    found = [
        federation.train(
            small,
            each,
            stops=(0, _ROUNDS),
            evaluate=lambda run, training, tables: run.server.params["w"],
        ).evaluations
        for each in (plain, trials, alike)
    ]
    assert (found[1][0, 0] != found[1][0, 1]).all()
    np.testing.assert_array_equal(found[2][0], found[0][0])
    assert (found[2][1, 0] != found[2][1, 1]).all()


def test_stops_change_nothing_and_are_evaluated(small):
    whole = federation.train(small, _trainings(0, 1))
    seen = []
    parts = federation.train(
        small, _trainings(0, 1), stops=(0, 2, _ROUNDS), evaluate=_distance,
        progress=lambda done, value: seen.append((done, value)),
    )  # fmt: skip
    _same(parts.run, whole.run)
    assert parts.evaluations.shape == (3, 2)
    assert [done for done, _ in seen] == [0, 2, _ROUNDS]
    last = whole.run.server.params["w"].sum(axis=1)
    first_y = [_clients(seed)[0].y[0] for seed in (0, 1)]
    np.testing.assert_allclose(parts.evaluations[2], last + first_y, rtol=1e-5)


@pytest.mark.parametrize("last", [2, 4])
def test_a_training_that_was_stopped_ends_as_one_that_was_not(small, last):
    how = {"stops": (0, 2, 4, _ROUNDS), "evaluate": _distance}
    whole = federation.train(small, _trainings(0, 1), **how)
    states = _States(last)
    with pytest.raises(KeyboardInterrupt):
        federation.train(small, _trainings(0, 1), states=states, **how)
    states.last, seen = None, []
    again = federation.train(
        small, _trainings(0, 1), states=states,
        progress=lambda done, value: seen.append(done), **how,
    )  # fmt: skip
    _same(again[:3], whole[:3])
    assert seen == [0, 2, 4, _ROUNDS]


def test_one_training_can_be_traced_alone(small):
    both = federation.train(small, _trainings(0, 1)).run.server.params["w"]
    found = jax.jit(lambda t: federation.final(small, t))(_at(_trainings(0, 1), 1))
    np.testing.assert_allclose(found["w"], both[1], rtol=1e-5)


def _shuffled():
    """Rows of three clients in any order, and whose they are."""
    rng = np.random.default_rng(5)
    rows = jax.tree.map(lambda *leaves: np.concatenate(leaves), *_clients(0))
    order = rng.permutation(sum(_SIZES[0]))
    ends = np.cumsum((0, *_SIZES[0]))
    places = np.argsort(order)
    parts = [places[start:stop] for start, stop in itertools.pairwise(ends)]
    return jax.tree.map(lambda leaf: leaf[order], rows), parts


def test_rows_in_any_order_train_as_rows_by_client(small):
    rows, parts = _shuffled()
    tables = Tables.of(rows, parts, num_rounds=_ROUNDS, batch_size=4, lanes=2)
    _same(tables.rows, _at(federation.tables([_clients(0)], _plan).rows, slice(None)))
    _same(tables.schedule.sizes[0][:-1], np.array(_SIZES[0]))
    for wrong in ([0, -1], [0, len(rows.y)], [], [0.5], [[0, 1], [2, 3]]):
        with pytest.raises(ValueError, match="^parts: .* for client 1, got .*$"):
            Tables.of(rows, [parts[0], np.array(wrong)], num_rounds=1)
    with pytest.raises(ValueError, match="^parts: expected one client at least"):
        Tables.of(rows, [], num_rounds=1)


def test_scales_are_learning_rate_times_local_steps(small):
    numbers = {"rate": np.full(1, 0.3, np.float32)}
    training = Training.of_seeds(7, numbers=numbers)
    steps = np.ceil(np.array(_SIZES[0]) / 4)
    np.testing.assert_allclose(federation.scales(small, training), 0.3 * steps)
    second = training._replace(schedule=np.ones(1, np.int32))
    steps = np.ceil(np.array(_SIZES[1]) / 4)
    np.testing.assert_allclose(federation.scales(small, second), 0.3 * steps)
    for other in (
        optax.adam(0.1), optax.sgd(0.1, momentum=0.9), optax.sgd(lambda t: 0.1 / (t + 1)),
        optax.chain(optax.clip_by_global_norm(9.0), optax.sgd(0.1)),
        optax.chain(optax.add_decayed_weights(0.1), optax.sgd(0.1)),
    ):  # fmt: skip
        method = dataclasses.replace(_METHOD, optimiser=lambda numbers, one=other: one)
        with pytest.raises(ValueError, match="optimiser: expected plain SGD"):
            federation.scales(small._replace(method=method), training)
    falling = small._replace(method=dataclasses.replace(_METHOD, decay=0.9))
    with pytest.raises(ValueError, match="decay: expected one rate in all rounds"):
        federation.scales(falling, training)
    near = small._replace(method=dataclasses.replace(_METHOD, proximal=1.0))
    with pytest.raises(ValueError, match="proximal: expected no such term, got 1.0"):
        federation.scales(near, training)


@pytest.mark.parametrize("poisson", [False, True])
def test_local_steps_are_those_of_the_clients_that_take_part(poisson):
    plan = schedule.build(
        [9, 4, 30, 5], num_rounds=2, batch_size=4, epochs=2, poisson=poisson,
        participants=[np.array([2, 0]), np.array([0, 1])],
    )  # fmt: skip
    assert plan.local_steps.tolist() == [6, 2, 16, 0]


def test_inputs_and_targets_are_of_equally_many_rows():
    for rows in (np.ones((8, 3)), np.ones((6, 3))):
        with pytest.raises(ValueError, match="rows: expected x of the 7 rows of y"):
            Tables.of(
                Rows(rows, np.ones(7)), [np.arange(2)], num_rounds=1, batch_size=2
            )

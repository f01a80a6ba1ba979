"""Active server: isolation, Adam written out by hand, and where the models end up."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local, losses, rounds, schedule
from fljax.attacks.attribute import active
from fljax.types import Rows

SIZES, VICTIM, RATE = (7, 13), 1, 0.02
ADAM = {"alpha": 0.3, "beta1": 0.8, "beta2": 0.9}
_LOSS = losses.example_loss(lambda params, x: x @ params["w"], losses.squared)
_LOCAL = local.sgd(_LOSS, optax.sgd(RATE))


def _rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(sum(SIZES), 4)) * np.array([1.0, 3.0, 0.3, 1.0])
    y = x @ rng.normal(size=4) + 0.1 * rng.normal(size=len(x))
    x[: SIZES[0]] = np.nan  # whoever reads another client's rows will notice
    return Rows(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))


ROWS = _rows()
MINE = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64)[SIZES[0] :], ROWS)
START = {"w": jnp.array([0.5, -1.0, 2.0, 0.0])}
OPTIMUM = np.linalg.lstsq(*MINE)[0]


def _plan(num_rounds, batch_size=None, record=None, epochs=1):
    return schedule.build(
        SIZES, num_rounds=num_rounds, batch_size=batch_size, epochs=epochs,
        participants=[np.array([VICTIM])], record_rounds=record,
    )  # fmt: skip


@functools.partial(jax.jit, static_argnames="kind")
def _run(kind, plan, attacked, setting):
    kernel = active.isolate if kind == "isolate" else active.emulate_adam
    return kernel(
        jax.random.key(3), START, ROWS, plan, attacked, local=_LOCAL, **setting
    )


def _gradient(w):
    return 2 * MINE.x.T @ (MINE.x @ w - MINE.y) / len(MINE.y)


def _adam_by_hand(delta_of, steps, alpha, beta1, beta2):
    w = np.asarray(START["w"], np.float64)
    mean, square, sent = np.zeros(4), np.zeros(4), []
    for step in range(1, steps + 1):
        sent.append(w)
        delta = delta_of(step - 1, w)
        mean = beta1 * mean + (1 - beta1) * delta
        square = beta2 * square + (1 - beta2) * delta**2
        w = w - alpha * (mean / (1 - beta1**step)) / (
            np.sqrt(square / (1 - beta2**step)) + 1e-8
        )
    return np.array(sent), w


def test_an_isolated_client_goes_on_training_alone():
    found = _run("isolate", _plan(6, epochs=3), np.arange(6), {})
    w, after = np.asarray(START["w"], np.float64), []
    for _ in range(6):
        for _ in range(3):
            w = w - RATE * _gradient(w)
        after.append(w)
    returned = found.exchange.params["w"] - found.exchange.delta["w"]
    np.testing.assert_allclose(returned, after, rtol=1e-5)
    np.testing.assert_allclose(found.exchange.params["w"][1:], after[:-1], rtol=1e-5)
    np.testing.assert_allclose(found.model["w"], after[-1], rtol=1e-5)


def test_the_forged_models_are_those_of_adam_on_the_clients_deltas():
    found = _run("adam", _plan(8), np.arange(8), ADAM)
    sent, last = _adam_by_hand(lambda _, w: RATE * _gradient(w), 8, **ADAM)
    np.testing.assert_allclose(found.exchange.params["w"], sent, rtol=1e-4)
    np.testing.assert_allclose(found.model["w"], last, rtol=1e-4)
    loss = [np.mean((MINE.x @ w - MINE.y) ** 2) for w in sent]
    np.testing.assert_allclose(found.loss, loss, rtol=1e-4)


@jax.jit
def _delta(w, t):
    """What the client sends back in round t, from the engine itself."""
    plan, plain = _plan(8, 4), optax.sgd(1.0)
    run = rounds.start({"w": w}, plan, plain)
    run = run._replace(server=run.server._replace(round=t))
    done = rounds.advance(
        jax.random.key(3), run, ROWS, plan, t + 1, local=_LOCAL, server_optimiser=plain
    )
    return done.transcript.delta["w"][t, 0]


def test_attacked_rounds_draw_what_they_would_in_training_and_gaps_take_no_step():
    attacked = np.array([2, 3, 7])
    found = _run("adam", _plan(8, 4, record=attacked), attacked, ADAM)

    def delta_of(step, w):
        w = jnp.asarray(w, jnp.float32)
        return np.asarray(_delta(w, jnp.int32(attacked[step])), np.float64)

    sent, last = _adam_by_hand(delta_of, 3, **ADAM)
    np.testing.assert_allclose(found.exchange.params["w"], sent, rtol=1e-4)
    np.testing.assert_allclose(found.model["w"], last, rtol=1e-4)
    assert found.loss.shape == (3,) and (found.loss > 0).all()
    other = np.array([2, 3, 6])
    elsewhere = _run("adam", _plan(8, 4, record=other), other, ADAM)
    assert not np.allclose(
        elsewhere.exchange.delta["w"][2], found.exchange.delta["w"][2]
    )


@pytest.mark.slow
def test_adam_comes_closer_to_the_local_optimum_than_isolation():
    plan, attacked = _plan(60, 4, record=[59]), np.arange(60)
    setting = {"alpha": 0.15, "beta1": 0.6, "beta2": 0.99}
    ends = [_run("isolate", plan, attacked, {}), _run("adam", plan, attacked, setting)]
    alone, adam = (np.linalg.norm(end.model["w"] - OPTIMUM) for end in ends)
    assert adam < 0.5 * alone < 0.5 * np.linalg.norm(START["w"] - OPTIMUM)


@pytest.mark.slow
def test_trials_side_by_side_are_the_trials_one_by_one():
    attacked = np.array([1, 4, 5])
    plan = _plan(8, 4, record=attacked)
    trials = active.design(active.ADAM_RANGES, 4, seed=0)
    names = list(active.ADAM_RANGES)

    def trial(setting):
        return _run("adam", plan, attacked, dict(zip(names, setting, strict=True)))

    together = jax.vmap(lambda s: trial(list(s)))(trials)
    for index, setting in enumerate(trials):
        alone = trial(list(setting))
        jax.tree.map(
            lambda a, b, i=index: np.testing.assert_allclose(a[i], b, rtol=2e-4),
            together,
            alone,
        )


def test_only_recorded_rounds_come_back():
    attacked = np.array([4, 5, 7])
    whole = _run("adam", _plan(8, 4, record=attacked), attacked, ADAM)
    few = _run("adam", _plan(8, 4, record=[5, 7]), attacked, ADAM)
    assert few.exchange.params["w"].shape == (2, 4)
    np.testing.assert_array_equal(
        few.exchange.delta["w"], whole.exchange.delta["w"][1:]
    )
    np.testing.assert_array_equal(few.loss, whole.loss)


def test_a_design_fills_its_ranges_evenly_and_begins_alike():
    ranges = {
        "a": active.Range(0.1, 50.0, logarithmic=True),
        "b": active.Range(0.6, 0.999),
    }
    found = active.design(ranges, 64, seed=1)
    share = np.column_stack(
        [np.log(found[:, 0] / 0.1) / np.log(500), (found[:, 1] - 0.6) / 0.399]
    )
    assert ((share >= 0) & (share <= 1)).all()
    for column in share.T:
        assert (np.histogram(column, bins=4, range=(0, 1))[0] >= 12).all()
    np.testing.assert_array_equal(found[:10], active.design(ranges, 10, seed=1))
    assert not np.array_equal(found, active.design(ranges, 64, seed=2))


def test_detectability_is_measured_in_steps_of_the_honest_server():
    honest, before = {"w": jnp.array([3.0, 4.0])}, {"w": jnp.array([3.0, 3.5])}
    forged = {"w": jnp.array([[0.0, 0.0], [3.0, 4.0]])}
    found = active.detectability(forged, honest, before)
    np.testing.assert_allclose(found.distance, [5.0, 0.0])
    np.testing.assert_allclose(found.relative, [10.0, 0.0])

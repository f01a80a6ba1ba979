"""One training with many canaries, each in by a coin of its own."""

import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import losses, models, privacy
from fljax.defenses import dp_sgd, fed_sdp
from fljax.federation import FedAvg, Tables
from fljax.privacy.audits import OBSERVERS, attainable, multi_run, one_training
from fljax.privacy.audits.canaries import Canary
from fljax.privacy.audits.chances import Others
from fljax.privacy.audits.coins import Effects, Exchange, Shown, posterior
from fljax.types import Features, Rows, Transcript

_ROWS, _COLUMNS, _DELTA = 80, 60, 1e-5
_MODEL = models.linear(_COLUMNS)
_LOSS = losses.example_loss(_MODEL.apply, losses.squared)


def _tables(clients=2, **changed):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(_ROWS, _COLUMNS)).astype(np.float32)
    y = rng.normal(size=_ROWS).astype(np.float32)
    rows = Rows(Features(x, np.zeros((_ROWS, 0), np.int32)), y)
    plan = {"num_rounds": 3, "batch_size": _ROWS, "poisson": True} | changed
    return Tables.of(rows, np.array_split(np.arange(_ROWS), clients), **plan)


def _method(defense):
    def method(loss_fn):
        return FedAvg(
            model=_MODEL,
            loss_fn=loss_fn,
            optimiser=lambda numbers: optax.sgd(0.1),
            defense=lambda sigma: defense(loss_fn, sigma),
        )

    return method


@_method
def _records(loss_fn, sigma):
    return dp_sgd.dp_sgd(
        loss_fn, clip=1.0, noise_multiplier=sigma, sampling_rate=1.0, batch_size=40.0
    )


@_method
def _clients(loss_fn, sigma):
    del loss_fn
    return fed_sdp.fed_sdp(
        clip=1.0, noise_scale=sigma, sampling_rate=1.0, num_layers=2, sampling="all"
    )


def _audit(canary, sigma, count=50, method=_records, **plan):
    planted = privacy.plant_many(method, _LOSS, _tables(**plan), canary, count, seed=1)
    return privacy.audit_once(planted, delta=_DELTA, numbers=np.float32(sigma), seed=1)


def test_coins_are_told_of_rows_that_are_in_some_steps_and_look_alike():
    rng, rows = np.random.default_rng(0), 40
    each = rng.normal(size=(rows, 60)) + 3
    at, coins = np.arange(20), rng.random(20) < 0.5
    there = np.where(np.arange(rows) < 20, np.append(coins, np.ones(20)), 1)
    often = Others(np.zeros(rows, int), *np.ones((2, rows)) / [[1], [2]], np.ones(1))
    effects = Effects(
        np.stack([each * (np.arange(rows) >= 20)[:, None], each]), np.ones(1)
    )
    shown = [
        Shown(
            (there * rng.binomial(2, 0.5, rows)) @ each + rng.normal(size=60),
            effects, np.ones(1), np.ones(1),
        )
        for _ in range(20)
    ]  # fmt: skip
    found = posterior(shown, at, often)
    np.testing.assert_array_equal(found > 0, coins)
    assert np.abs(found).max() < 0.7
    nothing = posterior([one._replace(weight=np.zeros(1)) for one in shown], at, often)
    np.testing.assert_array_equal(nothing, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gradient", "mislabelled"])
def test_canaries_are_found_where_there_is_little_noise(kind):
    found = _audit(Canary(kind), 0.2)
    proved = {observer: found.audited[observer].epsilon for observer in OBSERVERS}
    counts = found.audited["messages"].counts
    _, most = attainable.reachable_once(found.accounted, counts, delta=_DELTA)
    assert 1.5 < proved["messages"] <= most < found.accounted
    assert sum(counts) == 50
    assert found.audited["messages"].auc > 0.97
    assert found.audited["sum"] == found.audited["models"]
    assert found.audited["final"].auc > 0.9
    assert found.trainings == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "canary",
    [
        Canary("row"),
        Canary("outlier"),
        Canary("mislabelled", "replace"),
        Canary("gradient", "replace"),
        Canary("row", "sensitive", values=np.array([[-3.0], [3.0]], np.float32)),
    ],
    ids=str,
)
def test_canaries_of_all_kinds_are_told_and_much_noise_hides_them(canary):
    plan = {"batch_size": 20, "steps": 2, "num_rounds": 12}
    assert _audit(canary, 0.1, **plan).audited["messages"].auc > 0.75
    hidden = _audit(canary, 20.0, **plan)
    for audited in hidden.audited.values():
        assert audited.epsilon <= hidden.accounted


@pytest.mark.slow
@pytest.mark.parametrize("compared", ["remove", "replace"])
def test_clients_are_told(compared):
    found = _audit(Canary("client", compared), 0.3, method=_clients, clients=40)
    assert found.audited["messages"].auc > 0.97
    assert 0 < found.audited["messages"].epsilon <= found.accounted


def test_more_canaries_than_there_are_places():
    with pytest.raises(ValueError, match=re.escape("at most 80 canaries")):
        privacy.plant_many(_records, _LOSS, _tables(), Canary(), 81)
    with pytest.raises(ValueError, match="at most 61, the parameters, got 70"):
        privacy.plant_many(_records, _LOSS, _tables(), Canary(), 70)
    # Rows need no direction of their own.
    assert privacy.plant_many(_records, _LOSS, _tables(), Canary("mislabelled"), 70)
    with pytest.raises(TypeError, match=re.escape("privacy.plant_many")):
        planted = privacy.plant(_records, _LOSS, _tables(), Canary())
        privacy.audit_once(planted, delta=_DELTA)


def test_the_upper_bound_is_that_of_whom_least_is_promised(monkeypatch):
    rows = _tables().rows
    flat = jax.tree.map(lambda leaf: leaf[0], rows)
    tables = Tables.of(
        flat, np.split(np.arange(80), [10]), num_rounds=2, batch_size=10, poisson=True
    )  # one step a round, and seven
    planted = privacy.plant_many(_records, _LOSS, tables, Canary("gradient"), 20)
    seen = Exchange(*[np.zeros((1, 1))] * 4)
    trained = SimpleNamespace(evaluations=seen)
    monkeypatch.setattr(one_training.federation_lib, "train", lambda *_, **__: trained)
    blind = dict.fromkeys(OBSERVERS, np.arange(20) % 7)
    monkeypatch.setattr(one_training.coins, "scores", lambda *_: blind)
    sigma = np.float32(5)
    found = privacy.audit_once(planted, delta=1e-5, numbers=sigma, seed=1).accounted
    noise = planted.method.method.defended(sigma).noise
    least, most = (
        multi_run.accounted(noise, planted.tables, Canary("gradient", client=c), 1e-5)
        for c in (0, 1)
    )
    assert found == most > least


def test_coins_of_clients_who_never_come_are_not_guessed(monkeypatch):
    tables = _tables(participants=[np.array([1])])
    planted = privacy.plant_many(_records, _LOSS, tables, Canary("gradient"), 40)
    trained = SimpleNamespace(evaluations=Exchange(*[np.zeros((1, 1))] * 4))
    monkeypatch.setattr(one_training.federation_lib, "train", lambda *_, **__: trained)
    right = dict.fromkeys(OBSERVERS, planted.method.present.astype(float))
    monkeypatch.setattr(one_training.coins, "scores", lambda *_: right)
    found = privacy.audit_once(planted, delta=1e-5, numbers=np.float32(5))
    few = privacy.plant_many(_records, _LOSS, tables, Canary("gradient"), 20)
    with pytest.raises(ValueError, match="8 scores .*; 10 canaries are of clients who"):
        privacy.audit_once(few, delta=1e-5, numbers=np.float32(5))
    own = planted.method.owners(tables)
    assert own.tolist() == [0, 1] * 20
    assert sum(found.audited["messages"].counts) == 20


def test_a_message_that_is_not_finite_is_its_senders_alone():
    params = {"w": jnp.zeros((2, 3))}  # two rounds, two slots, three clients
    delta = {"w": jnp.array([[[1.0] * 3, [jnp.nan] * 3], [[2.0] * 3, [3.0] * 3]])}
    seen = Transcript(jnp.arange(2), jnp.array([[0, 1], [2, -1]]), params, delta)
    run = SimpleNamespace(
        transcript=seen, server=SimpleNamespace(params={"w": jnp.zeros(3)})
    )
    tables = SimpleNamespace(schedule=SimpleNamespace(sizes=jnp.ones(4)))
    found = one_training.exchanged(run, None, tables)
    np.testing.assert_array_equal(found.messages[0, :, 0], [1, jnp.nan, 0])
    np.testing.assert_array_equal(found.messages[1, :, 0], [0, 0, 2])

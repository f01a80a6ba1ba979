"""Many trainings of a small federation, with and without a canary."""

import re

import jax
import numpy as np
import optax
import pytest

from fljax import losses, models, privacy
from fljax.defenses import clipping, dp_sgd, fed_sdp
from fljax.federation import FedAvg, Tables
from fljax.privacy import sampled
from fljax.privacy.audits import (
    canaries,
    chances,
    evidence,
    likelihood,
    multi_run,
    planting,
    statistics,
)
from fljax.privacy.audits.canaries import Canary, PlantedLoss
from fljax.types import Batch, Features, Rows

_ROWS, _ROUNDS, _BATCH, _DELTA = 16, 3, 8, 0.1
_MODEL = models.linear(3)
_LOSS = losses.example_loss(_MODEL.apply, losses.squared)


def _rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(_ROWS, 3)).astype(np.float32)
    y = rng.normal(size=_ROWS).astype(np.float32)
    return Rows(Features(x, np.zeros((_ROWS, 0), np.int32)), y)


def _tables(**changed):
    plan = {"num_rounds": _ROUNDS, "batch_size": _BATCH // 2, "poisson": True}
    return Tables.of(_rows(), np.split(np.arange(_ROWS), 2), **(plan | changed))


def _dp_sgd(sigma):
    def method(loss_fn):
        return FedAvg(
            model=_MODEL,
            loss_fn=loss_fn,
            optimiser=lambda numbers: optax.sgd(0.1),
            defense=lambda numbers: dp_sgd.dp_sgd(
                loss_fn, clip=1.0, noise_multiplier=sigma, sampling_rate=0.5,
                batch_size=4.0,
            ),
        )  # fmt: skip

    return method


def _fed_sdp(loss_fn):
    return FedAvg(
        model=_MODEL,
        loss_fn=loss_fn,
        optimiser=lambda numbers: optax.sgd(0.1),
        defense=lambda numbers: fed_sdp.fed_sdp(
            clip=1.0, noise_scale=1.0, sampling_rate=1.0, num_layers=2, sampling="all"
        ),
    )


def _audit(canary, method=None, trainings=700, **more):
    method = _dp_sgd(0.6) if method is None else method
    planted = privacy.plant(method, _LOSS, _tables(), canary)
    return privacy.audit(planted, trainings=trainings, **({"delta": _DELTA} | more))


@pytest.mark.slow
def test_a_gradient_canary_is_found_in_messages_and_no_bound_is_crossed():
    kept, done = {}, []

    def keep(name, compute):
        kept[name] = compute()
        return kept[name]

    found = _audit(Canary("gradient"), keep=keep, progress=done.append)
    assert done == [250, 500, 700]
    assert 4 < found.accounted < 6
    low = {observer: audited.epsilon for observer, audited in found.audited.items()}
    # Four parameters: what other rows do there hides much of it.
    assert 0.5 < low["messages"] <= found.accounted
    # The other client's noise is in sums, and nothing but sums is in models.
    assert low["sum"] == low["models"] < low["messages"]
    assert low["final"] < low["messages"]
    # Blocks that were kept are not trained again.
    assert found == _audit(Canary("gradient"), keep=lambda name, _: kept[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    "canary",
    [
        Canary("row"),
        Canary("mislabelled"),
        Canary("mislabelled", "replace"),
        Canary("outlier"),
        Canary("gradient", "replace"),
        Canary("row", "sensitive", values=np.array([[-3.0], [3.0]], np.float32)),
    ],
    ids=str,
)
def test_bounds_of_rows_hold(canary):
    found = _audit(canary)
    for audited in found.audited.values():
        assert audited.epsilon <= found.accounted
    assert found.audited["messages"].auc > 0.55


@pytest.mark.slow
@pytest.mark.parametrize("compared", ["remove", "replace"])
def test_a_client_is_found_and_no_bound_is_crossed(compared):
    found = _audit(Canary("client", compared), _fed_sdp)
    # 300 on each side cannot tell of more than 4.4.
    assert found.audited["messages"].epsilon > min(0.4 * found.accounted, 3.5)
    for audited in found.audited.values():
        assert audited.epsilon <= found.accounted


@pytest.mark.slow
def test_planted_gradients_are_the_same_in_both_ways():
    """Asked for by the loss itself, and by differentiating it."""
    shapes = _MODEL.init(jax.random.key(0))
    loss_fn = PlantedLoss(_LOSS, canaries.direction(shapes, 0))
    rows = canaries.neighbours(_rows(), 2, Canary("gradient"))
    x, y = jax.tree.map(lambda leaf: leaf[1, :4], rows)
    batch = Batch(x, y, np.ones(4, bool))
    plain = lambda *of_one: loss_fn(*of_one)
    found, wanted = (
        clipping.clipped_sum(each, shapes, batch, clipping.total(0.5)).total
        for each in (loss_fn, plain)
    )
    for one, other in zip(*map(jax.tree.leaves, (found, wanted)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "canary, tables, said",
    [
        (Canary(client=5), {}, "expected a client below 2"),
        (Canary(row=8), {}, "expected one of 8 rows, got 8"),
        (Canary("row", "replace"), {}, "a row cannot replace itself"),
        (Canary("gradient", "sensitive"), {}, "'sensitive' needs a row"),
        (Canary(), {"record_rounds": [0]}, "a schedule that records every round"),
    ],
)
def test_canaries_and_tables_that_do_not_fit(canary, tables, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        planting.plant(_dp_sgd(1.0), _LOSS, _tables(**tables), canary)


def test_a_likelihood_ratio_counts_the_steps_that_a_canary_may_be_in():
    """Against both densities written out, of one round with two steps."""
    rng = np.random.default_rng(0)
    along = rng.normal(size=(4000, 1))
    seen = evidence.Seen(along, np.zeros((4000, 1)), np.full((4000, 1), 2.0))
    often = chances.Inclusions(2, 0.25, np.ones(1, bool))
    found = likelihood.likelihood_ratios(seen, "messages", often, np.ones(4000, bool))
    y, v = along[:, 0] - along.mean(), along.var()
    odds = [0.75**2, 2 * 0.25 * 0.75, 0.25**2]
    wanted = np.log(
        sum(p * np.exp((2 * k * y - 2 * k**2) / v) for k, p in enumerate(odds))
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)


def test_what_is_accounted_is_of_the_unit_that_is_audited():
    canary = Canary("client")
    noise = _dp_sgd(1.0)(_LOSS).defended(()).noise
    assert multi_run.accounted(noise, _tables(), canary, _DELTA) == np.inf
    (spec,) = _fed_sdp(_LOSS).defended(()).noise
    own = privacy.guarantee(spec, _ROUNDS, _DELTA).epsilon_pld[0]
    found = multi_run.accounted([spec], _tables(), canary, _DELTA)
    assert found == pytest.approx(own, rel=1e-6)


@pytest.mark.parametrize(
    ("neighbours", "replace"), [("remove", False), ("replace", True)]
)
def test_a_clients_own_steps_are_accounted_for(neighbours, replace):
    tables = Tables.of(
        _rows(), np.split(np.arange(16), [4]), num_rounds=3, batch_size=4, poisson=True
    )
    (spec,) = _dp_sgd(1.0)(_LOSS).defended(()).noise
    spec = spec._replace(sampling_rate=np.array([1.0, 1 / 3]))
    for client, rate, steps in ((0, 1.0, 1), (1, 1 / 3, 3)):
        canary = Canary("gradient", neighbours, client=client)
        found = multi_run.accounted([spec], tables, canary, 0.1)
        told = 1.0, rate, [3 * steps], [1.0], 0.1
        assert found == pytest.approx(sampled.poisson(*told, replace=replace))


def test_noise_that_is_accounted_for_other_batches_is_refused():
    (spec,) = _dp_sgd(1.0)(_LOSS).defended(()).noise
    how = {"num_rounds": 3, "batch_size": 4}
    fixed = Tables.of(_rows(), np.split(np.arange(16), [8]), **how)
    with pytest.raises(ValueError, match="promises for 'poisson' batches"):
        multi_run.accounted([spec], fixed, Canary("row"), 0.1)
    often = Tables.of(_rows(), np.split(np.arange(16), [4]), poisson=True, **how)
    with pytest.raises(ValueError, match="sampling rate of .*0.5.*, that of the"):
        multi_run.accounted([spec], often, Canary("row"), 0.1)


def test_a_canary_whose_client_never_comes_is_refused():
    alone = [np.array([1])]
    with pytest.raises(ValueError, match="canary: client 0 takes part in no round"):
        privacy.plant(
            _dp_sgd(1.0), _LOSS, _tables(participants=alone), Canary("gradient")
        )


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"trainings": 0}, "expected 8"),
        ({"delta": 1.5}, "delta"),
        ({"confidence": 0.4}, "confidence"),
        ({"observers": ("nobody",)}, "observers: .* got 'nobody'"),
    ],
    ids=["trainings", "delta", "confidence", "observers"],
)
def test_what_cannot_be_audited_is_refused_before_any_training(
    changed, named, monkeypatch
):
    monkeypatch.setattr(multi_run, "_seen", None)
    with pytest.raises(ValueError, match=named):
        _audit(Canary("gradient"), **changed)


@pytest.mark.slow
def test_nuisances_are_those_of_trainings_that_no_bound_is_of(monkeypatch):
    taken = {}

    def ratios(seen, observer, often, chosen):
        taken[observer] = chosen
        return np.arange(len(chosen)) % 7

    monkeypatch.setattr(multi_run, "likelihood_ratios", ratios)
    found = _audit(Canary("gradient"), trainings=40, observers=("messages", "final"))
    assert set(taken) == {"messages", "final"}
    tuning, present = statistics.first(40), np.arange(40) % 2 > 0
    assert sum(found.audited["final"].counts) == (~tuning).sum()
    for chosen in taken.values():
        np.testing.assert_array_equal(chosen, tuning & ~present)

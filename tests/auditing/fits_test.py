"""How well recorded messages fit the true rows, and what slips are told."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from fljax.attacks.adversary import AdversaryView
from fljax.auditing import case, fits, inputs, slips
from fljax.auditing import settings as s
from fljax.types import Known

_KNOWN = {"batch_size": None, "learning_rate": 0.1, "local_epochs": 1}


def _of_rows(ready, told, most_steps=100):
    settings = s.simulation(told.audit)
    return fits.of_rows(ready.view, ready.truth, settings, most_steps)


@pytest.fixture
def fitted(linear, record, config):
    """`(change, **about) -> Fit` of the linear federation, recorded in another way."""
    frame = pd.read_csv(linear / "rows.csv")

    def fit(change=None, rows=frame, **about):
        record(linear / "other", frame, about=_KNOWN | about, change=change)
        rows.to_csv(linear / "rows.csv", index=False)
        told = config(linear, transcript=str(linear / "other"))
        ready = case.prepare(told, inputs.read(told.files, told.rows))
        return _of_rows(ready, told)

    return fit


def _opposite(number, model, returned):
    del number
    for mine in returned.values():
        for name in mine:
            mine[name] = 2 * model[name] - mine[name]


def _update(sign):
    def change(number, model, returned):
        del number
        for mine in returned.values():
            for name in mine:
                mine[name] = sign * (mine[name] - model[name])

    return change


def _falling(number, model, returned):
    for mine in returned.values():
        for name in mine:
            mine[name] = model[name] + 0.9**number * (mine[name] - model[name])


def _in(half):
    def change(number, model, returned):
        del number, model
        for mine in returned.values():
            for name in mine:
                mine[name] = mine[name].astype(half).astype(np.float32)

    return change


def _frozen(number, model, returned):
    del number
    for mine in returned.values():
        mine["out/bias"] = model["out/bias"]


def test_what_the_true_rows_would_have_sent_fits(fitted):
    found = fitted()
    assert (found.misfit < 1.5).all() and not found.slip


@pytest.mark.slow
@pytest.mark.parametrize("half", [jnp.bfloat16, np.float16])
def test_models_in_half_precision_fit(fitted, half):
    found = fitted(_in(half))
    assert (found.misfit < 1.5).all() and not found.slip
    assert (fitted(_in(half), learning_rate=0.2).misfit > 10).all()


def test_what_clients_do_not_train_fits(fitted):
    found = fitted(_frozen)
    assert (found.misfit < 1.5).all() and not found.slip


@pytest.mark.parametrize(("defense", "held"), [(None, 1), ("pruning(ratio=0.5)", 0)])
def test_what_pruning_may_have_left_out_is_not_taken_for_not_trained(
    linear, record, config, defense, held
):
    record(linear / "seen", pd.read_csv(linear / "rows.csv"), change=_frozen)
    told = config(linear, defense=defense)
    notes = case.prepare(told, inputs.read(told.files, told.rows)).notes
    assert sum("so taken for not trained" in note for note in notes) == held


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "about", "said"),
    [
        (_opposite, {}, "moved the opposite way"),
        (_update(1), {}, "is returned minus sent"),
        (_update(-1), {}, "is sent minus returned"),
        (None, {"local_epochs": 3}, "one local epoch"),
        (None, {"learning_rate": 0.2}, "is 0.5 times what was declared"),
        (None, {"local_steps": 10}, "one local epoch"),
        (
            None,
            {"algorithm": "FedSGD"},
            "step with a learning rate of 0.1, as FedAvg's",
        ),
        (_falling, {}, "learning rate falls by 10% after each round"),
        (
            None,
            {"learning_rate": [0.1 * 0.9**t for t in range(12)]},
            "learning rate is the same in all rounds",
        ),
    ],
)
def test_usual_slips_are_told(fitted, change, about, said):
    found = fitted(change, **about)
    assert (found.misfit > 10).all() and said in found.slip


def _leaves(monkeypatch, misfit):
    """Simulations leave what this says of a view, and nobody is faster."""

    def simulated(view, *_):
        found = misfit(view)
        pace = np.ones((len(view.known.y), 2))
        return None if found is None else SimpleNamespace(misfit=found, pace=pace)

    monkeypatch.setattr(fits, "_simulated", simulated)


@pytest.mark.parametrize(("of_slip", "told"), [(2.9, False), (1.5, True)])
def test_what_hardly_fits_better_is_no_slip(fitted, monkeypatch, of_slip, told):
    left = []

    def misfit(*_):
        left.append(of_slip if left else 3.5)
        return np.full(2, left[-1])

    _leaves(monkeypatch, misfit)
    monkeypatch.setattr(fits, "_fits_others", lambda *_: False)
    assert fitted().slip.count(" if ") == 2 * told  # and what is as near


def test_rounds_that_run_away_as_declared_may_have_a_slip(fitted, monkeypatch):
    left = []

    def misfit(*_):
        left.append(np.full(2, 1.5) if left else None)
        return left[-1]

    _leaves(monkeypatch, misfit)
    monkeypatch.setattr(fits, "_fits_others", lambda *_: False)
    found = fitted()
    assert found.misfit is None and found.slip


@pytest.mark.parametrize(("of_others", "told"), [(3.5, False), (20.0, True)])
def test_what_fits_other_targets_nearly_as_well_is_no_slip(
    fitted, monkeypatch, of_others, told
):
    """Where clients seem to move less than they do, all may pass for noise."""
    targets = []

    def misfit(view, *_):
        targets.append(np.asarray(view.known.y))
        if len(targets) == 1:
            return np.full(2, 50.0)
        own = np.array_equal(targets[-1], targets[0])
        return np.full(2, 2.0 if own else of_others)

    _leaves(monkeypatch, misfit)
    assert bool(fitted().slip) is told


@pytest.mark.parametrize("alike", [0, 1])
def test_clients_whose_targets_are_alike_do_not_take_a_right_slip_away(
    alike, monkeypatch
):
    y = np.array([[1.0, 1.0, 1.0], [3.0, 1.0, 2.0], [5.0, 5.0, 0.0]])
    mask = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0]], bool)
    clients = slice(alike, 3 if alike else None)
    view = AdversaryView._make([None] * len(AdversaryView._fields))
    view = view._replace(known=Known(None, y[clients], mask[clients]))
    dealt = []

    def misfit(view, *_):
        dealt.append(view.known.y)
        return np.where(np.any(view.known.y != y[clients], axis=1), 9.0, 1e-9)

    monkeypatch.setattr(fits, "_misfit", misfit)
    assert not fits._fits_others(view, np.full(3 - alike, 1e-9))
    for mine, true, kept in zip(dealt[0], y[clients], mask[clients], strict=True):
        assert sorted(mine[kept]) == sorted(true[kept])
        assert (mine[~kept] == true[~kept]).all()


@pytest.mark.parametrize(
    ("optimiser", "tried"), [("adam", "plain SGD"), ("sgd", "SGD with momentum 0.5")]
)
def test_other_rules_than_the_declared_one_are_tried(linear, config, optimiser, tried):
    told = config(linear, optimiser=optimiser)
    ready = case.prepare(told, inputs.read(told.files, told.rows))
    kept = "the optimiser's state is kept from round to round (optimiser_state)"
    views = dict(slips.tried(ready.view))
    assert f"clients use {tried}" in views
    assert views["a round is 3 local epochs of each client"].training.epochs == 3
    assert (kept in views) == (optimiser == "adam")  # plain SGD has nothing to keep
    assert kept not in views or views[kept].training.kept
    assert len(views) == len(list(slips.tried(ready.view)))


def test_a_last_batch_may_be_dropped(linear, config):
    def tried(**changes):
        told = config(linear, **changes)
        view = case.prepare(told, inputs.read(told.files, told.rows)).view
        return {
            name: each.training.local_steps(view.sizes).tolist()
            for name, each in slips.tried(view)
            if "the last batch" in name
        }

    said = "clients {} the last batch of an epoch, if smaller (drop_last)"
    drop, on = said.format("drop"), said.format("train on")
    assert tried(batch_size=7) == {drop: [4, 4]}  # of 30 rows
    assert tried(batch_size=7, drop_last=True) == {on: [5, 5]}
    assert not tried() and not tried(batch_size=6)


@pytest.mark.slow
def test_rows_of_each_other_are_told(fitted, linear):
    rows = pd.read_csv(linear / "rows.csv")
    found = fitted(rows=rows.assign(client=11 - rows.client))
    assert (found.misfit > 10).all() and "the rows of the one before it" in found.slip


@pytest.mark.slow
def test_a_sensitive_column_the_other_way_round_is_told(fitted, linear):
    rows = pd.read_csv(linear / "rows.csv")
    found = fitted(rows=rows.assign(married=1 - rows.married))
    said = "sensitive column's two values are the other way round"
    assert (found.misfit > 10).all() and said in found.slip


@pytest.mark.parametrize(("task", "outputs"), [("binary", 1), ("multiclass", 2)])
def test_a_target_of_two_values_may_be_the_other_way_round(
    linear, config, task, outputs
):
    told = config(linear)
    ready = case.prepare(told, inputs.read(told.files, told.rows))
    (turned,) = (
        each.known.y
        for name, each in slips.tried(ready.view._replace(task=task, outputs=outputs))
        if name.startswith("the target's two values")
    )
    np.testing.assert_allclose(turned, 1 - np.asarray(ready.view.known.y))


@pytest.mark.slow
def test_rows_of_nobody_have_no_slip(fitted, linear):
    rows = pd.read_csv(linear / "rows.csv")
    mixed = np.random.default_rng(5).permutation(rows.y)
    found = fitted(rows=rows.assign(y=mixed))
    assert (found.misfit > 10).all() and not found.slip


def test_of_a_training_that_is_not_known_there_is_no_misfit(linear, record, config):
    record(linear / "other", pd.read_csv(linear / "rows.csv"), about={})
    told = config(linear, transcript=str(linear / "other"))
    ready = case.prepare(told, inputs.read(told.files, told.rows))
    found = _of_rows(ready, told)
    assert found.misfit is None and found.explained.shape == (2,)


def test_no_more_steps_than_allowed_are_simulated(linear, config):
    told = config(linear, optimiser="adam", local_steps=10**9)
    ready = case.prepare(told, inputs.read(told.files, told.rows))
    assert _of_rows(ready, told).misfit is None


def test_too_few_messages_of_mini_batches_tell_nothing(linear, record, config):
    about = _KNOWN | {"batch_size": 5}
    record(linear / "other", pd.read_csv(linear / "rows.csv"), about=about, rounds=2)
    told = config(linear, transcript=str(linear / "other"))
    ready = case.prepare(told, inputs.read(told.files, told.rows))
    assert _of_rows(ready, told).misfit is None

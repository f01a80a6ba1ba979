"""Active server and oracle in a whole run: their rows, and what is refused."""

import importlib.util
from typing import Any

import numpy as np
import pytest
from rich import progress

from experiments.aia import adversary, scoring, tuning
from fljax import results
from fljax.attacks.attribute.active import Range
from fljax.transcript import views
from fljax.types import Transcript

_ACCURACY = "aia_accuracy_percent"


def _values(folder, attack, setting, metric=_ACCURACY):
    """`{(seed, client): value}`."""
    return {
        (r.seed, r.client): r.value
        for r in results.read_rows(folder / "rows.jsonl")
        if (r.attack, r.setting, r.metric) == (attack, setting, metric)
    }


def _settings(folder, attack):
    rows = results.read_rows(folder / "rows.jsonl")
    return {
        r.setting for r in rows if (r.attack, r.metric) == (attack, _ACCURACY)
    }  # fmt: skip


@pytest.mark.slow
def test_a_run_has_active_and_oracle_rows_beside_the_passive_ones(run, tmp_path):
    code, out, _ = run(
        "--attack_kinds=model,grad,active,oracle", "--seeds=0,1",
        "--active_choice=client", "--active_objective=reported_loss",
    )  # fmt: skip
    folder = tmp_path / "out"
    assert code == 0 and "compile s" in out
    everything = {"passive", "active_2", "active_4"}
    assert _settings(folder, "grad") == _settings(folder, "grad_oracle") == everything
    assert _settings(folder, "model") == everything
    assert _settings(folder, "model_forged") == {"active_2", "active_4"}
    assert _settings(folder, "model_oracle") == {"oracle"}
    assert set(_values(folder, "model", "active_4")) == {
        (seed, client) for seed in (0, 1) for client in (0, 1, "all")
    }
    # More settings to choose from cannot be worse for who knows the accuracy.
    few, more = (
        _values(folder, "grad_oracle", setting) for setting in ("passive", "active_4")
    )
    assert all(few[seed, "all"] <= more[seed, "all"] for seed in (0, 1))
    either = _values(folder, "model_oracle_or_active", "oracle")
    for seed in (0, 1):
        assert either[seed, "all"] == max(
            _values(folder, "model_oracle", "oracle")[seed, "all"],
            _values(folder, "model", "active_4")[seed, "all"],
        )


@pytest.mark.slow
def test_forged_models_train_better_than_isolation_and_the_oracle_best(run, tmp_path):
    code, _, _ = run(
        "--data_name=toy", "--model_name=linear", "--learning_rate=1e-3",
        "--attack_kinds=model,active,oracle", "--active_rounds=8", "--num_rounds=3",
        "--active_report=1,8", "--active_trials=20",
    )  # fmt: skip
    folder = tmp_path / "out"
    assert code == 0
    # The response to her own model in the first round is that of an isolated client.
    loss = [
        _values(folder, "model", f"active_{k}", "local_loss")[0, "all"] for k in (1, 8)
    ]
    best = _values(folder, "model_oracle", "oracle", "local_loss")[0, "all"]
    assert best < loss[1] < 0.5 * loss[0]
    near, far = (
        _values(folder, "model_forged", f"active_{k}", "forged_distance")[0, "all"]
        for k in (1, 8)
    )
    assert 0 < near < far
    objective = _values(folder, "model_forged", "active_8", "tuning_objective")
    forged = _values(folder, "model_forged", "active_8", "local_loss")
    np.testing.assert_allclose(objective[0, "all"], forged[0, "all"], rtol=1e-3)


@pytest.mark.slow
def test_an_oracle_has_an_optimiser_of_its_own_where_clients_keep_theirs(run, tmp_path):
    code, _, errors = run("--attack_kinds=model,oracle", *_KEPT.split())
    assert code == 0, errors
    assert _settings(tmp_path / "out", "model_oracle") == {"oracle"}


def test_the_attack_begins_with_the_last_model_returned_before_its_start():
    # Three rounds of one parameter; client 1 was absent from the second.
    seen = Transcript(
        round=np.array([[0, 1, 4]]),
        client=np.array([[[0, 1], [0, -1], [0, 1]]]),
        params={"w": np.array([[10.0, 20.0, 30.0]])},
        delta={"w": np.array([[[1.0, 2.0], [3.0, 0.0], [4.0, 5.0]]])},
    )

    messages = views.client_view(seen, range(3))
    has = adversary.Adversary([], seen, messages, progress.Progress())
    late, early = adversary.front(has, None), adversary.front(has, 4)
    assert (late.first, early.first) == (5, 4)
    np.testing.assert_array_equal(late.start["w"][0, :2], [26.0, 25.0])
    np.testing.assert_array_equal(early.start["w"][0, :2], [17.0, 8.0])
    np.testing.assert_array_equal(early.honest["w"][0, :2], [20.0, 10.0])
    np.testing.assert_array_equal(late.before["w"][0, :2], [20.0, 10.0])
    np.testing.assert_array_equal(early.has_messages, [[True, True, False]])


_KEPT = "--client_optimiser=momentum --optimiser_state=kept"
_BAD = {
    "gradients returned": ("--algorithm=fed_sgd", "--algorithm"),
    "an optimiser that is kept": (_KEPT, "--optimiser_state"),
    "step sizes upside down": ("--active_step_sizes=2,1", "--active_step_sizes"),
    "more reported than attacked": ("--active_report=2,9", "--active_report"),
    "nothing reported": ("--active_report=", "--active_report"),
    "starting after the end": ("--active_start=7", "--active_start"),
    "starting before any message": ("--active_start=0", "--active_start"),
    "no isolated rounds": ("--active_grad_rounds=", "--active_grad_rounds"),
    "continuous attribute": ("--data_sensitive=bmi", "--attack_kinds"),
    "one message kept": ("--record=last", "--record"),
}


@pytest.mark.parametrize("argument, named", _BAD.values(), ids=_BAD)
def test_bad_flags_are_one_line_and_leave_nothing(run, tmp_path, argument, named):
    code, _, errors = run("--attack_kinds=grad,active", *argument.split())
    assert code == 2
    assert [line for line in errors.splitlines() if named in line]
    assert "Traceback" not in errors
    assert not (tmp_path / "out").exists()


def test_optuna_is_asked_for_by_name_where_it_is_absent(run, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n: None if n == "optuna" else find(n)
    )
    code, _, errors = run("--attack_kinds=active", "--active_tuner=optuna")
    assert code == 2
    assert "--active_tuner=optuna" in errors and "'.[tune]'" in errors


_RANGES = {"x": Range(0.1, 10.0, logarithmic=True), "y": Range(0.0, 1.0)}
_WEIGHTS = np.array([[1.0, 3.0, 0.0], [2.0, 2.0, 1.0]])


def _choose(evaluate, shared: bool, **more: Any):
    return tuning.choose(
        evaluate, _RANGES, 30, [0, 1], _WEIGHTS,
        **{"tuner": "design", "shared": shared} | more,
    )  # fmt: skip


def _bowl(settings):
    """Client 0 wants y = 0, client 1 wants y = 1, client 2 always fails at once."""
    goal = np.array([0.0, 1.0, 0.5])[:, None]
    loss = (settings[..., 1] - goal) ** 2 + np.log10(settings[..., 0]) ** 2
    loss[0, 2] = np.nan
    return loss


def _check_choices(**more):
    own = _choose(_bowl, False, **more).setting
    shared = _choose(_bowl, True, **more).setting
    assert own[0, 0, 1] < 0.35 and own[0, 1, 1] > 0.65
    assert (shared == shared[:, :1]).all()
    # Weighted by rows, and not by the client of weight 0, whose losses are not finite.
    assert 0.5 < shared[0, 0, 1] and 0.2 < shared[1, 0, 1] < 0.8
    assert (abs(np.log10(shared[..., 0])) < 0.6).all()


def test_a_shared_choice_weighs_clients_by_rows():
    _check_choices()


def test_optuna_chooses_alike_and_again():
    pytest.importorskip("optuna")
    _check_choices(tuner="optuna")
    first, again = (_choose(_bowl, False, tuner="optuna") for _ in range(2))
    np.testing.assert_array_equal(first.setting, again.setting)


def test_a_diverged_trial_is_never_chosen():
    def evaluate(settings):
        loss = _bowl(settings)
        loss[:, :, :-1] = np.inf
        loss[1, 0, 0] = np.nan
        return loss

    chosen = _choose(evaluate, True)
    last = tuning.designs(_RANGES, 30, [0, 1], 3)[:, :, -1]
    np.testing.assert_array_equal(chosen.setting, last)


def test_the_better_of_two_attacks_is_decided_seed_by_seed():
    def row(seed, attack, client, value):
        return results.Row(
            "aia", "d", "mlp", "none", attack, "s", "", seed, client, _ACCURACY,
            value, 1,
        )  # fmt: skip

    rows = [
        row(seed, attack, client, value)
        for seed, attack, value in
        [(0, "a", 70.0), (0, "b", 80.0), (1, "a", 90.0), (1, "b", 60.0)]
        for client in (0, "all")
    ]  # fmt: skip
    found = scoring.better(rows, "either", ("a", "s"), ("b", "s"))
    assert [(r.seed, r.client, r.value) for r in found] == [
        (0, 0, 80.0), (0, "all", 80.0), (1, 0, 90.0), (1, "all", 90.0),
    ]  # fmt: skip
    assert {(r.attack, r.setting) for r in found} == {("either", "s")}

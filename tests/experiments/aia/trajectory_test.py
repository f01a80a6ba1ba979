"""Trajectory matching in a whole run: its rows, its controls, and what is refused."""

import numpy as np
import pytest

from fljax import results

_QUICK = ("--trajectory_iterations=12", "--trajectory_path_steps=3")
_ALONE = "--attack_kinds=trajectory"
_BOTH = "--attack_kinds=model,linear_inversion,trajectory"
_ACCURACY = "aia_accuracy_percent"


def _values(folder, attack, metric=_ACCURACY, client="all"):
    return [
        r.value
        for r in results.read_rows(folder / "rows.jsonl")
        if (r.attack, r.metric, r.client) == (attack, metric, client)
    ]


@pytest.mark.slow
def test_a_run_has_its_rows_and_those_of_its_controls(run, tmp_path):
    every = "--attack_controls=imputation,strangers,permuted"
    code, _, _ = run("--attack_kinds=model,trajectory", every, *_QUICK)
    folder = tmp_path / "out"
    assert code == 0
    for name in ("model", "trajectory"):
        for control in ("", "_strangers", "_permuted"):
            assert len(_values(folder, name + control)) == 1
    assert not _values(folder, "model_global_strangers")
    assert len(_values(folder, "trajectory_strangers", "misfit")) == 1
    assert len(_values(folder, "imputation")) == 2  # one of them from 100 rows
    for metric in ("brier_score", "calibration_error", "misfit"):
        assert np.isfinite(_values(folder, "trajectory", metric)).all()


@pytest.mark.slow
def test_fewer_messages_another_training_and_a_wrong_scale_run(run, tmp_path):
    code, _, _ = run(
        _ALONE, "--trajectory_rounds=3", "--local_epochs=2",
        "--trajectory_estimate_scale", "--trajectory_scale_error=2", *_QUICK,
    )  # fmt: skip
    assert code == 0
    found = _values(tmp_path / "out", "trajectory", "relative_scale")
    assert len(found) == 1 and 0.2 < found[0] < 3


@pytest.mark.slow
def test_clients_that_keep_their_optimiser_are_read_as_such(run, tmp_path):
    few = ("--num_rounds=20", "--model_hidden=16", "--batch_size=none")
    kept = (
        "--client_optimiser=momentum",
        "--optimiser_state=kept",
        "--save_transcript",
    )
    assert run(_ALONE, *few, *kept)[0] == 0
    assert _values(tmp_path / "out", "trajectory", "misfit")[0] < 2
    told = f"--transcript={tmp_path / 'out' / 'transcript-seed0'}"
    code, _, errors = run(_ALONE, *few, kept[0], told, folder="anew")
    assert code == 2 and "--optimiser_state" in errors


@pytest.mark.slow
def test_a_continuous_attribute_has_an_error_in_place_of_a_posterior(run, tmp_path):
    code, _, _ = run("--data_sensitive=bmi", _ALONE, *_QUICK)
    folder = tmp_path / "out"
    assert code == 0
    assert len(_values(folder, "trajectory", "aia_mean_absolute_error")) == 1
    assert not _values(folder, "trajectory", "brier_score")


@pytest.mark.slow
def test_medical_is_read_by_a_passive_adversary(run, tmp_path, shared_data):
    code, _, _ = run(
        "--flagfile=experiments/flags/aia.table1.medical.flags",
        f"--data_dir={shared_data}", "--attack_kinds=model,trajectory", "--seeds=0",
        "--trajectory_iterations=120",
    )  # fmt: skip
    assert code == 0
    (found,) = _values(tmp_path / "out", "trajectory")
    assert found >= 98  # the paper's strongest active attack: 96.8


_BAD = {
    "adam": ([_BOTH, "--client_optimiser=adam"], "they use adam"),
    "proximal": ([_BOTH, "--algorithm=fed_prox"], "does not simulate fed_prox"),
    "pooled": ([_BOTH, "--attack_score=pooled"], "--attack_score"),
    "no control": ([_BOTH, "--attack_controls=friends"], "--attack_controls"),
    "no iteration": ([_BOTH, "--trajectory_iterations=0"], "--trajectory_iterations"),
    "all held out": ([_BOTH, "--trajectory_held_out=1"], "--trajectory_held_out"),
    "last round only": ([_BOTH, "--record=last"], "--record"),
}


@pytest.mark.parametrize("arguments, named", _BAD.values(), ids=_BAD)
def test_bad_input_is_one_line(run, tmp_path, arguments, named):
    code, _, errors = run(*arguments)
    assert code == 2 and "Traceback" not in errors
    assert len([line for line in errors.splitlines() if named in line]) == 1
    assert not (tmp_path / "out").exists()

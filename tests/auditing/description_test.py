"""What a recording says of itself is read as it is meant, and as a stranger's."""

import dataclasses
import pathlib
import sys
import types

import numpy as np
import pandas as pd
import pytest

from fljax import transcript
from fljax.auditing import inputs, local_training, program, recording
from fljax.defenses.registry import DEFENSES
from fljax.driver.config import ConfigError
from fljax.transcript import TranscriptError, description

_TRAINED = {"batch_size": None, "learning_rate": 0.1, "local_epochs": 1}


def _owned(folder, config, record, about):
    frame = pd.read_csv(folder / "rows.csv")
    record(folder / "seen", frame, about={**_TRAINED, **about})
    frame.assign(client=frame.client.map({4: 1, 7: 2})).to_csv(
        folder / "rows.csv", index=False
    )
    told = config(folder)
    return inputs.read(told.files, told.rows).owned


def test_whole_numbers_are_names_where_the_recording_has_them_all(
    linear, config, record
):
    names = {"1": 4, "2": 7, "3": 9}
    owned = _owned(linear, config, record, {"client_names": names})
    assert owned.client.tolist() == [4] * 30 + [7] * 30


@pytest.mark.parametrize("names", [{"north": 4}, {"9" * 5000: 4}, None])
def test_whole_numbers_are_ids_where_they_are_no_names(linear, config, record, names):
    owned = _owned(linear, config, record, {"client_names": names})
    assert owned.client.tolist() == [1] * 30 + [2] * 30


def test_names_of_a_stranger_do_not_steer_the_screen(linear, config, record, capsys):
    names = {"x\x1b[2J": 7, "4": 4}
    record(
        linear / "seen",
        pd.read_csv(linear / "rows.csv"),
        about={**_TRAINED, "client_names": names},
    )
    frame = pd.read_csv(linear / "rows.csv")
    frame[frame.client == 4].to_csv(linear / "rows.csv", index=False)
    program.PROGRAM.run(config(linear, dry_run=True))
    assert "\x1b" not in capsys.readouterr().out


def test_global_models_are_of_those_whose_rows_are_there_whatever_their_ids(tmp_path):
    with transcript.Recorder(tmp_path / "seen") as recorder:
        for number in range(3):
            recorder.record_model(number, {"w": np.full(2, float(number))})
    owner = np.array([2_500_000_000] * 3 + [1, -1])
    seen = recording.with_sums(recording.read(str(tmp_path / "seen")), owner).seen
    assert seen.member[0, 0].tolist() == [1, 2_500_000_000]
    np.testing.assert_array_equal(seen.share[0, 0], np.float32([0.25, 0.75]))


@pytest.mark.parametrize("participation", ["all", 1, 1.0])
def test_what_is_as_usual_may_be_said_in_other_words(tmp_path, participation):
    about = {"participation": participation, "server_optimiser": "SGD"}
    with transcript.Recorder(tmp_path / "seen", about) as recorder:
        for number in range(3):
            recorder.record_model(number, {"w": np.full(2, float(number))})
    read = recording.read(str(tmp_path / "seen"))
    assert np.isfinite(recording.with_sums(read, np.array([0, 1])).seen.share).all()


@pytest.mark.parametrize(
    "about, algorithm, said",
    [
        ({"algorithm": "FedProx", "proximal": 0.1}, "fed_prox", ""),
        ({"algorithm": "FedAvg"}, "fed_avg", ""),
        ({"proximal": 0.1}, "fed_avg", "A proximal term is not simulated"),
        ({"algorithm": "Fed-Adam"}, "fed_avg", ""),
        ({"algorithm": "FedSGD"}, "fed_sgd", ""),
        ({"algorithm": "SCAFFOLD"}, "SCAFFOLD", "'SCAFFOLD' are simulated as FedAvg's"),
        ({"nesterov": True}, "fed_avg", "nesterov is not simulated"),
        ({"max_grad_norm": 1.0}, "fed_avg", "max_grad_norm is not simulated"),
        (
            {"max_grad_norm": 1.0, "defense": "dp_sgd(clip=1, sigma=1)"},
            "fed_avg",
            "",
        ),
        ({"optimiser": "adam", "betas": np.array([0.9, 0.999])}, "fed_avg", ""),
        (
            {"optimiser": "adam", "betas": [0.5, 0.9]},
            "fed_avg",
            "betas of [0.5, 0.9] is simulated as [0.9, 0.999]",
        ),
        (
            {"defense": "DP-SGD, sigma 1"},
            "fed_avg",
            "'DP-SGD, sigma 1' is not simulated",
        ),
        (
            {"defense": "pruning(rate=0.9)"},
            "fed_avg",
            "is not simulated: pruning: expected some of ratio, got 'rate=0.9'",
        ),
        ({"defense": "dp_sgd(clip=1, sigma=1)"}, "fed_avg", ""),
    ],
)
def test_what_is_not_simulated_is_said(about, algorithm, said, config):
    told, about = config(pathlib.Path()).training, {"optimiser": "sgd", **about}
    assert local_training.read(about, told, "seen").algorithm == algorithm
    notes = "".join(local_training.notes(about, told, "seen"))
    assert said in notes and bool(said) == bool(notes)


@pytest.mark.parametrize(
    ("given", "recorded", "said"),
    [
        ({"local_steps": 3}, {"local_epochs": 1}, "=3 replaces the recording's local_epochs of 1"),
        ({"local_epochs": 3}, {"local_steps": 2}, "=3 replaces the recording's local_steps of 2"),
        ({"local_steps": 3}, {"local_steps": 2}, "--local_steps=3 replaces the recording's 2"),
        ({"local_steps": 3}, {}, ""),
        ({"optimiser_state": "new"}, {"optimiser_state": "kept"},
         "--optimiser_state=new replaces the recording's kept"),
        ({"optimiser_state": "kept"}, {}, ""),
        ({"drop_last": False}, {"drop_last": True}, "=False replaces the recording's True"),
        ({"drop_last": True}, {}, ""),
    ],
)  # fmt: skip
def test_what_replaces_the_recordings_work_is_said(config, given, recorded, said):
    told = config(pathlib.Path(), **given).training
    about = {"optimiser": "sgd", **recorded}
    notes = "".join(local_training.notes(about, told, "seen"))
    assert said in notes and bool(said) == bool(notes)


def test_clients_of_fed_sgd_take_their_one_step_whatever_a_flag_says(config):
    given = {"learning_rate": 0.05, "local_epochs": 3, "batch_size": 8}
    told, about = config(pathlib.Path(), **given).training, {"algorithm": "fed_sgd"}
    plain = config(pathlib.Path()).training
    fixed = local_training.read(about, plain, "seen")
    assert local_training.read(about, told, "seen") == fixed
    notes = " ".join(local_training.notes(about, told, "seen"))
    for flag in ("--learning_rate=0.05", "--local_epochs=3", "--batch_size=8"):
        assert f"{flag} is not used: clients of fed_sgd take one step" in notes


def test_a_recording_beside_a_folder_of_its_name_is_taken(linear, record):
    frame = pd.read_csv(linear / "rows.csv")
    record(linear / "seen", frame, about=_TRAINED)
    (linear / "seen").mkdir()
    read = recording.read(linear / "seen")
    assert read.seen.client.size


@pytest.mark.parametrize("levels", [["low", "mid"], [0, 1]])
def test_texts_of_some_classes_are_no_numbers_of_all(linear, config, levels):
    frame = pd.read_csv(linear / "rows.csv")
    frame.assign(y=np.resize(levels, len(frame))).to_csv(
        linear / "rows.csv", index=False
    )
    told = config(linear, task="multiclass", classes=3, model="mlp:8", dry_run=True)
    refused = pytest.raises(
        ConfigError, match="--classes: 3, but .* only low, mid; tex"
    )
    other = pytest.raises(TranscriptError, match="not those of --model")
    with refused if levels[0] == "low" else other:
        program.PROGRAM.run(told)


def test_what_is_read_is_known_to_who_asks_about_names(config):
    asked = set()

    class Asked(dict):
        def get(self, name, default=None):
            asked.add(name)
            return super().get(name, default)

    told = config(pathlib.Path()).training
    local_training.read(Asked(optimiser="sgd"), told, "seen")
    misspelt = [f"{name}s" for name in asked]
    assert len(asked) > 9 and set(description.meant(misspelt).values()) == asked


@pytest.mark.parametrize("name", ["sgdd", "momentum"])
def test_what_is_no_optimiser_is_refused(config, name):
    told = config(pathlib.Path(), optimiser=name).training
    with pytest.raises(ConfigError, match=rf"^--optimiser: expected sgd.*got {name}$"):
        local_training.read({}, told, "seen")
    for known in ("Yogi", "adamw"):
        told = config(pathlib.Path(), optimiser=known).training
        assert local_training.read({}, told, "seen").optimiser == known.lower()


def test_a_recording_names_no_code_to_run(config, tmp_path, monkeypatch):
    (tmp_path / "evil_defense.py").write_text("raise SystemExit('it ran')")
    monkeypatch.syspath_prepend(tmp_path)
    told = config(pathlib.Path()).training
    about = {"defense": "evil_defense:x"}
    assert local_training.simulated(about, told, "seen") is None
    (said,) = [n for n in local_training.notes(about, told, "seen") if "evil" in n]
    assert "is not simulated" in said


def test_a_defense_that_does_not_say_what_it_does_is_named(config, monkeypatch):
    silent = dataclasses.replace(DEFENSES["median"], effects=None)
    monkeypatch.setitem(sys.modules, "mine", types.SimpleNamespace(SILENT=silent))
    told = config(pathlib.Path()).training
    for text, count in (("mine:SILENT", 1), ("median", 0)):
        asked = dataclasses.replace(told, defense=text)
        notes = local_training.notes({}, asked, "seen")
        assert sum("do not know what mine:SILENT does" in n for n in notes) == count


def test_a_recordings_alternatives_are_not_counted_out(config):
    some = "dp_sgd(clip=1|2|3|4|5|6|7|8|9, sigma=1|2|3|4|5|6|7|8|9)"
    about = {"defense": " + ".join([some] * 5)}  # thousands of millions of specs
    told = config(pathlib.Path()).training
    assert len(about["defense"]) < 300
    assert local_training.simulated(about, told, "seen") is None


@pytest.mark.parametrize("names", [{"1": 4}, {"01": 4, "02": 7}, {"1": 4, "3": 7}])
def test_whole_numbers_that_may_be_names_or_ids_are_refused(
    linear, config, record, names
):
    with pytest.raises(ConfigError, match="1 in column 'client' .* may be an id of"):
        _owned(linear, config, record, {"client_names": names})

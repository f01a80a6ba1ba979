"""What a recording says of how its clients train: names, and what is nearly one."""

import numpy as np
import pytest

from fljax.transcript import Recorder, TranscriptError, description


@pytest.mark.parametrize(
    "name, known",
    [
        ("lr", "learning_rate"), ("batchsize", "batch_size"), ("Momentum", "momentum"),
        ("local-epochs", "local_epochs"), ("defence", "defense"), ("optimzer", "optimizer"),
    ],
)  # fmt: skip
def test_a_name_that_is_nearly_right_is_told(name, known):
    assert description.meant([name]) == {name: known}


@pytest.mark.parametrize(
    "name",
    ["learning_rate", "optimizer", "client_names", "site", "rounds", "seed", "rows"],
)
def test_names_that_are_read_or_ones_own_are_not(name):
    assert not description.meant([name])


def test_nothing_is_missing_where_the_near_one_is_there():
    assert not description.meant(["learning_rate_decay", "learning_rate"])


def test_a_recorder_warns_at_once_and_keeps_what_it_was_given(tmp_path):
    with pytest.warns(UserWarning, match="'lr'; learning_rate"):
        recorder = Recorder(tmp_path / "seen", {"lr": 0.1})
    assert recorder.about == {"lr": 0.1}


def test_a_recorder_that_goes_on_says_what_is_described_otherwise(tmp_path):
    told = {"learning_rate": (0.1, 0.2), "batch_size": np.int64(8)}
    recorder = Recorder(tmp_path / "seen", told)
    recorder.record(0, {"w": np.zeros(1)}, {0: {"w": np.ones(1)}})
    more = told | {"momentum": 0.9}
    Recorder(tmp_path / "seen", more)  # nothing to warn of
    with pytest.warns(UserWarning, match="about: batch_size was 8 .* and is 4 now"):
        recorder = Recorder(tmp_path / "seen", more | {"batch_size": 4})
    assert recorder.about["batch_size"] == 4 and recorder.about["momentum"] == 0.9


def test_nobody_goes_on_with_a_recording_that_was_finished_and_not_cleared(
    tmp_path, monkeypatch
):
    recorder = Recorder(tmp_path / "seen")
    recorder.record(0, {"w": np.zeros(1)}, {0: {"w": np.ones(1)}})
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)  # killed before it
    recorder.finish()
    with pytest.raises(TranscriptError, match="is a finished recording"):
        Recorder(tmp_path / "seen")


def test_nothing_is_added_to_a_finished_recording(tmp_path):
    models = {"w": np.zeros(1)}, {0: {"w": np.ones(1)}}
    with Recorder(tmp_path / "seen") as recorder:
        recorder.record(0, *models)
    whole = (tmp_path / "seen.npz").read_bytes()
    for add in (
        lambda: recorder.record(1, *models),
        lambda: recorder.describe(delta=0.1),
        recorder.finish,
    ):
        with pytest.raises(TranscriptError, match="seen.rounds"):
            add()
    assert (tmp_path / "seen.npz").read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seen.json", "seen.npz"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", "0.1"), ("batch_size", -3), ("local_epochs", 0.5),
        ("optimiser", ["sgd"]), ("delta", 2.0), ("defense", 8),
        ("client_names", [1, 2]), ("client_names", {"north": "4"}),
        ("client_names", {"north": 4, "south": 4}),
        ("server_learning_rate", "fast"), ("server_optimiser", 3), ("participation", []),
    ],
)  # fmt: skip
def test_what_no_attack_could_read_is_refused_before_it_is_recorded(
    tmp_path, name, value
):
    with pytest.raises(TranscriptError, match=f"^about, {name}: expected"):
        Recorder(tmp_path / "run", {name: value})
    assert not (tmp_path / "run.npz").exists()
    Recorder(tmp_path / "run", {"batch_size": None})


@pytest.mark.parametrize("about", ["sgd", {1: 2}, 3])
def test_a_description_is_a_mapping(tmp_path, about):
    with pytest.raises(TranscriptError, match="about: expected a mapping .* got "):
        Recorder(tmp_path / "run", about)
    assert not list(tmp_path.iterdir())

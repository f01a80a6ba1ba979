"""What a stopped run keeps, and what it refuses to go on from."""

import dataclasses
import json
import os
import signal

import numpy as np
import pytest

from fljax.data import FileRecord
from fljax.driver import run_dir
from fljax.driver.config import ConfigError
from fljax.driver.resume import Unfinished


def _unfinished(folder, minutes=0.0, digest="a"):
    return Unfinished(folder, digest, minutes)


def _part(whole, name):
    return whole.of(
        [FileRecord(name="rows.csv", sha256="0" * 64, origin="local")]
    ).part(name)


def _never():
    raise AssertionError("computed again")


def test_a_finished_stage_is_not_computed_again(tmp_path):
    first = _part(_unfinished(tmp_path), "point0")
    assert first.once("model", lambda: [1.5, "x"]) == [1.5, "x"]
    assert _part(_unfinished(tmp_path), "point0").once("model", _never) == [1.5, "x"]
    assert _part(_unfinished(tmp_path), "point1").once("model", lambda: 2) == 2
    assert run_dir.begun(tmp_path)["digest"] == "a"


def test_other_files_or_texts_are_other_work(tmp_path):
    file = FileRecord(name="rows.csv", sha256="0" * 64, origin="local")
    renamed, changed = (
        dataclasses.replace(file, name="other.csv"),
        dataclasses.replace(file, sha256="1" * 64),
    )
    _unfinished(tmp_path).of([file], "x").once("model", lambda: 1)
    assert _unfinished(tmp_path).of([renamed], "x").once("model", _never) == 1
    assert _unfinished(tmp_path).of([changed], "x").once("model", lambda: 2) == 2
    assert _unfinished(tmp_path).of([file], "y").once("model", lambda: 3) == 3
    assert _unfinished(tmp_path).of([file, file], "x").once("model", lambda: 4) == 4


def test_nothing_is_written_before_the_time_has_come(tmp_path):
    part = _part(_unfinished(tmp_path, minutes=10.0), "point0")
    part.once("model", lambda: 1)
    assert not list(tmp_path.iterdir())


def test_nothing_is_ever_written_if_told_so(tmp_path):
    whole = _unfinished(tmp_path, minutes=None)
    states = _part(whole, "a").states("train")
    states.reached(1, lambda: np.zeros(1))
    assert states.latest(np.zeros(1)) is None
    assert _part(whole, "a").once("model", lambda: 1) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[" * 5000])
def test_a_stage_that_cannot_be_read_is_computed_again(tmp_path, content):
    _part(_unfinished(tmp_path), "a").once("model", lambda: 1)
    (path,) = tmp_path.rglob("model.json")
    path.write_text(content)
    assert _part(_unfinished(tmp_path), "a").once("model", lambda: 2) == 2


def test_a_loop_goes_on_from_its_last_state(tmp_path):
    states = _part(_unfinished(tmp_path), "a").states("train")
    assert states.latest(np.zeros(2)) is None
    for step in (1, 2):
        states.reached(step, lambda at=step: np.full(2, float(at)))
    part = _part(_unfinished(tmp_path), "a")
    step, found = part.states("train").latest(np.zeros(2))
    assert (step, found.tolist()) == (2, [2.0, 2.0])
    part.forget("train")
    again = _part(_unfinished(tmp_path), "a").states("train")
    assert again.latest(np.zeros(2)) is None


@pytest.mark.parametrize(
    ("key", "value"), [("digest", "b"), ("packages", {"jax": "0.1"}), ("devices", 77)]
)
def test_what_others_have_begun_is_refused(tmp_path, key, value):
    _part(_unfinished(tmp_path), "a").once("model", lambda: 1)
    path = tmp_path / "unfinished" / "identity.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(ConfigError, match=f"with other {key}; remove it") as error:
        _unfinished(tmp_path)
    assert "\n" not in str(error.value)


def test_a_folder_with_a_beginning_belongs_to_its_configuration(tmp_path):
    folder = tmp_path / "run"
    _, digest = run_dir.claim(str(folder), "aia", "toy", {"seeds": [0]})
    _part(_unfinished(folder, digest=digest), "a").once("model", lambda: 1)
    kept = {"seeds": [0], "checkpoint_minutes": 3.0}
    assert run_dir.claim(str(folder), "aia", "toy", kept) == (folder, digest)
    with pytest.raises(ConfigError, match="another configuration"):
        run_dir.claim(str(folder), "aia", "toy", {"seeds": [1]})


def test_the_first_interruption_keeps_what_is_next_and_says_where(tmp_path, capsys):
    whole = _unfinished(tmp_path, minutes=10.0)
    done = []
    stopped = pytest.raises(KeyboardInterrupt, match="the same command goes on from")
    with stopped, whole.interruptible():
        _part(whole, "a").once("first", lambda: 1)
        os.kill(os.getpid(), signal.SIGINT)
        done.append("not stopped at once")
        _part(whole, "a").once("second", lambda: 2)
        done.append("never")
    assert done == ["not stopped at once"]
    assert "a second Ctrl-C stops at once" in capsys.readouterr().err
    part = _part(_unfinished(tmp_path), "a")
    assert part.once("first", _never) == 1
    assert part.once("second", _never) == 2


def test_the_second_interruption_stops_at_once(tmp_path):
    whole, before = _unfinished(tmp_path, minutes=10.0), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), whole.interruptible():
        for _ in range(20):  # one that falls into a callback of the collector is lost
            os.kill(os.getpid(), signal.SIGINT)
        _never()
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGINT) is before


def test_a_full_disk_is_told_and_what_was_not_written_is_written_later(
    tmp_path, capsys, monkeypatch
):
    whole = _unfinished(tmp_path)
    _part(whole, "a").once("first", lambda: 1)
    with monkeypatch.context() as patch:

        def full(*_):
            raise OSError(28, "No space left on device")

        patch.setattr("fljax.driver.resume.files.write_text", full)
        assert _part(whole, "a").once("second", lambda: 2) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert said.count("\n") == 1
    _part(whole, "a").once("third", lambda: 3)
    part = _part(_unfinished(tmp_path), "a")
    assert part.once("first", _never) == 1
    assert part.once("second", _never) == 2  # written once there was room
    assert part.once("third", _never) == 3


def test_removing_leaves_nothing(tmp_path):
    whole = _unfinished(tmp_path)
    _part(whole, "a").once("first", lambda: 1)
    whole.remove()
    assert not list(tmp_path.iterdir())

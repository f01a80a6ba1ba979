"""What a stopped run keeps, and what it refuses to go on from."""

import dataclasses
import json
import os
import signal

import numpy as np
import pytest

from fljax.data import FileRecord
from fljax.driver import run_folder, source, stage_cache
from fljax.driver.autosave import Autosave
from fljax.driver.config import ConfigError

_FILE = FileRecord(name="rows.csv", sha256="0" * 64, origin="local")


def _autosave(folder, minutes=0.0, digest="a"):
    found = Autosave(folder, digest, minutes)
    found.open()
    return found


def _part(whole, name):
    return stage_cache.of_files(whole, [_FILE]).part(name)


def _never():
    raise AssertionError("computed again")


def test_a_finished_stage_is_not_computed_again(tmp_path):
    first = _part(_autosave(tmp_path), "point0")
    assert first.cached("model", lambda: [1.5, "x"]) == [1.5, "x"]
    assert _part(_autosave(tmp_path), "point0").cached("model", _never) == [1.5, "x"]
    assert _part(_autosave(tmp_path), "point1").cached("model", lambda: 2) == 2
    assert run_folder.begun(tmp_path)["digest"] == "a"


def test_other_files_or_texts_are_other_work(tmp_path):
    renamed = dataclasses.replace(_FILE, name="other.csv")
    changed = dataclasses.replace(_FILE, sha256="1" * 64)

    def cached(files, text, compute):
        cache = stage_cache.of_files(_autosave(tmp_path), files, text)
        return cache.cached("model", compute)

    cached([_FILE], "x", lambda: 1)
    assert cached([renamed], "x", _never) == 1
    assert cached([changed], "x", lambda: 2) == 2
    assert cached([_FILE], "y", lambda: 3) == 3
    assert cached([_FILE, _FILE], "x", lambda: 4) == 4


def test_nothing_is_written_before_the_time_has_come(tmp_path):
    part = _part(_autosave(tmp_path, minutes=10.0), "point0")
    part.cached("model", lambda: 1)
    assert not list(tmp_path.iterdir())


def test_nothing_is_ever_written_if_told_so(tmp_path):
    whole = _autosave(tmp_path, minutes=None)
    states = _part(whole, "a").states("train")
    states.reached(1, lambda: np.zeros(1))
    assert states.latest(np.zeros(1)) is None
    assert _part(whole, "a").cached("model", lambda: 1) == 1
    assert not list(tmp_path.iterdir())


def _flipped(content):
    """One digit of the last number is another one."""
    return content[:-2] + bytes([content[-2] ^ 1]) + content[-1:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"[]",
        lambda content: b"\xff" * 9,
        lambda content: b"[" * 5000,
        lambda content: content[:-1],
        lambda content: content[content.index(b"[") :],
        _flipped,
    ],
    ids=["empty", "list", "no_text", "deep", "cut", "unsigned", "flipped"],
)
def test_a_damaged_stage_is_computed_again(tmp_path, damage):
    _part(_autosave(tmp_path), "a").cached("model", lambda: [60.60])
    (path,) = tmp_path.rglob("model.json")
    path.write_bytes(damage(path.read_bytes()))
    assert _part(_autosave(tmp_path), "a").cached("model", lambda: [1.0]) == [1.0]


def test_stages_of_which_nobody_knows_who_computed_them_are_not_there(tmp_path):
    _part(_autosave(tmp_path), "a").cached("model", lambda: 1)
    (tmp_path / "unfinished" / "identity.json").write_text("[")
    assert _part(_autosave(tmp_path), "a").cached("model", lambda: 2) == 2


def test_what_other_code_began_is_refused(tmp_path, monkeypatch):
    _part(_autosave(tmp_path), "a").cached("model", lambda: 1)
    monkeypatch.setattr(source, "sha256", lambda package: "0" * 64)
    with pytest.raises(ConfigError, match="was computed with other code; remove it"):
        _autosave(tmp_path)


def test_what_xla_computed_under_other_flags_is_refused(tmp_path, monkeypatch):
    _part(_autosave(tmp_path), "a").cached("model", lambda: 1)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    with pytest.raises(ConfigError, match="was computed with other xla_flags; remove"):
        _autosave(tmp_path)


def test_a_loop_goes_on_from_its_last_state(tmp_path):
    states = _part(_autosave(tmp_path), "a").states("train")
    assert states.latest(np.zeros(2)) is None
    for step in (1, 2):
        states.reached(step, lambda at=step: np.full(2, float(at)))
    part = _part(_autosave(tmp_path), "a")
    step, found = part.states("train").latest(np.zeros(2))
    assert (step, found.tolist()) == (2, [2.0, 2.0])
    part.forget("train")
    again = _part(_autosave(tmp_path), "a").states("train")
    assert again.latest(np.zeros(2)) is None


@pytest.mark.parametrize("place", ["", "deep/train"])
def test_nothing_is_cleared_or_written_through_a_link(tmp_path, place):
    theirs = tmp_path / "theirs" / "7"
    theirs.mkdir(parents=True)
    link = tmp_path / "run" / run_folder.UNFINISHED / place
    link.parent.mkdir(parents=True)
    link.symlink_to(theirs.parent)
    _autosave(tmp_path / "run")
    assert not link.exists() and theirs.is_dir()


@pytest.mark.parametrize(
    ("key", "value"),
    [("digest", "b"), ("packages", {"jax": "0.1"}), ("devices", 77), ("cpus", 77)],
)
def test_what_others_have_begun_is_refused(tmp_path, key, value):
    _part(_autosave(tmp_path), "a").cached("model", lambda: 1)
    path = tmp_path / "unfinished" / "identity.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(ConfigError, match=f"with other {key}; remove it") as error:
        _autosave(tmp_path)
    assert "\n" not in str(error.value)


def test_a_folder_with_a_beginning_belongs_to_its_configuration(tmp_path):
    folder = tmp_path / "run"
    _, digest = run_folder.claim(str(folder), "aia", "toy", {"seeds": [0]})
    _part(_autosave(folder, digest=digest), "a").cached("model", lambda: 1)
    kept = {"seeds": [0], "checkpoint_minutes": 3.0}
    assert run_folder.claim(str(folder), "aia", "toy", kept) == (folder, digest)
    with pytest.raises(ConfigError, match="another configuration"):
        run_folder.claim(str(folder), "aia", "toy", {"seeds": [1]})


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_first_interruption_keeps_what_is_next_and_says_where(
    tmp_path, capsys, how
):
    before = signal.getsignal(how)
    whole = _autosave(tmp_path, minutes=10.0)
    done = []
    stopped = pytest.raises(KeyboardInterrupt, match="the same command goes on from")
    with stopped, whole.interruptible():
        _part(whole, "a").cached("first", lambda: 1)
        os.kill(os.getpid(), how)
        done.append("not stopped at once")
        _part(whole, "a").cached("second", lambda: 2)
        done.append("never")
    assert done == ["not stopped at once"] and signal.getsignal(how) is before
    assert "a second Ctrl-C stops at once" in capsys.readouterr().err
    part = _part(_autosave(tmp_path), "a")
    assert part.cached("first", _never) == 1
    assert part.cached("second", _never) == 2


def test_the_second_interruption_stops_at_once(tmp_path):
    whole, before = _autosave(tmp_path, minutes=10.0), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), whole.interruptible():
        for _ in range(20):  # one that falls into a callback of the collector is lost
            os.kill(os.getpid(), signal.SIGINT)
        _never()
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGINT) is before


def test_a_full_disk_is_told_and_what_was_not_written_is_written_later(
    tmp_path, capsys, monkeypatch
):
    whole = _autosave(tmp_path)
    _part(whole, "a").cached("first", lambda: 1)
    with monkeypatch.context() as patch:

        def full(*_):
            raise OSError(28, "No space left on device")

        patch.setattr("fljax.files.write_text", full)
        assert _part(whole, "a").cached("second", lambda: 2) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert said.count("\n") == 1
    _part(whole, "a").cached("third", lambda: 3)
    part = _part(_autosave(tmp_path), "a")
    assert part.cached("first", _never) == 1
    assert part.cached("second", _never) == 2  # written once there was room
    assert part.cached("third", _never) == 3

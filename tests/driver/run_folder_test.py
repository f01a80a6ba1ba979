"""The folder of a run: whose it is, and what is refused before any work."""

import importlib.metadata
import json
import os

import pytest

import fljax
from fljax.driver import run_folder
from fljax.driver.config import ConfigError

_VALUES = {"batch_size": 32, "learning_rate": 0.1}


def _claim(path, values=_VALUES):
    return run_folder.claim(str(path), "aia", "toy.linear", values)


def _refusal(path):
    with pytest.raises(ConfigError) as error:
        _claim(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def _finish(path, values=_VALUES, **more):
    path.mkdir(exist_ok=True)
    (path / "rows.jsonl").write_text("{}\n")
    manifest = json.dumps({"digest": run_folder.digest(values), **more})
    (path / "manifest.json").write_text(manifest)


@pytest.fixture
def mode_bits_decide(monkeypatch):
    """Lets the owner's mode bits decide also for root, to whom all is allowed."""

    def access(path, needed):
        return os.stat(path).st_mode >> 6 & needed == needed

    monkeypatch.setattr(os, "access", access)


def test_a_folder_that_is_missing_or_empty_is_free_and_stays_as_it_is(tmp_path):
    new = tmp_path / "new" / "folder"
    assert _claim(new) == (new, run_folder.digest(_VALUES))
    assert _claim(tmp_path)[0] == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_without_a_chosen_folder_the_name_holds_the_digest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, identity = run_folder.claim(None, "aia", "toy.linear", _VALUES)
    assert str(path) == f"runs/aia.toy.linear-{identity[:8]}"


def test_the_same_configuration_may_use_its_folder_again(tmp_path):
    _finish(tmp_path / "run")
    _claim(tmp_path / "run", _VALUES | {"run_dir": "elsewhere", "dry_run": True})


def test_the_folder_of_another_configuration_is_refused(tmp_path):
    _finish(tmp_path / "run", _VALUES | {"batch_size": 64})
    assert _refusal(tmp_path / "run") == (
        f"--run_dir: {tmp_path}/run holds the results of another configuration; "
        "choose another folder or remove it"
    )


def test_it_is_said_which_flags_differ(tmp_path):
    theirs = _VALUES | {"batch_size": 64}
    _finish(tmp_path / "run", theirs, flags=theirs | {"run_dir": "elsewhere"})
    assert "configuration (--batch_size differs); choose" in _refusal(tmp_path / "run")
    _finish(tmp_path / "many", theirs, flags={})
    said = "(--batch_size, --learning_rate differ)"
    assert said in _refusal(tmp_path / "many")
    _finish(tmp_path / "older", theirs, flags={"learning_rate": 0.2})
    said = "(--learning_rate, --batch_size differ)"  # which that version had not
    assert said in _refusal(tmp_path / "older")


@pytest.mark.parametrize("manifest", [None, "", "[]", "{}"])
def test_files_without_a_finished_run_are_refused_as_such(tmp_path, manifest):
    (tmp_path / "rows.jsonl").write_text("{}\n")
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    assert _refusal(tmp_path) == (
        f"--run_dir: {tmp_path} holds files but no finished run; "
        "choose another folder, or empty this one"
    )


def test_a_name_that_is_too_long_is_refused(tmp_path):
    said = _refusal(tmp_path / ("x" * 300))
    assert said.startswith(f"--run_dir: {tmp_path}")
    assert said.endswith(": File name too long")
    with pytest.raises(ConfigError, match="File name too long"):
        run_folder.Lock(tmp_path / "new" / ("x" * 300), "digest")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("below", ["", "run", "run/deeper"])
def test_a_file_or_a_path_below_one_is_refused(tmp_path, below):
    (tmp_path / "file").touch()
    assert _refusal(tmp_path / "file" / below) == (
        f"--run_dir: expected a folder, {tmp_path}/file is a file"
    )


def test_a_folder_that_cannot_be_created_is_refused(tmp_path, mode_bits_decide):
    (tmp_path / "shut").mkdir(mode=0o500)
    assert _refusal(tmp_path / "shut" / "new" / "run") == (
        f"--run_dir: {tmp_path}/shut/new/run cannot be created in {tmp_path}/shut"
    )


@pytest.mark.parametrize("mode", [0o500, 0o600, 0o300])
def test_a_folder_that_cannot_be_used_is_refused(tmp_path, mode_bits_decide, mode):
    (tmp_path / "shut").mkdir(mode=mode)
    assert _refusal(tmp_path / "shut") == (
        f"--run_dir: {tmp_path}/shut cannot be read and written"
    )


def test_the_digest_ignores_the_order_of_keys_and_sees_every_value():
    digest = run_folder.digest
    assert digest(dict(reversed(_VALUES.items()))) == digest(_VALUES)
    changed = [_VALUES, _VALUES | {"batch_size": 33}, _VALUES | {"clip": None}]
    assert len({digest(values) for values in changed}) == 3


def test_the_environment_names_every_package_that_makes_numbers():
    packages = run_folder.environment()["packages"]
    assert {"fljax", "jax", "scikit-learn", "folktables"} <= packages.keys()
    assert all(packages.values())
    json.dumps(packages, allow_nan=False)


def test_without_installation_fljax_still_has_a_version(monkeypatch):
    def version(package):
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", version)
    packages = run_folder.environment()["packages"]
    assert packages["fljax"] == fljax.__version__
    assert packages["folktables"] is None


def test_a_second_run_in_a_folder_is_refused_with_the_name_of_the_first(tmp_path):
    path, identity = _claim(tmp_path / "run")
    first = run_folder.Lock(path, identity)
    with pytest.raises(ConfigError, match="is in use by another run") as error:
        run_folder.Lock(path, identity)
    assert f"process {os.getpid()}" in str(error.value)
    assert "\n" not in str(error.value)
    first.release(finished=False)
    assert not path.exists()


def test_a_folder_that_was_claimed_since_is_refused_and_stays_as_it_is(tmp_path):
    path, identity = _claim(tmp_path / "run")
    _finish(path, _VALUES | {"batch_size": 64})
    before = {each.name for each in path.iterdir()}
    with pytest.raises(ConfigError, match="another configuration"):
        run_folder.Lock(path, identity)
    assert {each.name for each in path.iterdir()} == before


@pytest.mark.parametrize("written", [b"", b'{"digest": "1', b'{"digest": "0"}'])
def test_a_run_that_died_before_it_wrote_anything_leaves_a_free_folder(
    tmp_path, written
):
    (tmp_path / run_folder.LOCK).write_bytes(written)
    path, identity = _claim(tmp_path)
    run_folder.Lock(path, identity).release(finished=False)
    assert not list(tmp_path.iterdir())


def test_a_mark_that_is_a_link_is_not_written_through(tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / run_folder.LOCK).symlink_to(precious)
    with pytest.raises(ConfigError, match="run.lock is a symbolic link"):
        run_folder.Lock(tmp_path / "run", run_folder.digest(_VALUES))
    assert precious.read_text() == "mine"


def test_a_run_that_died_leaves_a_folder_that_is_its_own(tmp_path):
    path, identity = _claim(tmp_path / "run")
    lock = run_folder.Lock(path, identity)
    (path / "rows.jsonl").touch()
    lock.release(finished=False)  # as the system does
    assert _claim(path) == (path, identity)
    with pytest.raises(ConfigError, match="another configuration"):
        _claim(path, _VALUES | {"batch_size": 64})


def test_a_mark_that_finds_no_room_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    folder = tmp_path / "new" / "run"
    with pytest.raises(ConfigError, match="cannot be written: No space left"):
        run_folder.Lock(folder, "a")
    assert not (tmp_path / "new").exists()
    monkeypatch.undo()
    lock = run_folder.Lock(folder, "a")
    (folder / "begun").touch()
    lock.release(finished=False)
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(ConfigError, match="cannot be written: No space left"):
        run_folder.Lock(folder, "a")
    with pytest.raises(ConfigError, match="of another configuration"):
        run_folder.claim(str(folder), "aia", "toy", {})  # the owner's mark stands

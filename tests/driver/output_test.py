"""What is left of a run that dies while it writes its results."""

import importlib
import json
import os
import resource

import pytest

from fljax import results
from fljax.driver import run_folder
from fljax.driver.config import ConfigError
from fljax.driver.option import RunFlags
from fljax.driver.output import Output, Results

_DRAWN = {"curve": b"<svg/>"}


def _output(folder, **flags):
    return Output(RunFlags(run_dir=str(folder)), "aia", "toy", {"seeds": [0]} | flags)


def _die(lock, *, finished):
    """What is left to do for the system when a process is killed."""
    del finished
    os.close(lock._file)


class _KilledError(BaseException):
    """Stands for a signal."""


_WRITES = ("fljax.results.write_rows", "fljax.results.write_manifest",
           "fljax.files.replacing", "fljax.files.clear")  # fmt: skip


@pytest.mark.parametrize("earlier", [False, True], ids=["new", "again"])
@pytest.mark.parametrize("write", _WRITES)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_the_same_command_works_after_a_death_between_any_two_writes(
    tmp_path, row, monkeypatch, write, after, earlier
):
    folder = tmp_path / "run"
    if earlier:
        _output(folder).write(Results([row], _DRAWN))
    with monkeypatch.context() as patch:
        real = getattr(*_target(write))

        def die(*arguments):
            if after:
                real(*arguments)
            raise _KilledError

        patch.setattr(write, die)
        patch.setattr(run_folder.Lock, "release", _die)
        with pytest.raises(_KilledError):
            _output(folder).write(Results([row], _DRAWN))
    finished = after and write.endswith("manifest")
    assert (folder / "manifest.json").exists() == finished
    if {path.name for path in folder.iterdir()} != {run_folder.LOCK}:
        with pytest.raises(ConfigError, match="another configuration"):
            _output(folder, seeds=[1])
    with _output(folder) as out:
        out.write(Results([row], _DRAWN))
    assert {p.name for p in folder.iterdir()} == {
        "rows.jsonl", "curve.svg", "manifest.json",
    }  # fmt: skip
    assert results.read_rows(folder / "rows.jsonl") == [row]


def _target(name):
    module, _, attribute = name.rpartition(".")
    return importlib.import_module(module), attribute


def test_a_disk_that_is_full_at_the_end_is_one_line(tmp_path, row, monkeypatch):
    with monkeypatch.context() as patch:

        def full(*_):
            raise OSError(28, "No space left on device")

        patch.setattr("fljax.results.write_rows", full)
        with pytest.raises(ConfigError, match="No space left on device; the same"):
            _output(tmp_path / "run").write(Results([row], _DRAWN))
    _output(tmp_path / "run").write(Results([row], _DRAWN))


def test_a_file_that_finds_no_room_is_not_half_written(tmp_path, row):
    folder, large = tmp_path / "run", {"curve": b"x" * 10_000}
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(ConfigError, match="cannot be written: File too large; the"):
            _output(folder).write(Results([row], large))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert {each.name for each in folder.iterdir()} == {"rows.jsonl", "run.lock"}
    assert results.read_rows(folder / "rows.jsonl") == [row]
    _output(folder).write(Results([row], large))


def test_the_manifest_names_the_code(tmp_path, row):
    _output(tmp_path / "run").write(Results([row]))
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert len(manifest["code"]["fljax"]) == 64


def test_a_folder_that_is_worked_in_is_refused(tmp_path, row):
    in_use = pytest.raises(ConfigError, match="is in use by another run: process")
    with _output(tmp_path / "run"), in_use:
        _output(tmp_path / "run").write(Results([row]))
    assert not (tmp_path / "run").exists()


def test_what_another_run_has_not_signed_yet_stays(tmp_path, row):
    part = tmp_path / "run" / "unfinished" / "part.json"
    with _output(tmp_path / "run"):
        part.parent.mkdir()
        part.write_text("{}")
        with pytest.raises(ConfigError, match="in use"):
            _output(tmp_path / "run").write(Results([row]))
        assert part.exists()
    _output(tmp_path / "run").write(Results([row]))
    assert not part.exists()

"""Compiled programs are kept in a folder of the user's own."""

import os
import pathlib
import subprocess
import sys
import zlib

import jax
import pytest

from fljax import compiled, files

_RUN = """
from fljax import compiled
compiled._SECONDS = 0
compiled.keep()
import jax
events = []
jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
print(float(jax.jit(lambda x: (x * 2).sum())(jax.numpy.arange(3.0))))
print(sum(name.endswith("cache_hits") for name in events) > 0)
"""


def _run(cache, **env):
    chosen = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    chosen |= {"FLJAX_CACHE": str(cache), **env}
    told = [sys.executable, "-c", _RUN]
    done = subprocess.run(told, env=chosen, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_second_run_compiles_nothing(tmp_path):
    assert _run(tmp_path) == ["6.0", "False"]
    (folder,) = (tmp_path / f"compiled-{os.getuid()}").iterdir()
    assert folder.name == compiled._machine() and any(folder.iterdir())
    assert _run(tmp_path) == ["6.0", "True"]
    assert _run(tmp_path, JAX_ENABLE_COMPILATION_CACHE="false") == ["6.0", "False"]


@pytest.fixture
def chosen(tmp_path, monkeypatch):
    """Settings that `keep` makes, where none were made before."""
    found = {}
    monkeypatch.setenv("FLJAX_CACHE", str(tmp_path))
    monkeypatch.delenv(compiled._CHOSEN, raising=False)
    monkeypatch.setattr(type(jax.config), compiled._DIR, None)
    monkeypatch.setattr(jax.config, "update", found.__setitem__)
    return found


def test_a_folder_that_others_can_write_is_not_used(tmp_path, chosen):
    compiled.keep()
    folder = pathlib.Path(chosen[compiled._DIR])
    assert folder.parent.parent == tmp_path
    assert folder.stat().st_mode & 0o077 == 0
    for each in (folder, folder.parent, tmp_path):
        chosen.clear()
        before = each.stat().st_mode
        each.chmod(0o777)
        compiled.keep()
        assert not chosen
        each.chmod(before)
    compiled.keep()
    assert chosen


def test_what_was_chosen_before_stays(monkeypatch, chosen):
    monkeypatch.setenv(compiled._CHOSEN, "5")
    compiled.keep()
    assert list(chosen) == [compiled._DIR]
    chosen.clear()
    monkeypatch.setattr(type(jax.config), compiled._DIR, "elsewhere")
    compiled.keep()
    assert not chosen


def test_the_oldest_programs_make_room(tmp_path, chosen, monkeypatch):
    compiled.keep()
    folder = pathlib.Path(chosen[compiled._DIR])
    for age, name in enumerate(("new", "older", "oldest")):
        (folder / name).write_bytes(b"." * 10)
        os.utime(folder / name, (1e9 - age, 1e9 - age))
    monkeypatch.setattr(compiled, "_MOST", 25)
    compiled.keep()
    assert sorted(p.name for p in folder.iterdir()) == [compiled._SEEN, "new", "older"]


def test_what_was_left_half_written_is_removed(chosen):
    compiled.keep()
    folder, whole = pathlib.Path(chosen[compiled._DIR]), zlib.compress(b"x" * 99)
    (folder / "whole").write_bytes(whole)
    (folder / "half").write_bytes(whole[:-4])
    compiled.keep()
    assert sorted(p.name for p in folder.iterdir()) == [compiled._SEEN, "whole"]


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path, chosen, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLJAX_CACHE", str(tmp_path / "file"))
    compiled.keep()

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(files, "cache_folder", homeless)
    compiled.keep()
    assert not chosen

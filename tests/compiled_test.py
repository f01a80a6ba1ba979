"""Compiled programs are kept in a folder of the user's own."""

import os
import pathlib
import subprocess
import sys

import jax
import pytest

from fljax import compiled

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
    (folder,) = (tmp_path / "compiled").iterdir()
    assert folder.name == compiled._machine() and any(folder.iterdir())
    assert _run(tmp_path) == ["6.0", "True"]
    assert _run(tmp_path, JAX_ENABLE_COMPILATION_CACHE="false") == ["6.0", "False"]


@pytest.fixture
def chosen(tmp_path, monkeypatch):
    """Settings that `keep` makes, where none were made before."""
    found = {}
    monkeypatch.setenv("FLJAX_CACHE", str(tmp_path))
    monkeypatch.setattr(type(jax.config), compiled._DIR, None)
    monkeypatch.setattr(jax.config, "update", found.__setitem__)
    return found


def test_a_folder_that_others_can_write_is_not_used(tmp_path, chosen):
    compiled.keep()
    assert pathlib.Path(chosen.pop(compiled._DIR)).parent == tmp_path / "compiled"
    assert (tmp_path / "compiled").stat().st_mode & 0o077 == 0
    chosen.clear()
    (tmp_path / "compiled").chmod(0o777)
    compiled.keep()
    assert not chosen


def test_what_was_chosen_before_stays(monkeypatch, chosen):
    monkeypatch.setattr(type(jax.config), compiled._DIR, "elsewhere")
    compiled.keep()
    assert not chosen


def test_the_oldest_programs_make_room(tmp_path, chosen, monkeypatch):
    folder = tmp_path / "compiled" / "old"
    folder.mkdir(parents=True)
    (tmp_path / "compiled").chmod(0o700)
    for age, name in enumerate(("new", "older", "oldest")):
        (folder / name).write_bytes(b"x" * 10)
        os.utime(folder / name, (1e9 - age, 1e9 - age))
    monkeypatch.setattr(compiled, "_MOST", 25)
    compiled.keep()
    assert sorted(path.name for path in folder.iterdir()) == ["new", "older"]


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path, chosen, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLJAX_CACHE", str(tmp_path / "file"))
    compiled.keep()
    assert not chosen

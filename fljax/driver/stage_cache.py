"""Results of stages and states of trainings, as a run that was stopped left them.

What is kept stands on disk beside a checksum; what is damaged counts as not there. Of
several processes the first one reads, and the others have it from there.
"""

import contextlib
import hashlib
import json
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np
from absl import logging

from fljax import files, parallel
from fljax.data import FileRecord
from fljax.driver import json_values, processes
from fljax.driver.autosave import Autosave
from fljax.types import PyTree

_UNREADABLE = (OSError, ValueError, TypeError, KeyError, RecursionError)


class StageCache:
    """What one part of a run has finished."""

    def __init__(self, autosave: Autosave, path: pathlib.Path):
        """Binds a folder.

        Args:
          autosave: of the run.
          path: nobody else's.
        """
        self._autosave, self._path = autosave, path

    def part(self, name: str) -> "StageCache":
        """A part of it."""
        return StageCache(self._autosave, self._path / name)

    def cached(self, name: str, compute: Callable[[], Any], *types: type) -> Any:
        """What `compute` returns, or returned before the run was stopped.

        Args:
          name: of the stage.
          compute: makes what `json_values.encode` takes.
          *types: NamedTuples that are in it.
        """
        path = self._path / f"{name}.json"
        if self._autosave.is_kept:
            text = processes.from_first(lambda: _read(path))
            with contextlib.suppress(*_UNREADABLE):
                return json_values.decode(json.loads(text), types)
        result = compute()
        self._autosave.offer(path, lambda: result, lambda made: _write(path, made))
        return result

    def states(self, name: str) -> "States":
        """For a loop that may go on from the state after any of its steps."""
        return States(self._autosave, self._path / name)

    def forget(self, name: str) -> None:
        """Removes the states of a loop whose outcome is kept elsewhere."""
        self._autosave.forget(self._path / name)


class States:
    """The state of one loop."""

    def __init__(self, autosave: Autosave, path: pathlib.Path):
        self._autosave, self._path, self._store = autosave, path, None

    def latest(self, like: PyTree) -> tuple[int, PyTree] | None:
        """Step and state to go on from, NumPy arrays as in `like`; None at the start.

        Args:
          like: of the state's structure, shapes and dtypes; the same in every process.
        """
        if not self._autosave.is_kept:
            return None
        found = None
        if processes.is_first() and self._path.exists():
            found = self._open().latest(like)
        reached = np.array([-1 if found is None else found[0]])
        step = int(processes.broadcast(reached)[0])
        if step < 0:
            return None
        state = jax.tree.map(_zeros, like) if found is None else found[1]
        return step, jax.tree.map(processes.broadcast, state)

    def reached(self, step: int, state: Callable[[], PyTree]) -> None:
        """Told after each step, in every process; `state` is called before the next."""
        self._autosave.offer(
            self._path,
            lambda: parallel.fetch(state()),
            lambda fetched: self._open().save(step, fetched),
        )

    def _open(self):
        if self._store is None:
            from fljax.driver import checkpoints

            logging.set_verbosity(logging.ERROR)  # Orbax reports each step it takes
            self._store = checkpoints.Checkpoints(self._path)
        return self._store


def of_files(
    autosave: Autosave, records: Iterable[FileRecord], *more: str
) -> StageCache:
    """What is kept of the work on exactly these files, whatever they are called.

    Args:
      autosave: of the run.
      records: of what was read.
      *more: texts that the work depends on, beside them and the flags.
    """
    given = json.dumps([[each.sha256 for each in records], *more])
    name = hashlib.sha256(given.encode()).hexdigest()[:16]
    return StageCache(autosave, autosave.path / name)


def _write(path: pathlib.Path, value: Any) -> None:
    """The checksum in the first line, the value in the second."""
    text = json.dumps(json_values.encode(value))
    files.write_text(path, f"{_checksum(text)}\n{text}")


def _read(path: pathlib.Path) -> bytes:
    """The value's JSON; empty where it is missing or damaged."""
    try:
        checksum, _, text = path.read_text().partition("\n")
    except (OSError, ValueError):
        return b""
    return text.encode() if checksum == _checksum(text) else b""


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _zeros(leaf: Any) -> np.ndarray:
    return np.zeros(np.shape(leaf), np.result_type(leaf))

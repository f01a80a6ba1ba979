"""Going on where a run was stopped, by a crash, a signal or a person.

A run hands in what it has finished: results of stages, and the state of a training
between two rounds. Every `--checkpoint_minutes`, and when it is interrupted, what is new
of that is written into `unfinished/` of its folder, and the same command finds it there.
As it was computed by the same program from the same flags and files, a run that was
stopped ends with the numbers of one that was not. `Output.write` removes the folder.
"""

import contextlib
import hashlib
import json
import pathlib
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from absl import logging

from fljax import files
from fljax.data import FileRecord
from fljax.driver import plain, run_dir
from fljax.driver.config import ConfigError
from fljax.types import PyTree

_UNREADABLE = (OSError, ValueError, TypeError, KeyError, RecursionError)


class Unfinished:
    """What a run has finished, in memory and on disk."""

    def __init__(self, folder: pathlib.Path, digest: str, minutes: float | None):
        """Looks at what is there.

        Args:
          folder: of the run.
          digest: of its configuration.
          minutes: between two writings; None writes nothing and finds nothing.

        Raises:
          ConfigError: what is there was computed by other versions or devices.
        """
        self._path, self._minutes = folder / run_dir.UNFINISHED, minutes
        self._identity = {"digest": digest, **run_dir.environment()}
        self._written, self._asked = time.monotonic(), False
        self._pending: dict[pathlib.Path, Callable[[], None]] = {}
        found = run_dir.begun(folder)
        if minutes is not None and found:
            other = [k for k, v in self._identity.items() if found.get(k) != v]
            if other:
                raise ConfigError(
                    f"--run_dir: {self._path} was computed with other {other[0]}; "
                    "remove it to begin anew"
                )

    def of(self, files: Iterable[FileRecord], *more: str) -> "Part":
        """What is kept of the work on exactly these files, whatever they are called.

        Args:
          files: that were read.
          *more: texts that the work depends on, beside them and the flags.
        """
        given = json.dumps([[file.sha256 for file in files], *more])
        return Part(self, self._path / hashlib.sha256(given.encode()).hexdigest()[:16])

    @property
    def is_kept(self) -> bool:
        """Whether anything is."""
        return self._minutes is not None

    def offer(self, path: pathlib.Path, write: Callable[[], None]) -> None:
        """Takes in what is worth keeping, in place of what `path` had.

        Args:
          path: where `write` puts it.
          write: called now, later, or never if something newer comes.

        Raises:
          KeyboardInterrupt: the run was asked to stop, and all is written.
        """
        if not self.is_kept:
            return
        self._pending[path] = write
        if self._asked:
            raise KeyboardInterrupt
        if time.monotonic() >= self._written + 60 * self._minutes:
            self._flush()

    def forget(self, path: pathlib.Path) -> None:
        """Drops what `path` has, in memory and on disk."""
        self._pending.pop(path, None)
        shutil.rmtree(path, ignore_errors=True)

    def remove(self) -> None:
        """Nothing is unfinished any more."""
        shutil.rmtree(self._path, ignore_errors=True)

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """A block in which the first Ctrl-C waits for the next thing that can be kept.

        The second one does not.

        Raises:
          KeyboardInterrupt: saying where the run goes on.
        """
        with contextlib.ExitStack() as stack:
            if self.is_kept and threading.current_thread() is threading.main_thread():
                before = signal.signal(signal.SIGINT, self._ask)
                stack.callback(signal.signal, signal.SIGINT, before)
            try:
                yield
            except KeyboardInterrupt:
                self._flush()
                if not self._path.exists():
                    raise
                raise KeyboardInterrupt(
                    f"interrupted; the same command goes on from {self._path}"
                ) from None

    def _ask(self, number, frame):
        if self._asked:
            self._pending.clear()  # whatever is being computed may be using it
            raise KeyboardInterrupt
        self._asked = True
        print(
            "stopping at the next point from which to go on; "
            "a second Ctrl-C stops at once",
            file=sys.stderr,
        )

    def _flush(self) -> None:
        """Writes what is new; a full disk is told, and what it had no room for is kept."""
        try:
            if self._pending:
                text = json.dumps(self._identity)
                files.write_text(self._path / run_dir.IDENTITY, text)
            for path in list(self._pending):
                self._pending[path]()
                del self._pending[path]
        except OSError as error:
            said = " ".join(str(error).split())
            print(f"{self._path} cannot be written: {said:.200}", file=sys.stderr)
        self._written = time.monotonic()


class Part:
    """What one part of a run has finished."""

    def __init__(self, whole: Unfinished, path: pathlib.Path):
        self._whole, self._path = whole, path

    def part(self, name: str) -> "Part":
        """A part of it."""
        return Part(self._whole, self._path / name)

    def once(self, name: str, compute: Callable[[], Any], *types: type) -> Any:
        """What `compute` returns, or returned before the run was stopped.

        Args:
          name: of the stage.
          compute: makes what `plain.encode` takes.
          *types: NamedTuples that are in it.
        """
        path = self._path / f"{name}.json"
        if self._whole.is_kept and path.exists():
            with contextlib.suppress(*_UNREADABLE):
                return plain.decode(json.loads(path.read_text()), types)
        found = compute()

        def write():
            files.write_text(path, json.dumps(plain.encode(found)))

        self._whole.offer(path, write)
        return found

    def states(self, name: str) -> "States":
        """For a loop that may go on from the state after any of its steps."""
        return States(self._whole, self._path / name)

    def forget(self, name: str) -> None:
        """Removes the states of a loop whose outcome is kept elsewhere."""
        self._whole.forget(self._path / name)


class States:
    """The state of one loop."""

    def __init__(self, whole: Unfinished, path: pathlib.Path):
        self._whole, self._path, self._store = whole, path, None

    def latest(self, like: PyTree) -> tuple[int, PyTree] | None:
        """Step and state to go on from, NumPy arrays as in `like`; None at the start."""
        if not self._whole.is_kept or not self._path.exists():
            return None
        return self._open().latest(like)

    def reached(self, step: int, state: Callable[[], PyTree]) -> None:
        """Told after each step, when `state` gives it; called before the next step."""
        self._whole.offer(self._path, lambda: self._open().save(step, state()))

    def _open(self):
        if self._store is None:
            from fljax.driver import checkpoints

            logging.set_verbosity(logging.WARNING)  # Orbax reports each step it takes
            self._store = checkpoints.Checkpoints(self._path)
        return self._store

"""What a run has finished is written every so often, and when it is interrupted.

A run hands in what it has finished: results of stages, and the state of a training
between two rounds. Every `--checkpoint_minutes`, and at Ctrl-C or SIGTERM, what is new of
that is written into `unfinished/` of its folder, and the same command finds it there
(`fljax.driver.stage_cache`). As it was computed by the same code from the same flags and
files, a run that was stopped ends with the numbers of one that was not. Of several
processes only the first one writes; all of them stop at the same point.
"""

import contextlib
import json
import pathlib
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fljax import files
from fljax.driver import processes, run_folder
from fljax.driver.config import ConfigError


class _Pending(NamedTuple):
    """Something to be written: in every process `make`, in the first `write(made)`."""

    make: Callable[[], Any]
    write: Callable[[Any], None]


class Autosave:
    """What a run has finished, in memory and on disk."""

    def __init__(
        self,
        folder: pathlib.Path,
        digest: str,
        minutes: float | None,
        program: str = __name__,
        settings: Any = None,
    ):
        """Looks at nothing yet.

        Args:
          folder: of the run.
          digest: of its configuration.
          minutes: between two writings; None writes nothing and finds nothing.
          program: name of the module that computes.
          settings: what it was told, which may name code of the user's.
        """
        self.path, self._minutes = folder / run_folder.UNFINISHED, minutes
        self._identity = {"digest": digest, **run_folder.environment(program, settings)}
        self._written, self._asked = time.monotonic(), False
        self._pending: dict[pathlib.Path, _Pending] = {}

    def open(self) -> None:
        """Looks at what is there; call where nobody else works in the folder.

        Raises:
          ConfigError: it was computed by other code, versions or devices.
        """
        if self.is_kept:
            processes.value_from_first(self._check)

    @property
    def is_kept(self) -> bool:
        """Whether anything is."""
        return self._minutes is not None

    def offer(
        self,
        path: pathlib.Path,
        make: Callable[[], Any],
        write: Callable[[Any], None],
    ) -> None:
        """Takes in what is worth keeping, in place of what `path` had.

        Args:
          path: where `write` puts it.
          make: called now, later, or never if something newer comes.
          write: called with what it returned, in the first process only.

        Raises:
          KeyboardInterrupt: the run was asked to stop, and all is written.
        """
        if self._minutes is None:
            return
        self._pending[path] = _Pending(make, write)
        due = time.monotonic() >= self._written + 60 * self._minutes
        asked, due = processes.agree(self._asked, due)
        if asked:
            raise KeyboardInterrupt
        if due:
            self.flush()

    def forget(self, path: pathlib.Path) -> None:
        """Drops what `path` has, in memory and on disk."""
        self._pending.pop(path, None)
        if processes.is_first():
            shutil.rmtree(path, ignore_errors=True)

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """A block in which the first Ctrl-C waits for the next thing that can be kept.

        So does SIGTERM, as of a scheduler. A second Ctrl-C does not wait.

        Raises:
          KeyboardInterrupt: saying where the run goes on.
        """
        with contextlib.ExitStack() as stack:
            if self.is_kept and threading.current_thread() is threading.main_thread():
                for each in (signal.SIGINT, signal.SIGTERM):
                    before = signal.signal(each, self._ask)
                    stack.callback(signal.signal, each, before)
            try:
                yield
            except KeyboardInterrupt:
                self.flush()
                if not self.path.exists():
                    raise
                raise KeyboardInterrupt(
                    f"interrupted; the same command goes on from {self.path}"
                ) from None

    def flush(self) -> None:
        """Writes what is new; a full disk is told, and what it had no room for is kept."""
        for path, (make, write) in self._pending.items():
            made = make()
            self._pending[path] = _Pending(lambda made=made: made, write)
        if not processes.is_first():
            self._pending.clear()
        try:
            if self._pending:
                text = json.dumps(self._identity)
                files.write_text(self.path / run_folder.IDENTITY, text)
            for path, (make, write) in list(self._pending.items()):
                write(make())
                del self._pending[path]
        except OSError as error:
            reason = " ".join(str(error).split())
            print(f"{self.path} cannot be written: {reason:.200}", file=sys.stderr)
        self._written = time.monotonic()

    def _check(self) -> None:
        """Refuses what others computed; what nobody signed counts as not there."""
        run_folder.unlink(self.path)
        found = run_folder.begun(self.path.parent)
        if not found:
            run_folder.forget(self.path.parent)
        other = [k for k, v in self._identity.items() if found and found.get(k) != v]
        if other:
            raise ConfigError(
                f"--run_dir: {self.path} was computed with other {other[0]}; "
                "remove it to begin anew"
            )

    def _ask(self, number, frame):
        if self._asked and number == signal.SIGTERM:
            return  # sent to a process, and then to its group
        if self._asked:
            self._pending.clear()  # whatever is being computed may be using it
            raise KeyboardInterrupt
        self._asked = True
        print(
            "stopping at the next point from which to go on; "
            "a second Ctrl-C stops at once",
            file=sys.stderr,
        )

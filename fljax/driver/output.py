"""What a program leaves behind: rows, figures and, last of all, the manifest."""

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from rich.console import RenderableType

from fljax import files as files_lib
from fljax import results
from fljax.data import FileRecord
from fljax.driver import console, processes, run_folder, stage_cache, stages
from fljax.driver.autosave import Autosave
from fljax.driver.config import ConfigError
from fljax.driver.option import FolderFlags, RunFlags
from fljax.driver.stage_cache import StageCache
from fljax.results import Row


class Results(NamedTuple):
    """What a program hands in at its end.

    Attributes:
      rows: every number.
      figures: SVG by the names of their files.
      pages: texts by the names of their files.
      files: that were read.
      manifest: what the manifest says beside flags, times and versions.
      tables: for the screen.
      code: the exit code of the program.
    """

    rows: Sequence[Row]
    figures: Mapping[str, bytes] = {}
    pages: Mapping[str, str] = {}
    files: Iterable[FileRecord] = ()
    manifest: Mapping[str, Any] = {}
    tables: Iterable[RenderableType] = ()
    code: int = 0


class Output:
    """The folder of a run that is going on; its clock starts with it.

    As a context manager it keeps others from the folder (`run_folder.Lock`).

    Attributes:
      folder: for rows, figures and manifest.
      seconds: by stage, compile time apart.
      autosave: what the run has finished of its work.
    """

    def __init__(
        self,
        config: FolderFlags,
        experiment: str,
        name: str,
        flags: Mapping[str, Any],
        program: str = __name__,
    ):
        """Looks at the folder; nothing is created yet.

        Args:
          config: which folder, and how often it is written into before the end.
          experiment: name of the program.
          name: of the data, for the folder's.
          flags: as the program was told, flag name -> value.
          program: name of the module that computes.

        Raises:
          ConfigError: it is somebody else's, or cannot be written.
        """
        self._begin = time.perf_counter()
        self._experiment, self._program = experiment, program
        self._flags = dict(flags)

        def claim():
            chosen = config.run_dir, experiment, name, self._flags
            folder, digest = run_folder.claim(*chosen)
            return str(folder), digest

        folder, self._digest = processes.value_from_first(claim)
        self.folder = pathlib.Path(folder)
        self._is_dry = isinstance(config, RunFlags) and config.dry_run
        self._lock: run_folder.Lock | None = None
        self._finished = False
        self.seconds: stages.Seconds = {}
        minutes = config.checkpoint_minutes if isinstance(config, RunFlags) else None
        self.autosave = Autosave(
            self.folder, self._digest, minutes, program, self._flags
        )

    def __enter__(self) -> Self:
        """Raises ConfigError where another run works in the folder."""
        if not self._is_dry:
            processes.value_from_first(self._acquire)
            try:
                self.autosave.open()
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_) -> None:
        if self._lock is not None:
            self._lock.release(finished=self._finished)
            self._lock = None

    def stage(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Adds the time of a block to the manifest's."""
        return stages.stage(self.seconds, name)

    def cache(self, files: Iterable[FileRecord], *more: str) -> StageCache:
        """What is kept of the work on these files (`stage_cache.of_files`)."""
        return stage_cache.of_files(self.autosave, files, *more)

    def write(self, results: Results) -> None:
        """Writes everything, each file at once; the manifest says that the run is done.

        Raises:
          ConfigError: something could not be written; the same command may try again.
        """
        if not processes.is_first():
            return
        manifest = {
            "experiment": self._experiment,
            "digest": self._digest,
            "flags": self._flags,
            "data": [dataclasses.asdict(file) for file in results.files],
            **results.manifest,
            "figures": sorted(results.figures),
            "seconds": self.seconds,
            "total_seconds": time.perf_counter() - self._begin,
            **run_folder.environment(self._program, self._flags),
        }
        contents = {f"{name}.svg": each for name, each in results.figures.items()}
        contents |= {name: text.encode() for name, text in results.pages.items()}
        with contextlib.nullcontext() if self._lock else self:
            self._write(results.rows, contents, manifest)

    def show(self, *shown: RenderableType) -> None:
        """Prints tables and lines, how long it took, and where everything is."""
        out = console.screen()
        for each in shown:
            out.print(each, soft_wrap=console.is_command(each))
        out.print(f"{time.perf_counter() - self._begin:.1f} seconds in all")
        out.print(f"results, figures and manifest are in {self.folder}", markup=False)

    def _acquire(self) -> None:
        self._lock = run_folder.Lock(self.folder, self._digest)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A block that writes into the folder.

        Raises:
          ConfigError: something could not be written; what is finished is kept as far as
            there is room, and the same command may try again.
        """
        try:
            yield
        except OSError as error:
            self.autosave.flush()
            raise ConfigError(
                f"--run_dir: {self.folder} cannot be written: {error.strerror}; "
                "the same command writes it again"
            ) from error

    def _write(self, rows, contents: Mapping[str, bytes], manifest) -> None:
        with self.writing():
            # An earlier run's manifest must not stand beside these rows.
            (self.folder / run_folder.MANIFEST).unlink(missing_ok=True)
            results.write_rows(self.folder / "rows.jsonl", rows)
            for name, content in contents.items():
                with files_lib.replacing(self.folder / name) as file:
                    file.write(content)
            files_lib.clear(self.folder)
            results.write_manifest(self.folder / run_folder.MANIFEST, manifest)
        self._finished = True
        run_folder.forget(self.folder)

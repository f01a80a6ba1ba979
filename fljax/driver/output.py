"""What a program leaves behind: rows, figures and, last of all, the manifest."""

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
from rich.console import RenderableType

from fljax import files as files_lib
from fljax import results
from fljax.data import FileRecord
from fljax.driver import console, processes, run_dir, stages
from fljax.driver.option import FolderFlags, RunFlags
from fljax.driver.resume import Unfinished
from fljax.results import Row


class Output:
    """The folder of a run that is going on; its clock starts with it.

    Attributes:
      folder: for rows, figures and manifest; not there before `write`.
      seconds: by stage, compile time apart.
      unfinished: what the run has finished of its work.
    """

    def __init__(
        self, told: FolderFlags, experiment: str, name: str, flags: Mapping[str, Any]
    ):
        """Claims the folder.

        Args:
          told: which folder, and how often it is written into before the end.
          experiment: name of the program.
          name: of the data, for the folder's.
          flags: as the program was told, flag name -> value.

        Raises:
          ConfigError: it is somebody else's, or cannot be written.
        """
        self._begin = time.perf_counter()
        self._experiment, self._flags = experiment, dict(flags)
        claimed = run_dir.claim(told.run_dir, experiment, name, self._flags)
        self.folder: pathlib.Path = claimed[0]
        self._digest = claimed[1]
        self.seconds: stages.Seconds = {}
        minutes = told.checkpoint_minutes if isinstance(told, RunFlags) else None
        if jax.process_count() > 1:
            minutes = None  # what one process keeps the others do not see
        self.unfinished = Unfinished(self.folder, self._digest, minutes)

    def stage(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Adds the time of a block to the manifest's."""
        return stages.stage(self.seconds, name)

    def write(
        self,
        rows: Sequence[Row],
        drawn: Mapping[str, bytes],
        *,
        files: Iterable[FileRecord] = (),
        **said: Any,
    ) -> None:
        """Writes everything, each file at once; the manifest says that the run is done.

        Args:
          rows: every number.
          drawn: SVG figures by the names of their files.
          files: that were read.
          **said: what else the manifest says.
        """
        if not processes.is_first():
            return
        manifest = {
            "experiment": self._experiment,
            "digest": self._digest,
            "flags": self._flags,
            "data": [dataclasses.asdict(file) for file in files],
            **said,
            "figures": sorted(drawn),
            "seconds": self.seconds,
            "total_seconds": time.perf_counter() - self._begin,
            **run_dir.environment(),
        }
        results.write_rows(self.folder / "rows.jsonl", rows)
        for name, content in drawn.items():
            with files_lib.replacing(self.folder / f"{name}.svg") as file:
                file.write(content)
        files_lib.clear(self.folder)
        results.write_manifest(self.folder / "manifest.json", manifest)
        self.unfinished.remove()

    def show(self, *shown: RenderableType) -> None:
        """Prints tables and lines, how long it took, and where everything is."""
        out = console.screen()
        for each in shown:
            out.print(each)
        out.print(f"{time.perf_counter() - self._begin:.1f} seconds in all")
        out.print(f"results, figures and manifest are in {self.folder}")

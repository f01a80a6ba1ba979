"""What every program does before and after its own work, once.

    flags -> settings -> claim the folder -> prepare -> describe (--dry_run), or
    work, in stages that are kept -> rows, figures and manifest -> tables on the screen

A program is a `Program`: its settings, and what is its own.
"""

import dataclasses
import shlex
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from absl import flags

from fljax import compiled, parallel, precision
from fljax.driver import config, console, processes
from fljax.driver.command import Command
from fljax.driver.option import FolderFlags, RunFlags
from fljax.driver.output import Output, Results
from fljax.driver.processes import ProcessFlags

flags.disclaim_key_flags()


class Start(NamedTuple):
    """What a program knows before it does anything slow.

    Attributes:
      name: of the data, for the folder's name.
      prepare: reads and deals; its time is the stage `data`.
    """

    name: str
    prepare: Callable[[], Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Program(Command):
    """One program.

    Attributes:
      name: in its rows and manifest.
      module: name of the module that it is written in, whose code computes.
      settings: as a command's; one of them inherits `FolderFlags` or `RunFlags`.
      start: `settings -> Start`; refuses what does not fit together.
      work: `(prepared, output, bars) -> Results`.
      describe: `prepared -> lines` about the size of the work, for --dry_run.
      afterwards: command that the end of a run names, with `{folder}` for its folder.
      prints_only: `work` prints, and without --run_dir nothing is written; it gets no
        output then, and no bars.
    """

    name: str
    module: str
    start: Callable[[Any], Start]
    work: Callable[..., Results]
    describe: Callable[[Any], Iterable[str]] = lambda prepared: ()
    afterwards: str = ""
    prints_only: bool = False

    def define(self, flag_values: flags.FlagValues = flags.FLAGS) -> None:
        """Registers the flags, and those of several processes."""
        super().define(flag_values)
        config.define(ProcessFlags, flag_values=flag_values)

    def sections(self) -> dict[str, list[str]]:
        """The command's, and those of several processes."""
        return super().sections() | {"processes": config.names(ProcessFlags)}

    def main(self) -> int:
        """Does what the flags say; returns the exit code."""
        settings = self.read()
        processes.join(config.read(ProcessFlags))
        return self.run(settings)

    def run(self, settings: Any) -> int:
        """Does what the settings say; returns the exit code.

        Raises:
          ConfigError: they do not fit each other or the data, or the folder is another
            run's.
          DataError: a file is missing or not as expected.
        """
        parallel.use_cpu_cores()
        precision.use_full()
        compiled.keep()
        self.check(settings)
        started = self.start(settings)
        flags_ = self.to_flags(settings)
        folder = next(group for group in settings if isinstance(group, FolderFlags))
        if self.prints_only and folder.run_dir is None:
            return self.work(started.prepare(), None, None).code
        with Output(folder, self.name, started.name, flags_, self.module) as output:
            with output.stage("data"), console.waiting("data and schedule"):
                prepared = started.prepare()
            if isinstance(folder, RunFlags) and folder.dry_run:
                screen = console.screen()
                for line in self.describe(prepared):
                    screen.print(line, highlight=False, markup=False, soft_wrap=True)
                return 0
            with output.autosave.interruptible(), console.progress() as bars:
                results = self.work(prepared, output, bars)
            output.write(results)
            output.show(*results.tables)
            if self.afterwards:
                folder_ = shlex.quote(str(output.folder))
                command = self.afterwards.format(folder=folder_)
                console.screen().print(console.command(command), soft_wrap=True)
        return results.code

"""The command that made a result: its flagfile, and what it was told beyond that.

A result is named after its flagfile, `aia.table2`, with a word of one's own behind it
where it was told more, `aia.table2.ten_seeds`.
"""

import importlib
import pathlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags as absl_flags

from fljax.data import sources
from fljax.driver import config
from fljax.driver.config import ConfigError
from fljax.driver.option import PLACES

FLAGFILES = pathlib.Path(__file__).parents[1] / "flags"
# What everybody keeps in a place of their own.
OWN = {
    "data_dir": "DATA",
    "data_path": "ROWS.csv",
    "transcript": "TRANSCRIPT",
    "known": "ROWS.csv",
    "proxy": "POPULATION.csv",
}
# Programs that are no `experiments.NAME`: module that is run, module with the flags.
_OTHERS = {"audit": ("fljax.audit", "fljax.auditing.program")}


def flagfile(name: str) -> str:
    """Name of the flagfile, without its ending, that a result belongs to.

    Raises:
      ConfigError: there is none.
    """
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        stem = ".".join(parts[:size])
        if (FLAGFILES / f"{stem}.flags").is_file():
            return stem
    raise ConfigError(
        f"expected the name of a flagfile of experiments/flags, or one with .variant "
        f"behind it, got {name!r}"
    )


def of_run(name: str, flags: Mapping[str, Any]) -> str:
    """What to type for a run with these flags.

    Args:
      name: of the result.
      flags: of the run, as its manifest has them.

    Raises:
      ConfigError: the run is none of the flagfile's program.
    """
    stem = flagfile(name)
    own = [f"--{key}={word}" for key, word in OWN.items() if flags.get(key)]
    usual = _told(stem, own)
    if strange := flags.keys() - usual.keys():
        raise ConfigError(
            f"--{min(strange)}: is no flag of the program of {stem}.flags"
        )
    more = [
        f"--{key}={config.to_text(value)}"
        for key, value in flags.items()
        if key not in (*PLACES, *OWN) and value != usual[key]
    ]
    module = _modules(stem)[0]
    given = [f"--flagfile=experiments/flags/{stem}.flags", *own, *more]
    return f"python -m {module} {shlex.join(given)}"


def of_flagfile(stem: str) -> str:
    """What to type for a run of a flagfile as it stands."""
    data = _told(stem, []).get("data_name")
    found = [source for source in sources.SOURCES if source.dataset == data]
    has_files = any(source.download or source.folders for source in found)
    return of_run(stem, {"data_dir": "DATA"} if has_files else {})


def flags_of(name: str, command: str) -> dict[str, Any]:
    """Flag name -> value of a command that `of_run` gave, by today's flagfile."""
    return _told(flagfile(name), shlex.split(command)[4:])


def _told(stem: str, arguments: Sequence[str]) -> dict[str, Any]:
    program = importlib.import_module(_modules(stem)[1]).PROGRAM
    values = absl_flags.FlagValues()
    program.define(values)
    try:
        values(["program", f"--flagfile={FLAGFILES / stem}.flags", *arguments])
    except absl_flags.Error as error:
        raise ConfigError(f"{stem}.flags: {error}") from error
    return program.to_flags(program.read(values))


def _modules(stem: str) -> tuple[str, str]:
    name = stem.partition(".")[0]
    own = f"experiments.{name}"
    return _OTHERS.get(name, (own, f"{own}.program"))

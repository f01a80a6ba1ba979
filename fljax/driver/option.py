"""A field of a configuration that becomes a flag, and the flags of every program."""

import dataclasses
from typing import Any, NamedTuple

# Flags that say where something runs and what is saved meanwhile, not what it is.
PLACES = ("run_dir", "dry_run", "data_dir", "checkpoint_minutes")
FILES = ("data_path", "transcript", "known", "proxy")  # the user's own


def option(default: Any, help_: str, **bounds: Any) -> Any:
    """A dataclass field that becomes a flag with this help and these bounds.

    Args:
      default: value of the field.
      help_: text of the flag.
      **bounds: `min`, `max`, `above`, `below`, `distinct` or `of`, checked by `config`.
    """
    return dataclasses.field(default=default, metadata={"help": help_, **bounds})


def several(default: Any, help_: str, **bounds: Any) -> Any:
    """The same for a tuple that has one entry at least, and none twice."""
    return option(default, help_, distinct=True, **bounds)


def filled(config: Any, usual: NamedTuple) -> Any:
    """A configuration with what is usual for every field of that name left at none."""
    missing = {
        name: value
        for name, value in usual._asdict().items()
        if getattr(config, name) is None
    }
    return dataclasses.replace(config, **missing)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FolderFlags:
    """What the configuration of a program inherits that writes results."""

    run_dir: str | None = option(
        None, "folder for results; default: a named one under runs/"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunFlags(FolderFlags):
    """What it inherits if it may run for long."""

    checkpoint_minutes: float | None = option(
        5.0,
        "minutes between two writings of what is finished, from which the same command "
        "goes on; 0: at every step; none: never",
        min=0,
    )
    dry_run: bool = option(False, "print the sizes of what would be done and stop")

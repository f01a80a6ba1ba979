"""How much memory a process may still take, of its machine's or its container's."""

import pathlib

import psutil

from fljax import cgroups

MOST_ROUNDS = 10**6  # beyond which schedules and transcripts fit into no memory
# Names of the files in versions 2 and 1, and of what is counted as used but is given up
# when it is wanted: the cache of files.
_VERSIONS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available(root: pathlib.Path = cgroups.ROOT) -> float:
    """Bytes that this process may still take.

    Args:
      root: of the control groups, version 1 or 2.
    """
    free = float(psutil.virtual_memory().available)
    groups = cgroups.folders("memory", root)
    return min([free, *(_left(each, *v) for each in groups for v in _VERSIONS)])


def _left(folder: pathlib.Path, limit: str, used: str, cache: str) -> float:
    """Bytes that a control group has left; infinite without a limit."""
    try:
        most, taken = (float((folder / name).read_text()) for name in (limit, used))
        stat = (folder / "memory.stat").read_text().splitlines()
        return most - taken + float(dict(line.split() for line in stat)[cache])
    except (OSError, ValueError, KeyError):  # "max", or no such file
        return float("inf")

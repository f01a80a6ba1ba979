"""How much memory a process may still take, of its machine's or its container's."""

import pathlib

_CONTAINER = pathlib.Path("/sys/fs/cgroup")
_CACHE = "inactive_file"  # of files; counted as used, and given up when it is wanted


def available() -> float:
    """Bytes that this process may still take; infinite where nothing says."""
    free = _of_machine()
    try:
        limit, used = (
            float((_CONTAINER / f"memory.{name}").read_text())
            for name in ("max", "current")
        )
        stat = (_CONTAINER / "memory.stat").read_text().splitlines()
        cache = float(dict(line.split() for line in stat)[_CACHE])
    except (OSError, ValueError, KeyError):  # no container, or one without a limit
        return free
    return min(free, limit - used + cache)


def _of_machine() -> float:
    try:
        import psutil  # comes with the experiments
    except ImportError:
        return float("inf")
    return float(psutil.virtual_memory().available)

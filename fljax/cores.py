"""How many cores of a CPU a process may use, which is less than the machine has when it
runs in a container with a quota or is bound to some of them.
"""

import math
import os
import pathlib

_CGROUPS = pathlib.Path("/sys/fs/cgroup")
_GROUP_OF_PROCESS = pathlib.Path("/proc/self/cgroup")


def available(root: pathlib.Path = _CGROUPS) -> int:
    """Cores that this process may use: of its affinity and of its container's quota.

    Args:
      root: of the control groups, version 1 or 2.
    """
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    quotas = [_quota(folder) for folder in _groups(root)]
    return max(1, min([cores, *(math.ceil(q) for q in quotas if q is not None)]))


def _groups(root: pathlib.Path) -> list[pathlib.Path]:
    """Folders that may limit this process: its groups' and all above them."""
    found = [root, root / "cpu", root / "cpu,cpuacct"]
    try:
        lines = _GROUP_OF_PROCESS.read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        group = root / controllers / path.strip("/")
        found += [each for each in (group, *group.parents) if root in each.parents]
    return found


def _quota(folder: pathlib.Path) -> float | None:
    """Cores' worth of time that a control group has; None without a limit."""
    try:
        if (path := folder / "cpu.max").exists():
            quota, period = path.read_text().split()
        else:
            quota, period = (
                (folder / f"cpu.cfs_{name}_us").read_text()
                for name in ("quota", "period")
            )
        return float(quota) / float(period) if float(quota) > 0 else None
    except (OSError, ValueError):  # "max", or no such file
        return None

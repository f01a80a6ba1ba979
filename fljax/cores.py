"""How many cores of a CPU a process may use, which is less than the machine has when it
runs in a container with a quota or is bound to some of them.
"""

import math
import os
import pathlib

from fljax import cgroups


def available(root: pathlib.Path = cgroups.ROOT) -> int:
    """Cores that this process may use: of its affinity and of its container's quota.

    Args:
      root: of the control groups, version 1 or 2.
    """
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    quotas = [_quota(folder) for folder in cgroups.folders("cpu", root)]
    return max(1, min([cores, *(math.ceil(q) for q in quotas if q is not None)]))


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


def xla_flags(chosen: str = "") -> str:
    """The environment variable XLA_FLAGS for a device on each core.

    On a GPU sums are made in a fixed order, and kernels are chosen without timing them, so
    that a run comes out the same again.

    XLA's YNNPACK kernels are off: their reductions share one pool of threads, in which
    two devices wait for each other (trajectory matching of two clients on two cores
    takes 3.3 times as long with them). And a device that has less to do than another may
    wait for it; XLA would end the program after 40 s. It ends every program that is given
    a flag which it does not know: a new version of jaxlib has to be tried first.

    Args:
      chosen: what it was; flags that are there stay.
    """
    month = 30 * 86_400
    wanted = {
        "--xla_gpu_deterministic_ops": "true",
        "--xla_cpu_experimental_ynn_fusion_type": "",
        "--xla_cpu_collective_call_warn_stuck_timeout_seconds": month,
        "--xla_cpu_collective_call_terminate_timeout_seconds": month,
    }
    more = [f"{name}={value}" for name, value in wanted.items() if name not in chosen]
    return " ".join(filter(None, [chosen, *more]))

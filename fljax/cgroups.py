"""The control groups of Linux, which limit what a container's processes may use."""

import pathlib

ROOT = pathlib.Path("/sys/fs/cgroup")
_GROUP_OF_PROCESS = pathlib.Path("/proc/self/cgroup")


def folders(controller: str, root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """Those that may limit this process: of its groups, and of all above them.

    Args:
      controller: 'cpu' or 'memory', which has folders of its own in version 1.
      root: of the control groups, version 1 or 2.
    """
    found = [root, root / controller]
    try:
        lines = _GROUP_OF_PROCESS.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        own = root / controllers
        group = own / path.strip("/")
        found += [each for each in (group, *group.parents) if root in each.parents]
    return list(dict.fromkeys(found))

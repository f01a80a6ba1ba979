"""What a benchmark's file says: its rows, its targets, and where they come from.

Results of other programs keep no times (`experiments/report/kept.py`). Times are kept
apart, in `experiments/benchmarks/results/`, one file for each benchmark, as the
benchmark wrote it; the tables in `docs/benchmarks.md` are generated from there.
"""

import dataclasses
import importlib.metadata
import json
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from experiments.report import commands
from fljax import cores, files
from fljax.driver import config as config_lib
from fljax.driver import source

Row = dict[str, Any]
_PACKAGES = ("fljax", "jax", "jaxlib", "torch", "opacus")


class Target(NamedTuple):
    """A number that has to be reached.

    Attributes:
      name: what is measured.
      value: None where it was not measured.
      bound: the limit.
      at_least: whether the value may not be below it, instead of above.
    """

    name: str
    value: float | None
    bound: float
    at_least: bool = True

    @property
    def met(self) -> bool:
        if self.value is None:
            return False
        if self.at_least:
            return self.value >= self.bound
        return self.value <= self.bound


def environment() -> Row:
    """Where the numbers come from."""
    device = jax.devices()[0]
    return {
        "device": device.device_kind,
        "platform": device.platform,
        "num_devices": jax.device_count(),
        "machine": platform.machine(),
        "num_cpus": cores.available(),
        **{name: _version(name) for name in _PACKAGES},
        "code": source.sha256("fljax"),
        "dtype": "float32",
        "matmul_precision": jax.config.jax_default_matmul_precision or "default",
    }


def load() -> float:
    """Programs that want a core, mean of the last minute, as the system counts them."""
    return round(os.getloadavg()[0], 1)


def command(asked: Any, module: str | None = None) -> str:
    """What to type for a benchmark with these flags, but for where it writes.

    A folder of one's own has a word in its place.

    Args:
      asked: the flags.
      module: of the benchmark; None for that of the flags.
    """
    found = sys.modules[module or type(asked).__module__]
    name = getattr(found.__spec__, "name", found.__name__).removesuffix(".__main__")
    given = {
        field.name: getattr(asked, field.name)
        for field in dataclasses.fields(asked)
        if field.name != "json" and getattr(asked, field.name) != field.default
    }
    told = [
        f"--{flag}={commands.OWN.get(flag) or config_lib.to_text(value)}"
        for flag, value in given.items()
    ]
    return shlex.join(["python", "-m", name, *told])


def write(path: str, rows: Sequence[Row], targets: Sequence[Target], about: Row):
    """Writes one JSON object per row and per target.

    Args:
      path: of the file.
      rows: of the benchmark.
      targets: become rows with what they are (`Target`) and whether they are met.
      about: is added to each.
    """
    ends = [{**target._asdict(), "met": target.met} for target in targets]
    told = [*rows, *({"target": each.pop("name"), **each} for each in ends)]
    lines = [json.dumps({**row, **about}) + "\n" for row in told]
    files.write_text(path, "".join(lines))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

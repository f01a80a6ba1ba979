"""The folder of a run: who it belongs to, and what is written into it.

A folder belongs to one configuration. Running that configuration again replaces its
files one by one, each atomically; another configuration, and a folder that cannot be
written, are refused before any work.
"""

import hashlib
import json
import os
import pathlib
import platform
from importlib import metadata
from typing import Any

import jax

import fljax
from fljax.driver.config import ConfigError

_PACKAGES = (
    "fljax",
    "jax",
    "jaxlib",
    "optax",
    "flax",
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "folktables",
)
_NOT_IDENTITY = ("run_dir", "dry_run", "data_dir", "checkpoint_minutes")
UNFINISHED, IDENTITY = "unfinished", "identity.json"


def claim(
    chosen: str | None, experiment: str, name: str, values: dict[str, Any]
) -> tuple[pathlib.Path, str]:
    """Folder of this configuration and its digest; nothing is created yet.

    Raises:
      ConfigError: if the folder holds anything else, or cannot be created or written.
    """
    identity = digest({k: v for k, v in values.items() if k not in _NOT_IDENTITY})
    path = pathlib.Path(chosen or f"runs/{experiment}.{name}-{identity[:8]}")
    _check_writable(path)
    owner = _owner(path)
    if owner is None and path.exists() and any(path.iterdir()):
        raise ConfigError(
            f"--run_dir: {path} holds files but no finished run; "
            "remove it or choose another folder"
        )
    if owner not in (None, identity):
        raise ConfigError(
            f"--run_dir: {path} holds the results of another configuration; "
            "choose another folder or remove it"
        )
    return path, identity


def digest(values: dict[str, Any]) -> str:
    """Names a flat config by 64 hexadecimal digits, whatever the order of its keys."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def environment() -> dict[str, Any]:
    """Versions and device, for the manifest."""
    device = jax.devices()[0]
    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "platform": device.platform,
        "device": device.device_kind,
        "devices": jax.device_count(),
        "cpus": os.cpu_count(),
    }


def _check_writable(path: pathlib.Path) -> None:
    """Looks at the folder or, before it is created, at the nearest one above it."""
    full = path.absolute()
    nearest = next(p for p in (full, *full.parents) if os.path.lexists(p))
    if not nearest.is_dir():
        raise ConfigError(f"--run_dir: expected a folder, {nearest} is a file")
    needed = os.W_OK | os.X_OK | (os.R_OK if nearest == full else 0)
    if not os.access(nearest, needed):
        action = "read and written" if nearest == full else f"created in {nearest}"
        raise ConfigError(f"--run_dir: {path} cannot be {action}")


def begun(path: pathlib.Path) -> dict[str, Any]:
    """Digest and environment of the run that a folder has the beginning of, if any."""
    try:
        found = json.loads((path / UNFINISHED / IDENTITY).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _owner(path: pathlib.Path) -> str | None:
    """Digest of the run in a folder, finished or not."""
    try:
        return json.loads((path / "manifest.json").read_text())["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        return begun(path).get("digest")


def _version(package: str) -> str | None:
    """Version as installed; None where a package is not."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return fljax.__version__ if package == "fljax" else None

"""The folder of a run: who it belongs to, and what is written into it.

A folder belongs to one configuration. Running that configuration again replaces its
files one by one, each atomically; another configuration is refused before any work.
"""

import json
import os
import pathlib
import platform
from importlib import metadata
from typing import Any

import jax

from experiments.config import ConfigError, digest

_PACKAGES = ("jax", "jaxlib", "optax", "flax", "numpy", "scipy", "pandas")
_NOT_IDENTITY = ("run_dir", "dry_run", "data_dir")


def claim(
    chosen: str | None, experiment: str, name: str, values: dict[str, Any]
) -> tuple[pathlib.Path, str]:
    """Folder of this configuration and its digest; nothing is created yet.

    Raises:
      ConfigError: if the folder holds anything else.
    """
    identity = digest({k: v for k, v in values.items() if k not in _NOT_IDENTITY})
    path = pathlib.Path(chosen or f"runs/{experiment}.{name}-{identity[:8]}")
    if not path.exists():
        return path, identity
    if not path.is_dir():
        raise ConfigError(f"--run_dir: expected a folder, {path} is a file")
    manifest = path / "manifest.json"
    try:
        owner = json.loads(manifest.read_text())["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        owner = None
    if owner != identity and any(path.iterdir()):
        raise ConfigError(
            f"--run_dir: {path} holds the results of another configuration; "
            "choose another folder or remove it"
        )
    return path, identity


def environment() -> dict[str, Any]:
    """Versions and device, for the manifest."""
    device = jax.devices()[0]
    return {
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in _PACKAGES},
        "platform": device.platform,
        "device": device.device_kind,
        "devices": jax.device_count(),
        "cpus": os.cpu_count(),
    }

"""Compiled programs are kept for the next run, which then begins with its work.

JAX has the cache; here is where it lies: beside downloads, in a folder of the user's own
for this processor and version of jaxlib, since machine code of another may not run.
"""

import contextlib
import hashlib
import os
import pathlib
import platform
import stat

import jax
import jaxlib.version

from fljax import files

_DIR = "jax_compilation_cache_dir"
_SECONDS = 0.3  # of compiling, from which on a program is kept
_MOST = 1 << 30  # bytes, of which the oldest are removed
_PROCESSOR = pathlib.Path("/proc/cpuinfo")


def keep() -> None:
    """Keeps the programs that this process compiles from here on, and uses what is kept.

    What was chosen before, by JAX's settings (`JAX_COMPILATION_CACHE_DIR`,
    `JAX_ENABLE_COMPILATION_CACHE`), stays. Without a folder of one's own, or where it cannot
    be written, nothing is kept.
    """
    if getattr(jax.config, _DIR) is not None:
        return
    root = files.cache_folder() / "compiled"
    if not _is_own(root):
        return
    with contextlib.suppress(OSError):
        _trim(root)
    jax.config.update(_DIR, str(root / _machine()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _SECONDS)


def _is_own(folder: pathlib.Path) -> bool:
    """Whether nobody else can write there: what lies there is run."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError:
        return False
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return mine and not others and os.access(folder, os.W_OK | os.X_OK)


def _machine() -> str:
    """Name of the processor and jaxlib that code is for."""
    flags = ""
    with contextlib.suppress(OSError):
        lines = _PROCESSOR.read_text(errors="replace").splitlines()
        told = (line for line in lines if line.startswith(("flags", "Features")))
        flags = next(told, "")
    said = f"{platform.machine()} {platform.processor()} {flags}"
    digest = hashlib.sha256(said.encode()).hexdigest()
    return f"{jaxlib.version.__version__}-{digest[:12]}"


def _trim(root: pathlib.Path) -> None:
    """Without the oldest files beyond what there is room for."""
    there = [(path, path.stat()) for path in root.rglob("*") if path.is_file()]
    room = _MOST
    for path, found in sorted(there, key=lambda each: -each[1].st_mtime):
        room -= found.st_size
        if room < 0:
            path.unlink(missing_ok=True)

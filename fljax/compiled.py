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
import zlib

import jax
import jaxlib.version

from fljax import files

_DIR, _ENABLED = "jax_compilation_cache_dir", "jax_enable_compilation_cache"
_SECONDS = 0.3  # of compiling, from which on a program is kept
_CHOSEN = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
_MOST = 1 << 30  # bytes, beyond which the oldest are removed when a program starts
_PROCESSOR = pathlib.Path("/proc/cpuinfo")
_SEEN = ".seen"  # as old as the last look at what was written
_ZLIB = b"\x78"


def keep() -> None:
    """Keeps the programs that this process compiles from here on, and uses what is kept.

    What was chosen before, by JAX's settings (`JAX_COMPILATION_CACHE_DIR`,
    `JAX_ENABLE_COMPILATION_CACHE`), stays. Without a folder of one's own, or where it cannot
    be written, nothing is kept.
    """
    enabled = getattr(jax.config, _ENABLED)
    if not enabled or getattr(jax.config, _DIR) is not None:
        return
    try:
        root = files.cache_folder() / f"compiled-{_user()}"
    except RuntimeError:  # nobody's home
        return
    folder = root / _machine()
    if not (_is_own(root) and _is_own(folder)):
        return
    _mend(folder)
    _trim(root)
    jax.config.update(_DIR, str(folder))
    if _CHOSEN not in os.environ:
        jax.config.update(_CHOSEN.lower(), _SECONDS)


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _is_own(folder: pathlib.Path) -> bool:
    """Whether nobody else can put anything there or in its place: it will be run."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.resolve(strict=True)
        each = [path.stat() for path in (found, *found.parents)]
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return os.access(folder, os.W_OK)
    others = stat.S_IWGRP | stat.S_IWOTH
    safe = all(
        at.st_uid in (0, _user())
        and (not at.st_mode & others or at.st_mode & stat.S_ISVTX)
        for at in each
    )
    private = each[0].st_uid == _user() and not each[0].st_mode & others
    return safe and private and os.access(folder, os.W_OK | os.X_OK)


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


def _mend(folder: pathlib.Path) -> None:
    """Without what a process left half-written that was killed since the last look."""
    with contextlib.suppress(OSError):
        seen = folder / _SEEN
        before = seen.stat().st_mtime if seen.exists() else 0.0
        seen.touch()
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                if path.stat().st_mtime >= before and not _is_whole(path):
                    path.unlink()


def _is_whole(path: pathlib.Path) -> bool:
    content = path.read_bytes()
    try:
        if content.startswith(_ZLIB):  # as JAX writes it without zstandard
            zlib.decompress(content)
    except zlib.error:
        return False
    return True


def _trim(root: pathlib.Path) -> None:
    """Without the oldest files beyond what there is room for."""
    there = []
    for path in root.rglob("*"):
        with contextlib.suppress(OSError):  # another process may remove it
            if path.is_file():
                found = path.stat()
                there.append((found.st_mtime, found.st_size, path))
    room = _MOST
    for _, size, path in sorted(there, reverse=True):
        room -= size
        if room < 0:
            with contextlib.suppress(OSError):
                path.unlink()

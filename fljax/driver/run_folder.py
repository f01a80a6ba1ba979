"""The folder of a run: who it belongs to, who uses it now, and what computes.

A folder belongs to one configuration, which may use it again; another one, and a folder
that cannot be written, are refused before any work. From its first byte until its
manifest is written it holds `run.lock`, in which the digest of its configuration stands
and which a process that works in it keeps locked: of two runs in one folder the second
is refused, and a run that died at any moment leaves a folder that is its own.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import pathlib
import platform
import shutil
import socket
import time
from importlib import metadata
from typing import Any

import jax

import fljax
from fljax import cores
from fljax.driver import source
from fljax.driver.config import ConfigError
from fljax.driver.option import PLACES

# Settings of JAX by which the same program gives other numbers.
_ARITHMETIC = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
)
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
UNFINISHED, IDENTITY, MANIFEST = "unfinished", "identity.json", "manifest.json"
LOCK = "run.lock"
_NAMED = 3  # flags, of those that differ


def claim(
    chosen: str | None, experiment: str, name: str, values: dict[str, Any]
) -> tuple[pathlib.Path, str]:
    """Folder of this configuration and its digest; nothing is created yet.

    Raises:
      ConfigError: if the folder holds anything else, or cannot be created or written.
    """
    identity = digest({k: v for k, v in values.items() if k not in PLACES})
    usual = f"runs/{experiment}.{name}-{identity[:8]}"
    path = pathlib.Path(os.path.expanduser(chosen or usual))
    _check_writable(path)
    _check_owner(path, identity, values)
    return path, identity


class Lock:
    """A folder that this process alone works in, as long as it lives."""

    def __init__(self, path: pathlib.Path, identity: str):
        """Creates the folder and marks it as this configuration's.

        Args:
          path: from `claim`.
          identity: digest, from `claim`.

        Raises:
          ConfigError: another process works in it, or it was claimed since.
        """
        self._path = path / LOCK
        self._file: int | None = None
        self._created = [p for p in (path, *path.parents) if not p.exists()]
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._file = self._acquire()
            self._mark(self._file, path, identity)
        except OSError as error:
            self.release(finished=False)
            raise ConfigError(
                f"--run_dir: {path} cannot be written: {error.strerror}"
            ) from error

    def release(self, *, finished: bool) -> None:
        """Lets others work in the folder; removes the mark unless something is begun.

        Args:
          finished: the manifest is written, and is the mark from now on.
        """
        others = []
        with contextlib.suppress(OSError):  # a name that is too long
            others = [p for p in self._path.parent.glob("*") if p.name != LOCK]
        if self._file is not None:
            if finished or not others:
                self._path.unlink(missing_ok=True)
            os.close(self._file)
        for folder in self._created if not others else ():
            with contextlib.suppress(OSError):  # somebody put something there
                folder.rmdir()

    def _mark(self, file: int, path: pathlib.Path, identity: str) -> None:
        try:
            _check_owner(path, identity)
        except ConfigError:
            if not os.fstat(file).st_size:  # nobody else's
                self._path.unlink(missing_ok=True)
            os.close(file)
            raise
        began = time.strftime("%Y-%m-%d %H:%M:%S")
        user = {"process": os.getpid(), "host": socket.gethostname(), "since": began}
        line = json.dumps({"digest": identity} | user)
        mark = f"{line}\n".encode()
        os.pwrite(file, mark, 0)  # before: a full disk must not cost the old one
        os.ftruncate(file, len(mark))
        os.fsync(file)

    def _open(self) -> int:
        """Never what a link leads to: it would be written over."""
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise ConfigError(
                f"--run_dir: {self._path} is a symbolic link, expected a file of its own"
            ) from error

    def _acquire(self) -> int:
        while True:
            file = self._open()
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                raise ConfigError(_in_use(self._path)) from None
            except OSError:  # a file system without locks
                return file
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), os.stat(self._path)):
                    return file
            os.close(file)  # its last user has just removed it


def digest(values: dict[str, Any]) -> str:
    """Names a flat config by 64 hexadecimal digits, whatever the order of its keys."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def environment(program: str = __name__, settings: Any = None) -> dict[str, Any]:
    """Code, versions and devices, for the manifest.

    Args:
      program: name of the module that computes.
      settings: what it was told, which may name code of the user's (`source.identity`).
    """
    device = jax.devices()[0]
    return {
        "code": source.identity(program, settings),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "platform": device.platform,
        "device": device.device_kind,
        "devices": jax.device_count(),
        "processes": jax.process_count(),
        "cpus": cores.available(),
        "arithmetic": {name: str(getattr(jax.config, name)) for name in _ARITHMETIC},
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }


def begun(path: pathlib.Path) -> dict[str, Any]:
    """Digest and environment of the run that a folder has the beginning of, if any."""
    return _read(path / UNFINISHED / IDENTITY)


def unlink(path: pathlib.Path) -> None:
    """Removes links at and below a path: nothing is written or cleared through them."""
    if path.is_symlink():
        path.unlink()
    for each in [each for each in path.rglob("*") if each.is_symlink()]:
        each.unlink()


def forget(path: pathlib.Path) -> None:
    """Removes the beginning of a run."""
    shutil.rmtree(path / UNFINISHED, ignore_errors=True)


def _check_writable(path: pathlib.Path) -> None:
    """Looks at the folder or, before it is created, at the nearest one above it."""
    full = path.absolute()
    try:
        full.exists()  # `lexists` says False of a name that is too long
        nearest = next(p for p in (full, *full.parents) if os.path.lexists(p))
    except OSError as error:  # e.g. a name that is too long
        raise ConfigError(f"--run_dir: {path!s:.80}: {error.strerror}") from error
    if not nearest.is_dir():
        raise ConfigError(f"--run_dir: expected a folder, {nearest} is a file")
    needed = os.W_OK | os.X_OK | (os.R_OK if nearest == full else 0)
    if not os.access(nearest, needed):
        action = "read and written" if nearest == full else f"created in {nearest}"
        raise ConfigError(f"--run_dir: {path} cannot be {action}")


def _check_owner(
    path: pathlib.Path, identity: str, values: dict[str, Any] | None = None
) -> None:
    if not path.exists() or all(each.name == LOCK for each in path.iterdir()):
        return
    owner = _owner(path)
    if owner is None:
        raise ConfigError(
            f"--run_dir: {path} holds files but no finished run; "
            "choose another folder, or empty this one"
        )
    if owner != identity:
        raise ConfigError(
            f"--run_dir: {path} holds the results of another configuration"
            f"{_differing(path, values)}; choose another folder or remove it"
        )


def _differing(path: pathlib.Path, values: dict[str, Any] | None) -> str:
    """Which flags a finished run had otherwise, in words; of many the first three."""
    theirs = _read(path / MANIFEST).get("flags")
    if not isinstance(theirs, dict) or not values:
        return ""
    ours = json.loads(json.dumps(values))
    names = [n for n in ours if n not in PLACES and ours[n] != theirs.get(n)]
    names.sort(key=lambda name: name not in theirs)  # new flags of a later version last
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    flags = ", ".join(f"--{name}" for name in names[:_NAMED])
    return f" ({flags}{more} {'differ' if names[1:] else 'differs'})"


def _owner(path: pathlib.Path) -> str | None:
    """Digest of the run in a folder, finished or not."""
    marks = _read(path / MANIFEST), _read(path / LOCK), begun(path)
    digests = (mark.get("digest") for mark in marks)
    return next((each for each in digests if isinstance(each, str)), None)


def _in_use(lock: pathlib.Path) -> str:
    user = _read(lock)
    keys = (key for key in ("process", "host", "since") if key in user)
    who = " ".join(f"{key} {user[key]}" for key in keys)
    return f"--run_dir: {lock.parent} is in use by another run: {who or 'just begun'}"


def _read(path: pathlib.Path) -> dict[str, Any]:
    """A JSON object from a file; empty if there is none."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _version(package: str) -> str | None:
    """Version as installed; None where a package is not."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return fljax.__version__ if package == "fljax" else None

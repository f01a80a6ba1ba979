"""States of a long computation on disk, from which it goes on: Orbax, and a checksum.

Orbax writes each state into a folder of its own that takes its name last, so that a
process that dies leaves the earlier states as they were. A checksum of its files, written
behind them, says that they are whole; Orbax, which may miss a changed byte and prints
tracebacks for others, is not asked to read what is not. Such a state counts as not there.
"""

import errno
import hashlib
import os
import pathlib
import shutil
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from fljax import files
from fljax.types import PyTree

_CHECKSUM = "files.sha256"
_MARGIN = 2**20  # bytes of a state beside its numbers, and a bit more
_TORN = ".orbax-checkpoint-tmp"  # in the name of what Orbax has not finished
# What Orbax and TensorStore raise for files that are torn, missing or of another form.
_UNREADABLE = (ValueError, KeyError, TypeError, OSError)


class Checkpoints:
    """The last two states of one computation, by step, in a folder of their own."""

    def __init__(self, folder: str | os.PathLike):
        """Creates the folder and clears what a process that died was writing.

        Args:
          folder: nobody else's.
        """
        self._folder = pathlib.Path(folder).absolute()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._clear()

    def save(self, step: int, state: PyTree) -> None:
        """Writes a state; an earlier one of the same or a later step is replaced.

        Args:
          step: how far it is, 0 or more.
          state: arrays and numbers.

        Raises:
          OSError: it could not be written; an earlier one is still there.
        """
        kept = _kept(jax.device_get(state))
        self._check_room(kept)
        steps, folder = self._steps(), self._folder / str(step)
        for later in (each for each in steps if each >= step):
            shutil.rmtree(self._folder / str(later))
        try:
            with _orbax() as orbax:
                orbax.save(folder, args=ocp.args.StandardSave(kept))
            files.write_text(folder / _CHECKSUM, _digest(folder, kept))
        except (ValueError, OSError) as error:  # TensorStore's, e.g. of a full disk
            self._clear()
            raise OSError(str(error)) from error
        for earlier in [each for each in steps if each < step][:-1]:
            shutil.rmtree(self._folder / str(earlier))

    def latest(self, like: PyTree) -> tuple[int, PyTree] | None:
        """The last state that can be read, with its step; None without one.

        Args:
          like: of its structure, shapes and dtypes.

        Returns:
          NumPy arrays in the structure of `like`.
        """
        empty = _kept(jax.tree.map(_zeros, like))
        args = ocp.args.StandardRestore(empty)
        for step in reversed(self._steps()):
            folder = self._folder / str(step)
            try:
                if (folder / _CHECKSUM).read_text() != _digest(folder, empty):
                    continue
                with _orbax() as orbax:
                    return step, _like(like, orbax.restore(folder, args=args))
            except _UNREADABLE:
                continue
        return None

    def _check_room(self, kept: dict[str, np.ndarray]) -> None:
        """Asks first: what Orbax says of a full disk is thousands of lines."""
        needed = sum(leaf.nbytes for leaf in kept.values()) + _MARGIN
        if shutil.disk_usage(self._folder).free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._folder))

    def _steps(self) -> list[int]:
        """Of what is a checkpoint by its name, whatever else there is."""
        names = (path.name for path in self._folder.iterdir())
        return sorted(int(name) for name in names if name.isdecimal())

    def _clear(self) -> None:
        for path in self._folder.glob(f"*{_TORN}*"):
            shutil.rmtree(path, ignore_errors=True)


def _orbax() -> ocp.Checkpointer:
    """In this process alone: it waits for no other."""
    alone = ocp.options.MultiprocessingOptions(
        primary_host=jax.process_index(), active_processes={jax.process_index()}
    )
    handler = ocp.StandardCheckpointHandler(multiprocessing_options=alone)
    return ocp.Checkpointer(handler, multiprocessing_options=alone)


def _kept(state: PyTree) -> dict[str, np.ndarray]:
    """Leaves by position; Orbax takes no empty ones."""
    leaves = map(np.asarray, jax.tree.leaves(state))
    return {str(at): leaf for at, leaf in enumerate(leaves) if leaf.size}


def _like(like: PyTree, kept: dict[str, np.ndarray]) -> PyTree:
    leaves, treedef = jax.tree.flatten(like)
    return treedef.unflatten(
        [
            kept[str(at)] if str(at) in kept else _zeros(leaf)
            for at, leaf in enumerate(leaves)
        ]
    )


def _zeros(leaf: Any) -> np.ndarray:
    return np.zeros(
        np.shape(leaf), leaf.dtype if hasattr(leaf, "dtype") else type(leaf)
    )


def _digest(folder: pathlib.Path, kept: dict[str, np.ndarray]) -> str:
    """Of a state's form, and of all files in its folder but this one."""
    form = [(name, leaf.dtype.str, leaf.shape) for name, leaf in sorted(kept.items())]
    total = hashlib.sha256(repr(form).encode())
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if path != folder / _CHECKSUM:
            name = path.relative_to(folder).as_posix()
            total.update(f"{name}\0{files.sha256(path)}\0".encode())
    return total.hexdigest()

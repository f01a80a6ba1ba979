"""What the adversary keeps: one client's slice of a transcript, and its file format.

A saved transcript is two files that any program can read without JAX:

* `NAME.npz`: uncompressed NumPy arrays: `round` `[R]`, `client` `[R, K]` (-1 for an
  empty slot) and, for every parameter of the model, `params/LAYER/NAME` `[R, ...]`, the
  model that was sent, and `delta/LAYER/NAME` `[R, K, ...]`, sent minus returned.
* `NAME.json`: format and version, the shape and dtype of every array, the sha256 of the
  `.npz`, and `about`, a free object (batch size, learning rate, ...).

Files are data from strangers: nothing is unpickled, and every size is checked against
the description before it is read.
"""

import json
import math
import os
import pathlib
import zipfile
from typing import Any

import jax
import numpy as np

from fljax import files
from fljax.types import Exchange, Transcript

_FORMAT = "fljax-transcript"
_VERSION = 1
_HEADER_BYTES = 4096  # more than any .npy header of a plain array takes


class TranscriptError(ValueError):
    """A transcript that cannot be used; the message names the file and the reason."""


def exchange(transcript: Transcript, client: int) -> Exchange:
    """One client's messages, oldest first.

    Args:
      transcript: arrays as they come out of a run, without a seed axis.
      client: her id.

    Returns:
      An `Exchange` of NumPy arrays over the recorded rounds in which she took part.

    Raises:
      TranscriptError: if no recorded round has her.
    """
    row, slot = np.nonzero(np.asarray(transcript.client) == client)
    if not len(row):
        raise TranscriptError(f"no recorded message of client {client}")
    return Exchange(
        params=jax.tree.map(lambda leaf: np.asarray(leaf)[row], transcript.params),
        delta=jax.tree.map(lambda leaf: np.asarray(leaf)[row, slot], transcript.delta),
    )


def save(
    stem: str | os.PathLike, transcript: Transcript, about: dict[str, Any] | None = None
) -> None:
    """Writes `stem.npz` and `stem.json`, each atomically, the description last.

    Parameters that are not nested dicts (lists, tuples) are stored, and come back, as
    dicts keyed by position.
    """
    stem = pathlib.Path(stem)
    arrays = {
        "round": np.asarray(transcript.round),
        "client": np.asarray(transcript.client),
        **_named("params", transcript.params),
        **_named("delta", transcript.delta),
    }
    archive = stem.with_name(stem.name + ".npz")
    with files.replacing(archive) as file:
        np.savez(file, allow_pickle=False, **arrays)
    description = {
        "format": _FORMAT,
        "version": _VERSION,
        "sha256": files.sha256(archive),
        "arrays": {
            name: {"shape": list(array.shape), "dtype": array.dtype.str}
            for name, array in arrays.items()
        },
        "about": about or {},
    }
    text = json.dumps(description, indent=1) + "\n"
    files.write_text(stem.with_name(stem.name + ".json"), text)


def load(stem: str | os.PathLike) -> tuple[Transcript, dict[str, Any]]:
    """Reads what `save` wrote: the transcript, as NumPy arrays, and `about`.

    Raises:
      TranscriptError: for a missing, damaged or tampered file.
    """
    stem = pathlib.Path(stem)
    path = stem.with_name(stem.name + ".json")
    try:
        description = json.loads(path.read_text())
        if description["format"] != _FORMAT or description["version"] != _VERSION:
            raise TranscriptError(f"{path}: expected {_FORMAT} version {_VERSION}")
        shapes = {
            name: (tuple(map(int, spec["shape"])), np.dtype(spec["dtype"]))
            for name, spec in description["arrays"].items()
        }
        about, digest = description["about"], description["sha256"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, TranscriptError):
            raise
        raise TranscriptError(
            f"{path}: not a transcript description: {error!r}"
        ) from None
    arrays = _read_arrays(stem.with_name(stem.name + ".npz"), shapes, digest)
    _check_consistent(path, arrays)
    transcript = Transcript(
        arrays["round"], arrays["client"],
        _nested(arrays, "params"), _nested(arrays, "delta"),
    )  # fmt: skip
    return transcript, about


def _read_arrays(path, shapes, digest) -> dict[str, np.ndarray]:
    try:
        if files.sha256(path) != digest:
            raise TranscriptError(f"{path}: content does not match its sha256")
        with zipfile.ZipFile(path) as archive:
            names = {info.filename.removesuffix(".npy") for info in archive.filelist}
            if names != set(shapes):
                raise TranscriptError(f"{path}: arrays differ from the description")
            arrays = {}
            for info in archive.filelist:
                name = info.filename.removesuffix(".npy")
                shape, dtype = shapes[name]
                arrays[name] = _read_array(path, archive, info, shape, dtype)
            return arrays
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, TranscriptError):
            raise
        raise TranscriptError(f"{path}: unreadable: {error}") from None


def _read_array(path, archive, info, shape, dtype) -> np.ndarray:
    expected = math.prod(shape) * dtype.itemsize
    if dtype.kind not in "fiu" or info.file_size > expected + _HEADER_BYTES:
        raise TranscriptError(f"{path}: {info.filename} has an unexpected size or type")
    with archive.open(info) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
    if array.shape != shape or array.dtype != dtype:
        raise TranscriptError(
            f"{path}: {info.filename} is {array.dtype}{list(array.shape)}, "
            f"described as {dtype}{list(shape)}"
        )
    return array


def _check_consistent(path, arrays) -> None:
    if not {"round", "client"} <= set(arrays):
        raise TranscriptError(f"{path}: arrays 'round' and 'client' are required")
    (rounds,), clients = arrays["round"].shape, arrays["client"].shape
    for name, array in arrays.items():
        kind, _, rest = name.partition("/")
        lead = {"params": (rounds,), "delta": clients, "client": (rounds,)}.get(
            kind, ()
        )
        if array.shape[: len(lead)] != lead:
            raise TranscriptError(f"{path}: {name} needs leading axes {list(lead)}")
        if kind == "params":
            inner = arrays.get(f"delta/{rest}")
            if inner is None or inner.shape[2:] != array.shape[1:]:
                raise TranscriptError(f"{path}: delta/{rest} does not fit {name}")


def _named(prefix, tree) -> dict[str, np.ndarray]:
    return {
        "/".join(
            [prefix, jax.tree_util.keystr(path, simple=True, separator="/")]
        ): np.asarray(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def _nested(arrays, prefix) -> dict:
    tree: dict = {}
    for name, array in arrays.items():
        kind, *path = name.split("/")
        if kind == prefix:
            node = tree
            for key in path[:-1]:
                node = node.setdefault(key, {})
            node[path[-1]] = array
    return tree

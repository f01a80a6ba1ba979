"""Transcripts as files: written atomically, and read as data from strangers.

Nothing is unpickled, and no array is read before its size is known to be the described
one and no more than the file holds.
"""

import contextlib
import json
import math
import os
import pathlib
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from fljax import files, printable
from fljax.transcript import contents
from fljax.transcript.arrays import copied
from fljax.transcript.views import TranscriptError
from fljax.types import Transcript

_FORMAT = "fljax-transcript"
_VERSION = 1
_HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def save(
    stem: str | os.PathLike, transcript: Transcript, about: dict[str, Any] | None = None
) -> None:
    """Writes `stem.npz` and `stem.json`, each atomically, the description last.

    Parameters that are not nested dicts (lists, tuples) are stored, and come back, as
    dicts keyed by position. What the format lacks is stored as `arrays.copied` has it.

    Args:
      stem: path of the transcript, with or without `.npz`.
      transcript: of one seed.
      about: free description, in what JSON holds; attacks read what `Recorder` lists.

    Raises:
      ValueError: it is no transcript of one seed; nothing is written then.
    """
    write(stem, arrays(transcript), about)


def arrays(transcript: Transcript) -> dict[str, np.ndarray]:
    """A transcript of one seed under the names of the format."""
    sums = {name: getattr(transcript, name) for name in contents.SUMS}
    return {
        "round": np.asarray(transcript.round),
        "client": np.asarray(transcript.client),
        **{name: np.asarray(leaf) for name, leaf in sums.items() if leaf is not None},
        **_named("params", transcript.params),
        **_named("delta", transcript.delta),
    }


def write(
    stem: str | os.PathLike,
    arrays: dict[str, np.ndarray],
    about: dict[str, Any] | None = None,
) -> None:
    """The same of arrays that have the names of the format.

    Raises:
      ValueError: if they are not those of one transcript, or JSON cannot hold `about`;
        nothing is written then.
    """
    contents.check(arrays)
    try:
        about = json.loads(json.dumps(about or {}, default=plain))
    except (TypeError, ValueError) as error:
        raise ValueError(f"about: {error}") from error
    archive = _with_suffix(stem, ".npz")
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
        "about": about,
    }
    text = json.dumps(description, indent=1) + "\n"
    files.write_text(_with_suffix(stem, ".json"), text)


def load(stem: str | os.PathLike) -> tuple[Transcript, dict[str, Any]]:
    """Reads what `save` wrote: the transcript, as NumPy arrays, and `about`.

    Raises:
      TranscriptError: for a missing, damaged, tampered or empty file.
    """
    description, archive = _with_suffix(stem, ".json"), _with_suffix(stem, ".npz")
    with blaming(description):
        specs, digest, about = _read_description(description)
    with blaming(archive):
        arrays = _read_arrays(archive, specs, digest)
    with blaming(description):
        contents.check(arrays)
    arrays = contents.with_ids(arrays)
    params, delta = _nested(arrays, "params"), _nested(arrays, "delta")
    sums = (arrays.get(name) for name in contents.SUMS)
    return Transcript(arrays["round"], arrays["client"], params, delta, *sums), about


# What the readers of JSON, zip and .npy raise for damaged content.
_DAMAGE = (
    *(OSError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError),
    *(EOFError, MemoryError, RuntimeError, SyntaxError, AssertionError, struct.error),
    *(tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


@contextlib.contextmanager
def blaming(path) -> Iterator[None]:
    """Turns whatever goes wrong with a regular file into one line that names it."""
    try:
        if path.exists() and not path.is_file():
            raise ValueError("expected a regular file")  # a pipe would never end
        yield
    except _DAMAGE as error:
        reason = error if isinstance(error, OSError | ValueError) else repr(error)
        reason = getattr(error, "strerror", None) or reason  # without its own path
        raise TranscriptError(f"{path}: {printable.line(reason)[:300]}") from error


def _read_description(path) -> tuple[dict[str, tuple], str, dict[str, Any]]:
    """The shape and dtype of every array, the sha256 of the archive, and `about`."""
    header = json.loads(path.read_text(encoding="utf-8"))
    fields = {"format", "version", "sha256", "arrays", "about"}
    if not isinstance(header, dict) or not fields <= set(header):
        raise ValueError(f"expected an object with {sorted(fields)}")
    if (header["format"], header["version"]) != (_FORMAT, _VERSION):
        raise ValueError(f"expected {_FORMAT} version {_VERSION}")
    if not all(isinstance(header[field], dict) for field in ("arrays", "about")):
        raise ValueError("'arrays' or 'about' is not an object")
    specs = {}
    for name, spec in header["arrays"].items():
        contents.check_name(name)
        shape, dtype = tuple(spec["shape"]), np.dtype(spec["dtype"])
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError(f"{name!r} has the impossible shape {list(shape)}")
        if dtype.kind not in "fiu" or dtype.itemsize > 8 or not dtype.isnative:
            raise ValueError(f"{name!r} has the unsupported type {dtype.str}")
        specs[name] = shape, dtype
    return specs, header["sha256"], header["about"]


def _read_arrays(path, specs, digest) -> dict[str, np.ndarray]:
    if files.sha256(path) != digest:
        raise ValueError("content does not match its sha256")
    with zipfile.ZipFile(path) as archive:
        if sorted(archive.namelist()) != sorted(f"{name}.npy" for name in specs):
            raise ValueError("arrays differ from the description")
        check_stored(archive, path)
        return {name: _read_array(archive, name, *spec) for name, spec in specs.items()}


def check_stored(archive: zipfile.ZipFile, path: pathlib.Path) -> None:
    """Raises ValueError unless no array takes more memory than the file takes on disk."""
    stored = all(m.compress_type == zipfile.ZIP_STORED for m in archive.filelist)
    total = sum(member.file_size for member in archive.filelist)
    if not stored or total > path.stat().st_size:
        raise ValueError("compressed, or shorter than its arrays")


def _read_array(archive, name, shape, dtype) -> np.ndarray:
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        found, _, kind = _HEADER_READERS[version](file)
        if (found, kind) != (shape, dtype):
            raise ValueError(
                f"{name!r} is {kind}{list(found)}, described as {dtype}{list(shape)}"
            )
        if file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
            raise ValueError(f"{name!r} is longer or shorter than its header says")
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def stem_of(path: str | os.PathLike) -> pathlib.Path:
    """The path of a transcript without the suffix of either of its files."""
    path = pathlib.Path(os.path.expanduser(path))
    for suffix in (".npz", ".json"):
        if path.name.endswith(suffix) and path.name != suffix:
            return path.with_name(path.name.removesuffix(suffix))
    return path


def _with_suffix(path, suffix) -> pathlib.Path:
    # A dot in the name belongs to the name: `Path.with_suffix` would cut it.
    return pathlib.Path(f"{stem_of(path)}{suffix}")


def plain(value: Any) -> Any:
    """NumPy's and JAX's numbers and arrays, as JSON has them; TypeError for others."""
    if not hasattr(value, "dtype"):
        raise TypeError(f"{value!r:.60} is nothing that JSON can hold")
    return np.asarray(value).tolist()


def _named(prefix, tree) -> dict[str, np.ndarray]:
    found = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        inner = jax.tree_util.keystr(path, simple=True, separator="/")
        name = f"{prefix}/{inner}"
        if name in found:
            raise ValueError(f"{prefix}: {inner} is the name of two arrays")
        found[name] = copied(leaf)
    return found


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

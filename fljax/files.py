"""Files that appear whole or not at all."""

import contextlib
import hashlib
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

_PART = ".part"


def cache_folder() -> pathlib.Path:
    """Where what can be had again is kept: `FLJAX_CACHE`, else `~/.cache/fljax`."""
    return pathlib.Path(os.environ.get("FLJAX_CACHE") or "~/.cache/fljax").expanduser()


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a binary file that takes `path`'s name only when the block succeeds.

    Folders are created as needed. On any error nothing is left behind and an earlier
    file of that name stays as it was.

    Raises:
      OSError: it cannot be written, e.g. a disk is full; naming it.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(
        prefix=f".{path.name}.", suffix=_PART, dir=path.parent
    )
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        if isinstance(error, OSError) and error.errno and not error.filename:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _umask() -> int:
    """Bits that new files of this process lack."""
    mask = os.umask(0o077)  # reading it means setting it
    os.umask(mask)
    return mask


def clear(folder: str | os.PathLike) -> None:
    """Removes what a process that was killed within `replacing` left in a folder."""
    for path in pathlib.Path(folder).glob(f".*{_PART}"):
        path.unlink(missing_ok=True)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Writes a text file atomically, as UTF-8."""
    with replacing(path) as file:
        file.write(text.encode())


def sha256(path: str | os.PathLike) -> str:
    """Hex digest of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

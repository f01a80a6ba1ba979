"""Reads a plain, gzipped or zipped file whole, without trusting it."""

import gzip
import io
import pathlib
import zipfile
import zlib
from typing import IO

from fljax.data.table import DataError


def read(path: pathlib.Path, *, member: str | None = None, max_bytes: int) -> bytes:
    """Content of a file, decompressed.

    Args:
      path: a file; `.gz` and `.zip` are decompressed.
      member: the file wanted from a `.zip`.
      max_bytes: larger content is refused.

    Raises:
      DataError: the archive is damaged, unsafe, too large or lacks the member.
    """
    try:
        if path.suffix == ".zip":
            return _read_member(path, member or "", max_bytes)
        open_file = gzip.open if path.suffix == ".gz" else open
        with open_file(path, "rb") as stream:
            return _read_at_most(stream, path.name, max_bytes)
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path.name}: damaged archive ({error})") from error
    # zipfile's word for a password or for a method that it does not know.
    except RuntimeError as error:
        raise DataError(f"{path.name}: cannot be unpacked ({error})") from error
    except OSError as error:
        raise DataError(
            f"{path.name}: cannot be read ({error.strerror or error})"
        ) from error


def _read_member(path: pathlib.Path, member: str, max_bytes: int) -> bytes:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        for name in names:
            parts = pathlib.PureWindowsPath(name)  # reads / and \ and drive letters
            if parts.is_absolute() or parts.root or ".." in parts.parts:
                raise DataError(f"{path.name}: unsafe entry {name!r} in the archive")
        if member not in names:
            raise DataError(
                f"{path.name}: no {member} in the archive, it holds "
                f"{', '.join(names[:5])}"
            )
        with archive.open(member) as stream:
            return _read_at_most(stream, f"{path.name}/{member}", max_bytes)


def _read_at_most(
    stream: io.BufferedIOBase | IO[bytes], name: str, max_bytes: int
) -> bytes:
    # Sizes that a header declares may lie, so what is read is what is counted.
    content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise DataError(f"{name}: larger than the limit of {max_bytes} bytes")
    return content

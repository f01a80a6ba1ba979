"""Reads a plain or compressed file whole, and archives, without trusting them."""

import gzip
import io
import lzma
import pathlib
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from fljax.data.table import DataError

_OPEN = {".gz": gzip.open, ".tgz": gzip.open, ".xz": lzma.open}
_DAMAGED = (
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
)


def read(path: pathlib.Path, *, member: str | None = None, max_bytes: int) -> bytes:
    """Content of a file, decompressed.

    Args:
      path: a file; `.gz`, `.tgz`, `.xz` and `.zip` are decompressed.
      member: the file wanted from a `.zip`; None: its only one.
      max_bytes: larger content is refused.

    Raises:
      DataError: the archive is damaged, unsafe, too large or lacks the member.
    """
    try:
        if path.suffix == ".zip":
            return _read_member(path, member or "", max_bytes)
        with _OPEN.get(path.suffix, open)(path, "rb") as stream:
            return _read_at_most(stream, path.name, max_bytes)
    except _DAMAGED as error:
        raise DataError(f"{path.name}: damaged archive ({error})") from error
    # zipfile's word for a password or for a method that it does not know.
    except RuntimeError as error:
        raise DataError(f"{path.name}: cannot be unpacked ({error})") from error
    except OSError as error:
        raise DataError(
            f"{path.name}: cannot be read ({error.strerror or error})"
        ) from error


def tar_members(content: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    """Files of an uncompressed tar archive in their order; nothing is written.

    Args:
      content: the archive.
      name: what errors call it.

    Yields:
      Path inside the archive, and content.

    Raises:
      DataError: the archive is damaged or cut, or an entry has an unsafe name or is a
        link, a device or a sparse file, whose size is not that of its content.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for member in tar:
                _check_entry(member.name, name)
                if member.isdir():
                    continue
                stream = tar.extractfile(member) if member.isreg() else None
                if stream is None or member.issparse():
                    raise DataError(f"{name}: entry {member.name!r} is no plain file")
                yield member.name, stream.read()
            # tarfile takes a broken header for the end; the end is empty blocks.
            rest = content[tar.offset :]
    except tarfile.TarError as error:
        raise DataError(f"{name}: damaged archive ({error})") from error
    if not rest or any(rest):
        raise DataError(f"{name}: damaged archive (broken header, or cut short)")


def _check_entry(entry: str, name: str) -> None:
    parts = pathlib.PureWindowsPath(entry)  # reads / and \ and drive letters
    if parts.is_absolute() or parts.root or ".." in parts.parts:
        raise DataError(f"{name}: unsafe entry {entry!r} in the archive")


def _read_member(path: pathlib.Path, member: str, max_bytes: int) -> bytes:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        for name in names:
            _check_entry(name, path.name)
        if not member and len(names) == 1:  # of a file of one's own
            (member,) = names
        if not member:
            raise DataError(
                f"{path.name}: expected one file in the archive, it holds "
                f"{', '.join(names[:5]) or 'none'}"
            )
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

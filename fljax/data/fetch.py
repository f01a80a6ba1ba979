"""Finds a data set's file: a local copy first, then the cache, then its address.

Local copies are looked up in `data_dir` (or the folder named by the environment
variable FLJAX_DATA), flat and in the data set's sub-folders. Downloads are kept in
FLJAX_CACHE or `~/.cache/fljax`.
"""

import contextlib
import hashlib
import os
import pathlib
import urllib.parse
from collections.abc import Iterator
from typing import NamedTuple

from fljax import files, memory
from fljax.data import archive
from fljax.data.download import PATIENT, Policy, download
from fljax.data.source import Source
from fljax.data.table import DataError, FileRecord

_MAX_LOCAL = 1 << 32
_COPIES = 3  # of a content, while it is decompressed and read


class File(NamedTuple):
    """A file that passed its checks.

    Attributes:
      record: name, hash and origin.
      content: decompressed; of an archive, the member that the source names.
    """

    record: FileRecord
    content: bytes


def fetch(
    source: Source, data_dir: str | None = None, *, policy: Policy = PATIENT
) -> File:
    """Reads a source's file, from disk if it is there.

    Raises:
      DataError: no correct copy was found and none could be downloaded.
    """
    path, origin = locate(source, data_dir, policy=policy)
    member = source.member if path.suffix == ".zip" else None
    content = archive.read(path, member=member, max_bytes=source.max_bytes)
    # A file that the publisher compressed is named by its own hash; one that only the
    # local copy compresses, by that of its content.
    published = member or path.name == source.filename
    found = files.sha256(path) if published else hashlib.sha256(content).hexdigest()
    if source.sha256 not in (None, found):
        raise DataError(
            f"{path}: expected sha256 {source.sha256} of the "
            f"{'file' if published else 'content'}, found {found}"
        )
    return File(FileRecord(name=path.name, sha256=found, origin=origin), content)


def locate(
    source: Source, data_dir: str | None = None, *, policy: Policy = PATIENT
) -> tuple[pathlib.Path, str]:
    """Path of a source's file and its origin, `local` or the address.

    Raises:
      DataError: the folder of local copies is none, or the file is nowhere and could not
        be downloaded; the line says which file to get, from where, and where to put it.
    """
    given = data_dir or os.environ.get("FLJAX_DATA")
    if given:
        with _looking_at(given):
            folder = pathlib.Path(given).expanduser()
            if not folder.is_dir():
                raise DataError(
                    f"{given}: expected a folder of data files, there is none"
                )
            local = _find(source, folder)
        if local is not None:
            return local, "local"
    place = given or "a folder named by data_dir or FLJAX_DATA"
    wanted = source.member or source.filename
    made = f" ({source.note})" if source.note else ""
    advice = f"get {wanted}{made} from {source.url} and put it into {place}"
    if not source.download:
        raise DataError(f"{source.dataset}: {wanted} not found; {advice}")
    cached = _cache_path(source)
    if cached.exists():
        _check_cached(cached, source.sha256)
        return cached, source.url
    try:
        found = download(
            source.url,
            cached,
            sha256=source.sha256,
            max_bytes=source.max_bytes,
            policy=policy,
        )
    except DataError as error:
        raise DataError(
            f"{source.dataset}: {wanted} not found and not downloaded ({error}); "
            f"{advice}"
        ) from error
    files.write_text(_beside(cached), f"{found}\n")
    return cached, source.url


def read_local(path: str, data_dir: str | None = None) -> File:
    """Reads a user's own file, which has no source.

    Args:
      path: the file; a relative path may also start from `data_dir`.
      data_dir: folder of local copies.

    Raises:
      DataError: there is no such file, or the memory cannot hold it.
    """
    given = data_dir or os.environ.get("FLJAX_DATA")
    with _looking_at(path):
        found = pathlib.Path(path).expanduser()
        there = found.is_file()
    if not there and given:
        with _looking_at(given):
            found = pathlib.Path(given).expanduser() / path
            there = found.is_file()
    if not there:
        is_folder = found.is_dir()
        wrong = "expected a file, this is a folder" if is_folder else "no such file"
        raise DataError(f"{path}: {wrong}")
    most = int(min(_MAX_LOCAL, memory.available() / _COPIES))
    return of_bytes(found.name, archive.read(found, max_bytes=most))


def of_bytes(name: str, content: bytes) -> File:
    """A user's own file that is in memory."""
    digest = hashlib.sha256(content).hexdigest()
    return File(FileRecord(name=name, sha256=digest, origin="local"), content)


@contextlib.contextmanager
def _looking_at(path: str) -> Iterator[None]:
    """A block that may meet a name that is too long, or a folder that is closed to it."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # the latter of `~somebody`
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path:.80}: {reason}") from error


def _find(source: Source, root: pathlib.Path) -> pathlib.Path | None:
    names = [source.member] if source.member else []
    names += [source.filename, f"{source.filename}.gz", *source.also]
    # Sub-folders first: they say more about a file than its bare name does.
    for folder in (*source.folders, "."):
        for name in names:
            path = root / folder / name
            if path.is_file():
                return path
    return None


def _cache_path(source: Source) -> pathlib.Path:
    # One file name may stand for many files: the address tells them apart.
    parts = urllib.parse.urlsplit(source.url).path.strip("/").split("/")[:-1]
    folder = files.cache_folder() / source.dataset
    return folder.joinpath(*parts[-2:], source.filename)


def _check_cached(path: pathlib.Path, pinned: str | None) -> None:
    """A file without a pinned hash must stay what it was when it first came."""
    try:
        recorded = _beside(path).read_text().strip()
    except FileNotFoundError:
        if pinned:  # `fetch` looks
            return
        recorded = None
    if recorded != files.sha256(path):
        raise DataError(
            f"{path}: not known to be what was downloaded, delete it to download it again"
        )


def _beside(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(f"{path.name}.sha256")

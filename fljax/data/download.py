"""Downloads one file over HTTP: whole, checked, or not at all.

Pooch receives it beside its destination, checks the hash and renames it. Added here are a
limit on the size, a look at the first bytes, and tries for what may pass.
"""

import dataclasses
import pathlib
import time
from typing import BinaryIO

from fljax import files
from fljax.data.table import DataError

_CHUNK = 1 << 16
_SIGNATURES = {".zip": b"PK", ".gz": b"\x1f\x8b", ".tgz": b"\x1f\x8b"}
_PASSING = (None, 429, *range(500, 600))
_HEADERS = {"User-Agent": "fljax", "Accept-Encoding": "identity"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy:
    """How patient a download is.

    Attributes:
      timeout: seconds without a byte before an attempt is given up.
      attempts: tries for errors that may pass (429, 5xx, connection, truncation).
      pause: seconds before the second try, doubled before each further one.
    """

    timeout: float = 30.0
    attempts: int = 4
    pause: float = 1.0


PATIENT = Policy()


def download(
    url: str,
    destination: pathlib.Path,
    *,
    sha256: str | None,
    max_bytes: int,
    policy: Policy,
) -> str:
    """Downloads to `destination`, which appears only when complete and correct.

    Args:
      url: `http` or `https` address.
      destination: file to write; folders are made.
      sha256: expected hash, or None.
      max_bytes: a larger file is refused.
      policy: time-outs and retries.

    Returns:
      The hash of the file.

    Raises:
      DataError: the address does not answer with the expected file.
    """
    if not url.startswith(("http://", "https://")):
        raise DataError(f"{destination.name}: not an http address: {url}")
    pooch, requests = _libraries()
    for left in reversed(range(policy.attempts)):
        try:
            return _attempt(pooch, url, destination, sha256, max_bytes, policy.timeout)
        except requests.RequestException as error:
            code = None if error.response is None else error.response.status_code
            if not left or code not in _PASSING:
                broke = f"no connection ({type(error).__name__})"
                why = f"the server answered {code}" if code else broke
                raise DataError(f"{url}: {why}") from error
            time.sleep(policy.pause * 2 ** (policy.attempts - 1 - left))
        except OSError as error:
            raise DataError(
                f"{destination}: cannot be written ({error.strerror or error})"
            ) from error
    raise DataError(f"{policy.attempts=} must be at least 1")


def _libraries():
    try:
        import pooch
        import requests
    except ImportError as error:
        raise DataError("a download needs pip install -e '.[data]'") from error
    pooch.get_logger().setLevel("WARNING")
    return pooch, requests


def _attempt(pooch, url, destination, sha256, max_bytes, timeout) -> str:
    get = pooch.HTTPDownloader(chunk_size=_CHUNK, timeout=timeout, headers=_HEADERS)

    def receive(url: str, path: str, by: object) -> None:
        with open(path, "wb") as stream:
            checked = _Checked(stream, url, destination.suffix, max_bytes)
            get(url, checked, by)
        if not checked.size:
            raise DataError(f"{url}: the answer is empty")

    name, folder = destination.name, destination.parent
    known = sha256 and f"sha256:{sha256}"
    try:
        pooch.retrieve(url, known, name, folder, downloader=receive)
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{url}: {error}") from error  # another hash
    return files.sha256(destination)


class _Checked:
    """A file that refuses what is too large or begins as another kind of file does."""

    def __init__(self, stream: BinaryIO, url: str, suffix: str, max_bytes: int):
        self._stream, self._url, self._suffix = stream, url, suffix
        self._max_bytes, self.size = max_bytes, 0
        self.flush = stream.flush

    def write(self, chunk: bytes) -> None:
        if not self.size:
            _check_start(chunk, self._url, self._suffix)
        self.size += len(chunk)
        if self.size > self._max_bytes:
            raise DataError(
                f"{self._url}: larger than the limit of {self._max_bytes} bytes"
            )
        self._stream.write(chunk)


def _check_start(chunk: bytes, url: str, suffix: str) -> None:
    """Tells a page of text about the file from the file itself."""
    start = chunk[:512].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise DataError(f"{url}: the server answered with a page instead of the file")
    signature = _SIGNATURES.get(suffix, b"")
    if not chunk.startswith(signature):
        raise DataError(f"{url}: the answer is not a {suffix} file")

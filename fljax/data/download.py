"""Downloads one file over HTTP: whole, checked, or not at all."""

import dataclasses
import hashlib
import http.client
import pathlib
import ssl
import time
import urllib.error
import urllib.request
from typing import IO

from fljax import files
from fljax.data.table import DataError

_CHUNK = 1 << 16
_SIGNATURES = {".zip": b"PK", ".gz": b"\x1f\x8b", ".tgz": b"\x1f\x8b"}


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


class _Passing(Exception):
    """A failure that another try may not meet."""


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
    try:
        for attempt in range(policy.attempts):
            try:
                return _attempt(url, destination, sha256, max_bytes, policy.timeout)
            except _Passing as error:
                if attempt + 1 == policy.attempts:
                    raise DataError(f"{url}: {error}") from error
            time.sleep(policy.pause * 2**attempt)
    except OSError as error:
        raise DataError(
            f"{destination}: cannot be written ({error.strerror or error})"
        ) from error
    raise DataError(f"{policy.attempts=} must be at least 1")


def _attempt(
    url: str,
    destination: pathlib.Path,
    sha256: str | None,
    max_bytes: int,
    timeout: float,
) -> str:
    with files.replacing(destination) as stream:
        found = _receive(url, stream, destination, max_bytes, timeout)
        if sha256 is not None and found != sha256:
            raise DataError(f"{url}: expected sha256 {sha256}, got {found}")
    return found


def _receive(
    url: str,
    stream: IO[bytes],
    destination: pathlib.Path,
    max_bytes: int,
    timeout: float,
) -> str:
    request = urllib.request.Request(url, headers={"User-Agent": "fljax"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return _copy(response, stream, url, destination.suffix, max_bytes)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 429 or error.code >= 500:
            raise _Passing(f"the server answered {error.code}") from error
        raise DataError(f"{url}: the server answered {error.code}") from error
    except urllib.error.URLError as error:
        raise _Passing(f"no connection ({error.reason})") from error
    except TimeoutError as error:
        raise _Passing(f"no answer within {timeout:g} s") from error
    except (http.client.HTTPException, ConnectionError, ssl.SSLError) as error:
        raise _Passing(f"the connection broke ({type(error).__name__})") from error


def _copy(
    response: http.client.HTTPResponse,
    stream: IO[bytes],
    url: str,
    suffix: str,
    max_bytes: int,
) -> str:
    declared = response.headers.get("Content-Length")
    digest, size = hashlib.sha256(), 0
    while chunk := response.read(_CHUNK):
        if not size:
            _check_start(chunk, url, suffix)
        size += len(chunk)
        if size > max_bytes:
            raise DataError(f"{url}: larger than the limit of {max_bytes} bytes")
        digest.update(chunk)
        stream.write(chunk)
    if declared is not None and declared.isdigit() and size != int(declared):
        raise _Passing(f"truncated, {size} of {declared} bytes arrived")
    if not size:
        raise DataError(f"{url}: the answer is empty")
    return digest.hexdigest()


def _check_start(chunk: bytes, url: str, suffix: str) -> None:
    """Tells a page of text about the file from the file itself."""
    start = chunk[:512].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise DataError(f"{url}: the server answered with a page instead of the file")
    signature = _SIGNATURES.get(suffix, b"")
    if not chunk.startswith(signature):
        raise DataError(f"{url}: the answer is not a {suffix} file")

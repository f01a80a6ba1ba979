"""What an audit reads: rows, a recording, and the adversary's own rows."""

import contextlib
import os
import pathlib
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from fljax import data, files
from fljax.auditing import recording, table
from fljax.auditing.recording import Recording
from fljax.auditing.settings import FilesConfig, RowsConfig
from fljax.auditing.table import Owned
from fljax.data.fetch import read_local


class Inputs(NamedTuple):
    """What was read.

    Attributes:
      owned: the rows and whose they are.
      recording: the transcript.
      proxy: the adversary's own rows, None without.
      files: that were read.
      warned: what was said of rows that were changed or left out.
    """

    owned: Owned
    recording: Recording
    proxy: pd.DataFrame | None
    files: list[data.FileRecord]
    warned: list[str]


def read(
    config: FilesConfig,
    rows: RowsConfig,
    *,
    known: str | os.PathLike | None = None,
    proxy: str | os.PathLike | None = None,
    seen: Recording | None = None,
) -> Inputs:
    """Reads everything.

    Args:
      config: names of files and columns.
      rows: how columns are read.
      known: where the rows are, instead of where `config` says.
      proxy: likewise.
      seen: the transcript, instead of a file.

    Raises:
      ConfigError: a file or column is not there.
      TranscriptError: the transcript is damaged.
      DataError: the rows make no table.
    """
    known, proxy, warned = str(known or config.known), proxy or config.proxy, []
    with _kept(warned):
        owned = table.read(known, config, rows)
    seen = seen or recording.read(config.transcript)
    owned = table.identified(owned, seen.about, config)
    records = [read_local(known).record]
    frame = None
    if proxy is not None:
        with _kept(warned):
            frame = table.proxy_rows(str(proxy), config, rows)
        records.append(read_local(str(proxy)).record)
    if seen.stem == recording.IN_MEMORY:
        digest = recording.sha256(seen.seen)
        records.append(
            data.FileRecord(name="transcript", sha256=digest, origin="memory")
        )
    else:
        path = pathlib.Path(f"{seen.stem}.npz")
        digest = files.sha256(path)
        records.append(data.FileRecord(name=path.name, sha256=digest, origin="local"))
    return Inputs(owned, seen, frame, records, warned)


@contextlib.contextmanager
def _kept(texts: list[str]) -> Iterator[None]:
    """A block whose warnings are kept, too: a page is read without the screen."""
    said: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            yield
    finally:
        for each in said:
            if each.category is UserWarning:
                texts.append(str(each.message))
            warnings.warn(each.message, each.category, stacklevel=4)

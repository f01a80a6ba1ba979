"""Parses CSV bytes strictly: a broken file is one clear line, never a guess."""

import csv
import io
import warnings
from collections.abc import Sequence
from typing import Any

import pandas as pd

from fljax.data.table import DataError


def read_csv(
    content: bytes,
    name: str,
    *,
    columns: Sequence[str] | None = None,
    dtype: Any = None,
) -> pd.DataFrame:
    """Rows of a CSV file whose first line names the columns.

    Args:
      content: the file.
      name: what errors call it.
      columns: read only those of these that the file has.
      dtype: as in `pandas.read_csv`.

    Raises:
      DataError: not UTF-8, no header, repeated columns, ragged rows.
    """
    try:
        header = _header(content, name)
        # With `usecols`, even of every column, pandas accepts rows of any length.
        kept = None if columns is None else [c for c in header if c in columns]
        with warnings.catch_warnings():
            # pandas only warns when the rows are longer than the header.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.BytesIO(content),
                names=header,
                header=0,
                usecols=kept,
                dtype=dtype,
                index_col=False,
                skipinitialspace=True,
                encoding="utf-8-sig",
                low_memory=False,
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{name}: malformed CSV ({reason})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not UTF-8 text (byte {error.start})") from error
    if not len(frame):
        raise DataError(f"{name}: no rows below the header")
    return frame


def _header(content: bytes, name: str) -> list[str]:
    """Column names as written; pandas would rename repeated ones in silence."""
    first = content.split(b"\n", 1)[0].decode("utf-8-sig")
    names = [word.strip() for word in next(csv.reader([first]), [])]
    if not any(names):
        raise DataError(f"{name}: empty, or its first line names no columns")
    for position, word in enumerate(names):
        if word in names[:position]:
            raise DataError(f"{name}: column {word!r} appears more than once")
    return names

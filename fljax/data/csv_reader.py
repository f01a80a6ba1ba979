"""Parses CSV bytes strictly: a broken file is one clear line, never a guess."""

import codecs
import csv
import io
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fljax import memory, printable
from fljax.data import csv_format
from fljax.data.csv_format import CsvFormat
from fljax.data.table import DataError, get_column

_PLAIN = CsvFormat()
_PER_CELL, _PER_BYTE = 60, 2  # bytes of memory, about, of which texts take the latter


def read_csv(
    content: bytes,
    name: str,
    *,
    columns: Sequence[str] | None = None,
    dtype: Any = None,
    form: CsvFormat = _PLAIN,
) -> pd.DataFrame:
    """Rows of a CSV file whose first line names the columns.

    Args:
      content: the file.
      name: what errors call it.
      columns: read only those of these that the file has.
      dtype: as in `pandas.read_csv`.
      form: how the file is written.

    Raises:
      DataError: another encoding or separator, no header, repeated columns, ragged
        rows, or more of them than the memory holds.
    """
    csv_format.check_is_text(content, name)
    content = form.decoded(content, name)
    if columns is None:
        _check_room(content, name, form)
    try:
        header = _header(content, name, form)
        # With `usecols`, even of every column, pandas accepts rows of any length.
        kept = None if columns is None else [c for c in header if c in columns]
        with warnings.catch_warnings():
            # pandas only warns when the rows are longer than the header.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            told: dict[str, Any] = {
                "sep": form.mark,
                "na_values": form.codes(header),
                "keep_default_na": False,
                "names": header,
                "header": 0,
                "usecols": kept,
                "index_col": False,
                "skipinitialspace": True,
                "encoding": "utf-8-sig",
                "low_memory": False,
            }
            frame = pd.read_csv(
                io.BytesIO(content), dtype=dtype, decimal=form.decimal, **told
            )
            if form.group:
                texts = pd.read_csv(io.BytesIO(content), dtype=str, **told)
                frame = _grouped(frame, texts, form)
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error) as error:
        reason = " ".join(str(error).split())
        longer = isinstance(error, pd.errors.ParserWarning)
        if longer:  # in words of its arguments
            reason = "rows have more cells than the first line has names"
        hint = csv_format.other_separator(content, form)
        if longer and content.removeprefix(codecs.BOM_UTF8).startswith(b"#"):
            hint = ", leave out the comment that it begins with"
        raise DataError(f"{name}: malformed CSV ({reason}){hint}") from error
    except UnicodeDecodeError as error:
        raise csv_format.not_utf8(content, name) from error
    if not len(frame):
        raise DataError(f"{name}: no rows below the header")
    if b"\0" in content:
        line = content[: content.index(b"\0")].count(b"\n") + 1
        raise DataError(
            f"{name}: a NUL byte in line {line}, expected text; mend the file"
        )
    return _stripped(frame, name)


def _check_room(content: bytes, name: str, form: CsvFormat) -> None:
    """Refuses what would fill the memory before it is parsed: a small `.gz` may."""
    cells = content.count(form.mark.encode()) + content.count(b"\n")
    needed = float(_PER_CELL * cells + _PER_BYTE * len(content))
    free = memory.available()
    if needed > free:
        raise DataError(
            f"{name}: its {cells} cells need about {needed / 1e9:.1f} GB of memory, "
            f"{free / 1e9:.1f} GB are free; expected fewer rows or columns"
        )


def _stripped(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Without spaces behind a text, which would make two categories of one."""
    changed = {}
    for column in frame.columns:
        series = frame[column]
        texts = [each for each in series.unique() if isinstance(each, str)]
        bare = {each: each.strip() for each in texts if each != each.strip()}
        if bare:
            changed[column] = series.map(lambda cell, bare=bare: bare.get(cell, cell))
    if changed:
        warnings.warn(
            f"{name}: spaces at the ends of texts left out in {', '.join(changed)}",
            stacklevel=3,
        )
    return frame.assign(**changed)


def _grouped(frame: pd.DataFrame, texts: pd.DataFrame, form: CsvFormat) -> pd.DataFrame:
    """With numbers in place of columns that are such with a mark of thousands.

    pandas would take `1,2` for 12.
    """
    found = {}
    for column in frame.columns:
        cells = get_column(texts, column).dropna()
        if not cells.str.contains(form.group, regex=False).any():
            continue
        values = csv_format.numbers(cells, form)
        found[column] = texts[column]
        if not np.isnan(values).any():
            found[column] = pd.Series(values, cells.index).reindex(texts.index)
    return frame.assign(**found)


def _header(content: bytes, name: str, form: CsvFormat) -> list[str]:
    """Column names as written; pandas would rename repeated ones in silence."""
    first = content.split(b"\n", 1)[0].decode("utf-8-sig")
    try:
        cells = next(csv.reader([first], delimiter=form.mark), [])
    except csv.Error as error:
        if "\r" not in first.rstrip("\r"):
            raise
        raise DataError(
            f"{name}: its lines end with CR, expected LF or CR and LF"
        ) from error
    names = [word.strip() for word in cells]
    if not any(names):
        raise DataError(f"{name}: empty, or its first line names no columns")
    hint = csv_format.other_separator(content, form) if len(names) == 1 else ""
    if hint:
        raise DataError(
            f"{name}: its header {first.strip()[:60]!r} is one column{hint}"
        )
    for position, word in enumerate(names):
        if not printable.is_plain(word):
            raise DataError(
                f"{name}: column {position + 1} has control characters in its name, "
                f"{printable.escaped(word)[:60]!r}"
            )
        if word in names[:position]:
            raise DataError(f"{name}: column {word!r} appears more than once")
    return names

"""How a CSV file is written, and what a file that was read wrongly looks like."""

import csv
import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fljax.data.table import DataError

_SEPARATORS = (";", "\t", "|", ",")
_NAMES = {"tab": "\t", "\\t": "\t", "space": " "}
_START, _LINES = 1 << 17, 20  # bytes and lines in which a separator is looked for
_CELL = re.compile(r"[;,|\t\r\n\"]")  # what ends one
_COMMA = re.compile(r"[+-]?\d+,\d+")  # a number
_MARKS = (",", ".", "space", "'")  # of thousands
_GROUPS = {",", ".", " ", "'", "_", "\u2019", "\xa0", "\u202f"}  # all that may be
# Cells that never hold a value. `None`, which pandas takes for one of them, is a word.
MISSING = (
    "", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "<NA>", "#N/A",
    "#NA",
)  # fmt: skip
_FEW = 2  # different texts between numbers are codes of missing values
_CODE = r"(?=.*\d)(?=.*[A-Za-z])[\w./-]+"  # as diagnoses have


@dataclasses.dataclass(frozen=True, kw_only=True)
class CsvFormat:
    """How a CSV file is written.

    Attributes:
      separator: the character between cells; `tab` is understood.
      decimal: decimal mark of its numbers.
      thousands: mark between groups of three digits; `space` is understood, empty: none.
      encoding: of its text, by a name that Python knows.
      missing_codes: cells without a value, beside `MISSING`: `code` in every column,
        `column=code` in one.

    Raises:
      DataError: an option is not of that kind.
    """

    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"
    missing_codes: Sequence[str] = ()

    def __post_init__(self) -> None:
        one = len(self.mark) == 1 and self.mark.isascii()  # pandas takes no other
        if not one or self.mark in '"\n\r':
            raise DataError(
                f"separator={self.separator!r}: expected one character of ASCII, or tab"
            )
        if self.decimal not in (".", ","):
            raise DataError(f"decimal={self.decimal!r}: expected a point or a comma")
        if self.decimal == self.mark:
            raise DataError(
                f"separator={self.separator!r} is also the decimal mark, decimal="
            )

        if self.group and self.group not in _GROUPS - {self.decimal}:
            raise DataError(
                f"thousands={self.thousands!r}: expected space or one of . , ' _ that is "
                f"not the decimal mark {self.decimal!r}"
            )

    @property
    def group(self) -> str:
        """The mark of thousands itself."""
        return _NAMES.get(self.thousands, self.thousands)

    @property
    def mark(self) -> str:
        """The separator itself."""
        return _NAMES.get(self.separator, self.separator)

    def codes(self, columns: Sequence[str]) -> dict[str, list[str]]:
        """Cells that hold no value in each of these columns.

        Raises:
          DataError: one is for a column that is not there.
        """
        every, own = [], {column: [] for column in columns}
        for code in self.missing_codes:
            column, equals, rest = code.rpartition("=")
            if equals and column not in own:
                raise DataError(
                    f"missing_codes={code}: no column {column!r}, columns are "
                    f"{', '.join(columns)}"
                )
            (own[column] if equals else every).append(rest)
        return {column: [*MISSING, *every, *codes] for column, codes in own.items()}

    def decoded(self, content: bytes, name: str) -> bytes:
        """The file in UTF-8; one that should be already is not looked through.

        Raises:
          DataError: it is not in this encoding.
        """
        if self._is_utf8:
            return content
        try:
            return content.decode(self.encoding).lstrip("\ufeff").encode()
        except LookupError as error:
            raise DataError(
                f"encoding={self.encoding!r}: expected an encoding that Python knows, "
                "such as utf-8, latin-1 or cp1252"
            ) from error
        except UnicodeError as error:
            raise DataError(f"{name}: not {self.encoding} text ({error})") from error

    @property
    def _is_utf8(self) -> bool:
        return self.encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")


def check_is_text(content: bytes, name: str) -> None:
    """Refuses what a spreadsheet program saves unless told otherwise.

    Raises:
      DataError: it begins as a zip archive, which a workbook is, or an old workbook.
    """
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise DataError(f"{name}: an Excel workbook or zip archive, save it as CSV")


def not_utf8(content: bytes, name: str) -> DataError:
    """What is wrong with a file that is not UTF-8, and which encoding it may have."""
    try:
        content.decode()
        at = 0
    except UnicodeDecodeError as error:
        at = error.start
    return DataError(f"{name}: not UTF-8 text (byte {at}){_encoding(content, at)}")


def other_separator(content: bytes, form: CsvFormat) -> str:
    """`, try separator=...` if another one makes a table of the first lines, or nothing.

    Args:
      content: the file in UTF-8.
      form: as which it was read.
    """
    start = content[:_START].decode("utf-8-sig", "replace")
    lines = start.splitlines()[:_LINES]
    for mark in _SEPARATORS:
        if mark == form.mark:
            continue
        try:
            cells = [*csv.reader(lines, delimiter=mark)]
        except csv.Error:
            continue
        if len({*map(len, cells)}) == 1 and len(cells[0]) > 1:
            shown = "tab" if mark == "\t" else repr(mark)
            return f", try separator={shown}{_and_decimal(cells[1:], form)}"
    return ""


def _and_decimal(rows: Sequence[Sequence[str]], form: CsvFormat) -> str:
    """` and decimal=','` if some column of the first lines is written with it."""
    columns = (list(filter(None, map(str.strip, column))) for column in zip(*rows))
    comma = any(column and all(map(_COMMA.fullmatch, column)) for column in columns)
    return " and decimal=','" if comma and form.decimal == "." else ""


def numbers(texts: pd.Series, form: CsvFormat) -> np.ndarray:
    """Cells so written as float64, NaN where they are no numbers."""
    texts = texts.astype(str)
    if form.group:
        decimal, group = re.escape(form.decimal), re.escape(form.group)
        grouped = texts.str.fullmatch(
            rf"[+-]?\d{{1,3}}({group}\d{{3}})+({decimal}\d*)?"
        )
        texts = texts.where(~grouped, texts.str.replace(form.group, "", regex=False))
    if form.decimal == ",":
        texts = texts.str.translate({ord("."): ",", ord(","): "."})
    read: Any = pd.to_numeric(texts, errors="coerce")
    return np.asarray(read, np.float64)


def unlike_numbers(series: pd.Series, form: CsvFormat) -> str:
    """What makes numbers of a text column: options, or nothing.

    Args:
      series: cells, some of which are no numbers.
      form: as which they were read.
    """
    broken = np.isnan(numbers(series, form))
    texts = pd.Series(series.loc[broken].unique(), dtype=str)
    if not len(texts):
        return ""
    neither, options = _better(texts, form)
    parts = [options] if options else []
    if len(neither):
        cells = series.astype(str).isin(neither).mean()
        if len(neither) > _FEW or cells > 0.5:
            return ""
        if neither.str.fullmatch(_CODE).any():  # no word for nothing
            return f"categorical={series.name}"
        parts.append(f"missing_codes={','.join(neither)}")
    return " and ".join(parts)


def _better(texts: pd.Series, form: CsvFormat) -> tuple[pd.Series, str]:
    """What no other way of writing numbers reads, and which way reads the most.

    Where `1,234` may be two numbers both are named.
    """
    other = "," if form.decimal == "." else "."
    ways = [
        {"decimal": other},
        *({"thousands": mark} for mark in _MARKS if mark != form.decimal),
        *({"decimal": other, "thousands": mark} for mark in _MARKS if mark != other),
    ]
    left, options = texts, []
    for way in ways:
        cells: dict[str, Any] = {"separator": "tab", "thousands": ""}
        chosen = dataclasses.replace(form, **cells | way)
        rest = texts.loc[np.isnan(numbers(texts, chosen))]
        said = " and ".join(f"{name}={value!r}" for name, value in way.items())
        if len(rest) < len(left):
            left, options = rest, [said]
        elif options and len(rest) == len(left) and len(way) == 1:
            options.append(said)
    return left, " or ".join(options)


def _encoding(content: bytes, at: int) -> str:
    """`, try encoding=...`, and what it makes of the cell around byte `at`."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ", try encoding=utf-16"
    for encoding in ("cp1252", "latin-1"):
        if encoding == "cp1252" and not re.search(rb"[\x80-\x9f]", content):
            continue  # the two are the same then, and latin-1 is better known
        try:
            content.decode(encoding)
        except UnicodeDecodeError:
            continue
        before = _CELL.split(content[max(at - 15, 0) : at].decode(encoding))[-1]
        after = _CELL.split(content[at : at + 15].decode(encoding))[0]
        return f", try encoding={encoding}, which reads {before + after!r} there"
    return ""

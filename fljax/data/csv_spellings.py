"""Cells of a CSV file that are taken as written although they hardly mean that: told."""

import dataclasses
import re
import warnings
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd

from fljax.data.csv_format import CsvFormat
from fljax.data.csv_reader import read_csv
from fljax.data.table import get_column

_LEADING_ZERO = re.compile(rb"(?<![^\s\"';,|])0\d")
_NO_VALUE = re.compile(r"[?.\-–—*_]+")
_WITH_UNIT = re.compile(
    r"(?P<before>[$€£¥]?)\s*[+-]?\d[\d.,' ]*?\s*(?P<behind>[^\d\s][^\d]*)?"
)


def warn_of_categories(frame: pd.DataFrame, columns: Sequence[str], name: str) -> None:
    """Warns of categories that differ in case alone, and of marks such as `?`.

    Args:
      frame: the rows.
      columns: those of them that are categories.
      name: what warnings call the file.
    """
    for column in columns:
        texts = [t for t in get_column(frame, column).unique() if isinstance(t, str)]
        alike = defaultdict(list)
        for text in texts:
            alike[text.casefold()].append(text)
        for spelled in alike.values():
            if len(spelled) > 1:
                warnings.warn(
                    f"{name}: {_quoted(spelled)} of {column!r} are categories of their "
                    "own, though they differ in case alone",
                    stacklevel=3,
                )
        marks = [text for text in texts if _NO_VALUE.fullmatch(text)]
        if marks:
            warnings.warn(
                f"{name}: {_quoted(marks)} of {column!r} is taken for a category; "
                f"missing_codes={','.join(marks)} takes it for a missing value",
                stacklevel=3,
            )


def warn_of_leading_zeros(
    content: bytes, columns: Sequence[str], name: str, form: CsvFormat
) -> None:
    """Warns of numbers such as `01234`, which are mostly codes, and lose their zeros.

    Args:
      content: the file.
      columns: those of it that are taken for numbers without having been called so.
      name: what warnings call the file.
      form: how it is written.
    """
    if not columns or not _LEADING_ZERO.search(form.decoded(content, name)):
        return
    plain = dataclasses.replace(form, thousands="")  # so that all cells stay texts
    with warnings.catch_warnings(action="ignore"):  # they were said of the numbers
        texts = read_csv(content, name, columns=columns, dtype=str, form=plain)
    for column in texts.columns:
        cells = get_column(texts, column).dropna().unique()
        zeros = [cell.strip() for cell in cells if re.fullmatch(r"\s*0\d+\s*", cell)]
        if zeros and len(cells) > 2:  # two are one input, whatever they are called
            warnings.warn(
                f"{name}: column {column!r} is taken for numbers, of which {zeros[0]!r} "
                f"has a leading zero: list codes in categorical={column}",
                stacklevel=3,
            )


def warn_of_thousands(
    content: bytes,
    frame: pd.DataFrame,
    columns: Sequence[str],
    name: str,
    form: CsvFormat,
) -> None:
    """Warns of columns such as `645` and `5.246`, whose decimals may be groups of digits.

    Args:
      content: the file.
      frame: as it was read.
      columns: those of it that are taken for numbers.
      name: what warnings call the file.
      form: how it is written.
    """
    may_be = [c for c in columns if _may_be_grouped(get_column(frame, c))]
    if form.thousands or not may_be:
        return
    with warnings.catch_warnings(action="ignore"):  # they were said of the numbers
        texts = read_csv(content, name, columns=may_be, dtype=str, form=form)
    mark = re.escape(form.decimal)
    for column in texts.columns:
        cells = get_column(texts, column).dropna().str.strip()
        whole = cells.str.fullmatch(r"[+-]?\d{1,3}")
        grouped = cells.str.fullmatch(rf"[+-]?[1-9]\d{{0,2}}{mark}\d{{3}}")
        if whole.any() and (whole | grouped).all():
            other = "," if form.decimal == "." else "."
            warnings.warn(
                f"{name}: decimals of {column!r} have three digits, as "
                f"{cells[grouped].iloc[0]!r}, and whole numbers at most three: if the mark "
                f"groups thousands, thousands={form.decimal} with decimal={other} reads them",
                stacklevel=3,
            )


def _may_be_grouped(series: pd.Series) -> bool:
    """Whether it has whole numbers and decimals of 1 or more, to three digits."""
    found = np.abs(np.asarray(pd.to_numeric(series, errors="coerce"), np.float64))
    found = found[np.isfinite(found)]
    whole = found % 1 == 0
    if whole.all() or not whole.any() or found.max() >= 1000:
        return False
    thousandths = 1000 * found
    digits = np.abs(thousandths - np.rint(thousandths)).max() < 1e-6
    return bool(digits and found[~whole].min() >= 1)


def unit_of_numbers(series: pd.Series) -> str:
    """What all cells of a text column have around a number, such as `%`, or nothing."""
    found = [_WITH_UNIT.fullmatch(str(text)) for text in series.unique()]
    units = {match and "".join(filter(None, match.groups())).strip() for match in found}
    return units.pop() or "" if len(units) == 1 else ""


def _quoted(texts: Sequence[str]) -> str:
    return " and ".join(map(repr, texts))

"""What the columns of a CSV file are taken for; dates and ids are refused.

Text, bool and two-valued columns are categories, other numbers are numbers. A model
learns nothing of other rows from an id, and from a date as a category hardly more,
while attacks gain inputs that tell rows apart: both are inputs only if asked for.
"""

import csv
import io
import re
import shlex
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from fljax.data.csv_format import CsvFormat, numbers, unlike_numbers
from fljax.data.csv_spellings import unit_of_numbers
from fljax.data.table import MOST, DataError, Kind, get_column

FEW = 10  # so many categories are never taken for ids, however short the file
_REPEATS = 4  # rows that a category has at least, on average; else it tells rows apart
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_TIME = r"([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*([ap]m|Z|[+-]\d{2}:?\d{2})?)?"
_DATE = re.compile(
    rf"\s*(\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.](\d{{4}}|\d{{2}})"
    rf"|\d{{1,2}}[- .]+{_MONTH}[- ,]+\d{{2,4}}|{_MONTH}[- ]+\d{{1,2}}[, -]+\d{{4}})"
    rf"{_TIME}\s*",
    re.IGNORECASE,
)
_EXACT = 2.0**53  # whole numbers below are exact in float64
_ANOTHER = "choose another column"
_ID_NAME = re.compile(
    r"(?i:(.*[^a-z])?(id|key|mrn|uuid|nr)(_.*)?|.*nummer|(.*[^a-z])?(no|num|number))"
    r"|.*[a-z](I[Dd]|N[ro])"
)


def kinds(
    frame: pd.DataFrame,
    features: Sequence[str],
    *,
    sensitive: str | None,
    numeric: Sequence[str],
    categorical: Sequence[str],
    form: CsvFormat,
) -> tuple[dict[str, Kind], list[str]]:
    """Kind of each feature column, and what is wrong with columns that have none.

    Args:
      frame: rows, at their numbers in the file; missing values are passed over.
      features: columns.
      sensitive: that of them which attacks infer.
      numeric: those that are numbers.
      categorical: those that are categories.
      form: how the file was read.

    Returns:
      The kinds, and a text for each column that is text only because of some cells and
      one for all that are dates or ids.
    """
    found: dict[str, Kind] = {}
    wrong, doubts = [], {}
    for column in features:
        series = get_column(frame, column).dropna()
        remedy = f"list it in categorical={column}"
        if column in numeric:
            broken = _broken(series, f"leave it out of numeric={column}", form)
            wrong += [broken] if broken else []
            found[column] = "numeric"
        elif series.nunique() <= 2:
            found[column] = "binary"
        elif column in categorical:
            found[column] = "categorical"
        elif doubt := _doubt(series):
            doubts[column] = doubt
        elif broken := _broken(series, remedy, form):
            wrong.append(broken)
        elif doubt := _doubt_of_texts(series):
            doubts[column] = doubt
        else:
            number = pd.api.types.is_numeric_dtype(series)
            found[column] = "numeric" if number else "categorical"
    if sensitive in doubts:
        wrong.append(f"sensitive {sensitive!r} {doubts.pop(sensitive)}; {_ANOTHER}")
    if doubts:
        wrong.append(
            f"{'; '.join(f'{c!r} {doubt}' for c, doubt in doubts.items())}; "
            f"leave out with drop={_listed(doubts)}, or take as inputs with "
            "categorical= or, of numbers, numeric="
        )
    return found, wrong


def _listed(columns: Iterable[str]) -> str:
    """Names as a flag takes them from a shell: quoted where one is empty or has a comma."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(columns)
    return shlex.quote(line.getvalue())


def is_ordinal(series: pd.Series) -> bool:
    """Whether a column of numbers has so few values that they may be categories."""
    distinct = series.nunique()
    return 2 < distinct <= min(FEW, len(series) / _REPEATS)


def check_target(name: str, series: pd.Series, form: CsvFormat) -> None:
    """A target is no date, no id and no column of numbers with broken cells.

    Numbers are an id only if they are called so: a target may rise from row to row.

    Raises:
      DataError: it is one, saying what may help.
    """
    text = not pd.api.types.is_numeric_dtype(series)
    named = _ID_NAME.fullmatch(str(series.name))
    if (text or named) and (doubt := _doubt(series)):
        raise DataError(f"{name}: target {series.name!r} {doubt}; {_ANOTHER}")
    if broken := _broken(series, "predict another column", form):
        raise DataError(f"{name}: {broken}")


def _broken(series: pd.Series, remedy: str, form: CsvFormat) -> str:
    """Text that is mostly numbers is a number column with broken cells: the first."""
    if pd.api.types.is_numeric_dtype(series):
        return ""
    values = numbers(series, form)
    broken = np.isnan(values)
    if not broken.any():
        return _broken_elsewhere(series, values, remedy)
    option = unlike_numbers(series, form)
    if broken.mean() >= 0.5 and not option:
        return ""
    row = int(broken.argmax())
    way_out = f"try {option}" if option else f"mend it or {remedy}"
    return (
        f"column {series.name!r} is not numeric, row {series.index[row] + 1} below the "
        f"header holds {series.iloc[row]!r}; {way_out}"
    )


def _broken_elsewhere(series: pd.Series, values: np.ndarray, remedy: str) -> str:
    """Text that is all numbers: one is too large, or a row that is left out has none."""
    row = int(np.abs(values).argmax())
    if abs(values[row]) < 2.0**63:
        return (
            f"column {series.name!r} is not numeric in a row that is left out; mend it "
            f"or {remedy}"
        )
    return (
        f"column {series.name!r} holds {series.iloc[row]} in row "
        f"{series.index[row] + 1} below the header, expected whole numbers below 2^63; "
        f"mend it or {remedy}"
    )


def too_large(series: pd.Series) -> str:
    """The first number whose square float32 cannot hold, or nothing."""
    if not pd.api.types.is_numeric_dtype(series):
        return ""
    values = series.dropna()
    large = values[~(values.astype(float).abs() < MOST)]
    if not len(large):
        return ""
    return (
        f"column {series.name!r} holds {large.iloc[0]:g} in row {large.index[0] + 1} below "
        f"the header, expected numbers below {MOST:g} in size"
    )


def _doubt(series: pd.Series) -> str:
    """Why a column is a date or numbers its rows, or nothing."""
    distinct = series.nunique()
    if pd.api.types.is_numeric_dtype(series):
        return _doubt_of_numbers(series, distinct)
    # Ahead of numbers, whose decimal mark may stand in a date.
    texts = pd.Series(series.unique()).astype(str)
    if texts.str.fullmatch(_DATE).all():
        return f"holds dates such as {texts.iloc[0]!r}, {distinct} different ones"
    return ""


def _doubt_of_texts(series: pd.Series) -> str:
    distinct, rows = series.nunique(), len(series)
    if pd.api.types.is_numeric_dtype(series) or distinct <= max(FEW, rows / _REPEATS):
        return ""
    if unit := unit_of_numbers(series):
        return f"holds numbers with {unit!r}, such as {series.iloc[0]!r}: write them without"
    return f"has {distinct} different texts in {rows} rows, as an id has"


def _doubt_of_numbers(series: pd.Series, distinct: int) -> str:
    if pd.api.types.is_float_dtype(series):
        # A missing cell makes decimals of whole numbers.
        if not (series % 1 == 0).all() or (series.abs() >= _EXACT).any():
            return ""
        series = series.astype(np.int64)
    if not pd.api.types.is_integer_dtype(series) or distinct <= FEW:
        return ""
    low, high = series.min(), series.max()
    if low >= 1900_01_01 and high <= 2100_12_31:
        dates = pd.to_datetime(series.astype(str), format="%Y%m%d", errors="coerce")
        if dates.notna().all():
            return f"holds dates such as {series.iloc[0]}, {distinct} different ones"
    if distinct < len(series):
        return ""
    if _numbers_rows(series) or _ID_NAME.fullmatch(str(series.name)):
        return f"has {distinct} different numbers in as many rows, as an id has"
    return ""


def _numbers_rows(series: pd.Series) -> bool:
    """Whether it rises or falls by one from each row of the file to the next."""
    row = series.index.to_numpy()
    return bool(np.ptp(series - row) == 0 or np.ptp(series + row) == 0)

"""What to do about empty cells: refuse, leave out rows, or fill features."""

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

from fljax.data.table import DataError, get_column

RULES = ("error", "drop", "impute")


def kept_rows(
    frame: pd.DataFrame, rule: str, never_imputed: Sequence[str]
) -> np.ndarray:
    """Numbers of the rows `[n]` that a rule keeps.

    Args:
      frame: raw rows, of the columns that are used.
      rule: `drop` leaves out rows without some value, `impute` those without one of
        `never_imputed`, `error` none.
      never_imputed: columns whose values may not be made up.
    """
    columns = {"drop": list(frame.columns), "impute": list(never_imputed)}
    whole = frame[columns.get(rule, [])].notna().all(axis=1)
    return np.flatnonzero(np.asarray(whole))


def handle_missing(
    frame: pd.DataFrame,
    name: str,
    rule: str,
    *,
    never_imputed: Sequence[str],
    categorical: Sequence[str] = (),
) -> pd.DataFrame:
    """Rows without missing values; a warning says what was left out and filled in.

    Args:
      frame: raw rows, of the columns that are used.
      name: what errors call the file.
      rule: `error`, `drop` or `impute`, which fills in other columns.
      never_imputed: columns whose values may not be made up.
      categorical: columns of numbers that are filled as texts are.

    Returns:
      The rows `kept_rows`, numbered anew.

    Raises:
      DataError: values are missing and the rule is `error`, or no row is left.
    """
    if rule not in RULES:
        raise DataError(f"{name}: missing={rule!r} is not one of {', '.join(RULES)}")
    counts = {c: int(get_column(frame, c).isna().sum()) for c in frame.columns}
    counts = {column: count for column, count in counts.items() if count}
    if not counts:
        return frame
    for column, count in counts.items():
        if count == len(frame):
            if not column:  # what a separator at the end of every line makes
                raise DataError(
                    f"{name}: the column without a name is empty; leave out its separator"
                )
            raise DataError(f"{name}: column {column!r} is empty, list it in drop=")
    if rule == "error":
        raise DataError(
            f"{name}: missing values in {_listed(counts)}; missing=drop leaves out "
            "their rows, missing=impute fills in all but the target and the sensitive "
            "column, without which it leaves rows out"
        )
    kept = frame.iloc[kept_rows(frame, rule, never_imputed)].reset_index(drop=True)
    if kept.empty:
        raise DataError(
            f"{name}: every row has a missing value, {_listed(counts)}; list columns "
            "in drop="
        )
    without = [c for c in counts if rule == "drop" or c in never_imputed]
    filled = {
        column: int(kept[column].isna().sum())
        for column in counts
        if kept[column].isna().any()
    }
    for column, count in filled.items():
        if count == len(kept):
            raise DataError(
                f"{name}: column {column!r} is empty in the {count} rows that are left, "
                "list it in drop="
            )
    _tell(name, len(frame) - len(kept), without, filled)
    return kept.assign(
        **{c: _filled(get_column(kept, c), c in categorical) for c in filled}
    )


def _tell(
    name: str, num_rows: int, columns: Sequence[str], filled: dict[str, int]
) -> None:
    said = []
    if num_rows:
        said.append(f"{num_rows} rows without {' or '.join(columns)} are left out")
    if filled:
        said.append(f"filled in: {_listed(filled)}")
    warnings.warn(f"{name}: {'; '.join(said)}", stacklevel=4)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{column or repr('')} ({count})" for column, count in counts.items()
    )


def _filled(series: pd.Series, categorical: bool) -> pd.Series:
    """Median of a number, else the most frequent value."""
    numeric = pd.api.types.is_numeric_dtype(series) and series.nunique() > 2
    if numeric and not categorical:
        return series.fillna(series.median())
    return series.fillna(series.mode().iloc[0])

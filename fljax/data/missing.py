"""What to do about empty cells: refuse, leave out rows, or fill features."""

import pandas as pd

from fljax.data.table import DataError, get_column


def handle_missing(
    frame: pd.DataFrame, name: str, rule: str, *, never_imputed: tuple[str, ...]
) -> pd.DataFrame:
    """Rows without missing values.

    Args:
      frame: raw rows.
      name: what errors call the file.
      rule: `error`, `drop` or `impute`.
      never_imputed: columns whose values may not be made up.

    Raises:
      DataError: values are missing that the rule does not deal with, or dropping
        leaves no row.
    """
    if rule not in ("error", "drop", "impute"):
        raise DataError(f"{name}: missing={rule!r} is not one of error, drop, impute")
    counts = {c: int(get_column(frame, c).isna().sum()) for c in frame.columns}
    counts = {column: count for column, count in counts.items() if count}
    if not counts:
        return frame
    if rule == "drop":
        kept = frame.dropna().reset_index(drop=True)
        if kept.empty:
            raise DataError(f"{name}: every row has a missing value")
        return kept
    if rule == "error":
        where = ", ".join(f"{column} ({count})" for column, count in counts.items())
        raise DataError(
            f"{name}: missing values in {where}; use missing=drop or missing=impute"
        )
    for column in counts:
        if column in never_imputed:
            raise DataError(
                f"{name}: column {column!r} has {counts[column]} missing values and "
                "may not be imputed; use missing=drop"
            )
    return frame.assign(**{c: _filled(name, frame, c) for c in counts})


def _filled(name: str, frame: pd.DataFrame, column: str) -> pd.Series:
    series = get_column(frame, column)
    if series.isna().all():
        raise DataError(f"{name}: column {column!r} is empty, list it in drop=")
    if pd.api.types.is_numeric_dtype(series):
        return series.fillna(series.median())
    return series.fillna(series.mode().iloc[0])

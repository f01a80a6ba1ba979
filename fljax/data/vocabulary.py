"""Categories of a column: their order, their labels and their positions."""

import numpy as np
import pandas as pd

from fljax import printable
from fljax.data.table import DataError


def vocabulary(series: pd.Series) -> pd.Index:
    """Different values of a column in the order in which they are numbered.

    An ordered `pandas.Categorical` keeps its own order; otherwise the values are
    sorted, so that the first one is the category that `drop_first` leaves out.
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        return pd.Index(series.cat.remove_unused_categories().cat.categories)
    values = list(pd.unique(series))
    try:
        return pd.Index(sorted(values))
    except TypeError:  # numbers and text in one column
        return pd.Index(sorted(values, key=str), dtype=object)


def label(value: object) -> str:
    """`1.0` reads "1": whole numbers stored as floats keep their code's spelling."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return printable.escaped(str(value))


def positions(series: pd.Series, values: pd.Index) -> np.ndarray:
    """Number of each row's category, `[N]` int64.

    Args:
      series: `[N]` raw values.
      values: the vocabulary.

    Raises:
      DataError: a row holds a category that the vocabulary lacks.
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    found = values.get_indexer(pd.Index(series))
    if (found < 0).any():
        unknown = series.iloc[int((found < 0).argmax())]
        known = ", ".join(label(value) for value in values[:20])
        more = ", ..." if len(values) > 20 else ""
        raise DataError(
            f"column {series.name!r} holds the unknown category {label(unknown)!r}, "
            f"known are {known}{more}"
        )
    return found

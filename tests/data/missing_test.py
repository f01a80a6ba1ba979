"""Empty cells: what is refused and what is filled in."""

import numpy as np
import pandas as pd
import pytest

from fljax.data.missing import handle_missing
from fljax.data.table import DataError


@pytest.mark.parametrize("cell", [7.0, "word"])
def test_a_column_of_which_no_row_that_is_left_has_a_value_is_named(cell):
    frame = pd.DataFrame({"old": [None, None, cell], "pay": [1.0, 2.0, np.nan]})
    with pytest.raises(
        DataError, match="own: column 'old' is empty in the 2 rows that"
    ):
        handle_missing(frame, "own", "impute", never_imputed=["pay"])


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("town", "own: column 'town' is empty, list it in drop=$"),
        ("", "own: the column without a name is empty; leave out its separator$"),
    ],
)
@pytest.mark.parametrize("rule", ["error", "drop", "impute"])
def test_a_column_without_any_value_is_to_be_left_out(rule, column, said):
    frame = pd.DataFrame({column: [None, None], "pay": [1.0, 2.0]})
    with pytest.raises(DataError, match=said):
        handle_missing(frame, "own", rule, never_imputed=["pay"])

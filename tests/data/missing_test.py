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

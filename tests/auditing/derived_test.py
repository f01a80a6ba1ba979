"""Public columns that tell the sensitive one."""

import numpy as np
import pandas as pd
import pytest

from fljax.auditing import derived
from fljax.data.table import Table

_SMOKER = np.arange(40) % 3 == 0


def _table(**others) -> Table:
    frame = pd.DataFrame({"smoker": _SMOKER * 1, "y": np.linspace(0, 1, 40), **others})
    kinds = {name: "categorical" for name in others} | {"smoker": "binary"}
    return Table(
        name="csv",
        frame=frame,
        target="y",
        kinds=kinds,
        sensitive="smoker",
        task="regression",
    )


def test_the_other_dummy_of_the_sensitive_column_is_named():
    (note,) = derived.notes(_table(smoker_no=1 - _SMOKER, sex=np.arange(40) % 2))
    assert note.startswith("smoker_no: tells smoker by itself")


@pytest.mark.parametrize(
    "column",
    [
        np.where(np.arange(40) == 3, 0, _SMOKER),  # wrong in one row
        np.array([f"person {each}" for each in range(40)]),
    ],
)
def test_columns_that_tell_some_rows_or_name_people_are_not(column):
    assert derived.notes(_table(other=column)) == []

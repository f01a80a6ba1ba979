"""What every column becomes, in words."""

import numpy as np
import pandas as pd

from fljax import data


def _frame():
    at = np.arange(20)
    return pd.DataFrame(
        {
            "age": at % 7,
            "sex": np.where(at % 3 == 0, "f", "m"),
            "town": np.array(["a", "b", "c"])[at % 3],
            "pay": np.linspace(1.0, 9.0, 20),
        }
    )


def test_what_columns_become_is_listed_as_it_can_be_read(load):
    table = load(
        _frame().assign(ill=np.where(np.arange(20) % 2, "yes, much", "no")),
        target="ill", sensitive="sex", task="binary", categorical=["town"],
    )  # fmt: skip
    dataset = data.prepare(table, data.preset("csv", "neural"), seed=0)
    listed = {each.name: each.values for each in data.columns(dataset)}
    assert listed["ill"] == 'binary, 2 values: no (0), "yes, much" (1)'
    assert listed["pay"] == "number from 1 to 9"
    table = load(_frame(), sensitive="sex")
    dataset = data.prepare(table, data.preset("csv", "neural"), seed=0)
    listed = {each.name: each.values for each in data.columns(dataset)}
    assert listed["pay"] == "regression, number from 1 to 9"

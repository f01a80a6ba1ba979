"""Numbers that float32 cannot tell apart are refused with what helps."""

import numpy as np
import pandas as pd
import pytest

from fljax.data.encoder import Column, fit_encoder
from fljax.data.options import Preprocessing
from fljax.data.preprocess import prepare
from fljax.data.table import DataError, Table

FEW = np.arange(40.0) % 11  # 0 to 10


def encoded(values, scaled=True):
    frame = pd.DataFrame({"dose": values})
    encoder = fit_encoder((Column("dose", "number", scaled),), (), frame)
    return encoder.encode(frame).numeric[:, 0]


@pytest.mark.parametrize("scaled", [True, False])
def test_tiny_numbers_are_to_be_multiplied(scaled):
    line = "'dose': all numbers are within 1e-300 of each other, .*; multiply them by"
    with pytest.raises(DataError, match=line):
        encoded(FEW * 1e-301, scaled)


def test_from_large_numbers_a_constant_is_to_be_subtracted():
    line = "'dose': all numbers are within 1e-05 of each other, .*; subtract a constant"
    with pytest.raises(DataError, match=line):
        encoded(FEW * 1e-6 + 1e6, scaled=False)


@pytest.mark.parametrize("far", [1e18, -1e12])
def test_a_number_far_from_all_others_is_named(far):
    line = f"column 'dose' holds {far:g}, beside which float32 cannot tell the others"
    values = np.append(FEW, far)
    with pytest.raises(DataError, match=line.replace("+", ".")):
        encoded(values)
    assert len(np.unique(encoded(values, scaled=False))) == 12
    assert len(np.unique(encoded(np.append(FEW, 1e6)))) == 12


def test_numbers_that_differ_by_rounding_alone_are_no_reason():
    values = np.array([0.3, 0.1 + 0.2, 0.9] * 9)
    assert len(np.unique(encoded(values))) == 2


def test_a_target_far_from_all_others_is_named():
    frame = pd.DataFrame({"age": FEW, "pay": [*FEW[1:], 1e18]})
    table = Table(
        name="own", frame=frame, target="pay", kinds={"age": "numeric"},
        sensitive=None, task="regression",
    )  # fmt: skip
    options = Preprocessing(target="standardise", split="none")
    with pytest.raises(DataError, match="column 'pay' holds 1e.18, beside which"):
        prepare(table, options, seed=0)

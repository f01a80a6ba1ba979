import dataclasses

import pytest

from fljax.data.options import Preprocessing
from fljax.data.table import DataError


def test_every_field_explains_itself():
    for field in dataclasses.fields(Preprocessing):
        assert field.metadata["help"]
        assert field.default is not dataclasses.MISSING


def test_a_wrong_choice_lists_the_choices():
    with pytest.raises(
        DataError, match="numeric='log' is not one of standardise, log_"
    ):
        Preprocessing(numeric="log")


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan")])
def test_a_test_fraction_out_of_range_is_refused(fraction):
    with pytest.raises(DataError, match="between 0 and 1"):
        Preprocessing(test_fraction=fraction)

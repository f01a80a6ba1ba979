"""What a data set calls an option, said as the flag that the user has."""

import warnings

import pytest

from fljax.data import DataError
from fljax.driver.naming import named_as_flags


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        ("", "use --missing=drop or other=2; list a in --drop="),
        ("data", "use --data_missing=drop or other=2; list a in --data_drop="),
    ],
)
def test_options_in_an_error_are_flags(prefix, said):
    with pytest.raises(DataError) as error, named_as_flags("csv", prefix):
        raise DataError("use missing=drop or other=2; list a in drop=")
    assert str(error.value) == said


def test_warnings_name_flags_too():
    said = pytest.warns(UserWarning, match="^a --data_drop=b$")
    with said, named_as_flags("csv", "data"):
        warnings.warn("a drop=b", stacklevel=1)

"""Errors of the library in the words of the command line."""

import contextlib
import re
import warnings
from collections.abc import Iterator

from fljax import data


@contextlib.contextmanager
def named_as_flags(data_set: str, prefix: str = "") -> Iterator[None]:
    """A block whose errors and warnings call the options of a data set by their flags.

    Args:
      data_set: name of it.
      prefix: of its flags.

    Raises:
      DataError: those that the block raises, with `--prefix_x=` for `x=`.
    """
    names = "|".join(data.options(data_set))
    flag = rf"--{prefix}_\1=" if prefix else r"--\1="

    def renamed(message: object) -> str:
        return re.sub(rf"\b({names})=", flag, str(message))

    said: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as said:
            yield
    except data.DataError as error:
        raise data.DataError(renamed(error)) from error
    finally:
        for each in said:
            warnings.warn(renamed(each.message), each.category, stacklevel=3)

"""Errors of the library in the words of the command line."""

import contextlib
import re
from collections.abc import Iterator

from fljax import data


@contextlib.contextmanager
def named_as_flags(data_set: str, prefix: str = "") -> Iterator[None]:
    """A block whose errors call the options of a data set, `x=`, by their flags.

    Args:
      data_set: name of it.
      prefix: of its flags.

    Raises:
      DataError: those that the block raises, with `--prefix_x=` for `x=`.
    """
    try:
        yield
    except data.DataError as error:
        names = "|".join(data.options(data_set))
        flag = rf"--{prefix}_\1=" if prefix else r"--\1="
        message = re.sub(rf"\b({names})=", flag, str(error))
        raise data.DataError(message) from error

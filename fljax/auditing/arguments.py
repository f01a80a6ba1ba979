"""What is said of flags, in words of whoever calls a function."""

import contextlib
import re
import warnings
from collections.abc import Iterator

from fljax.data import DataError
from fljax.driver.config import ConfigError
from fljax.transcript import TranscriptError


@contextlib.contextmanager
def named(**other: str) -> Iterator[None]:
    """A block whose errors and warnings about a flag are about the argument of that name.

    Args:
      other: flag -> the argument, where names differ.

    Raises:
      TranscriptError: as it was.
      ValueError: in place of the errors of flags and data.
    """
    said: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as said:
            yield
    except (ConfigError, DataError, TranscriptError) as error:
        text = renamed(str(error))
        for flag, argument in other.items():
            text = re.sub(rf"^{flag}:", f"{argument}:", text)
        # A frame is named as its argument.
        text = re.sub(r"^(\w+): \1: ", r"\1: ", text)
        kind = TranscriptError if isinstance(error, TranscriptError) else ValueError
        raise kind(text) from error
    finally:
        for each in said:
            warnings.warn(renamed(str(each.message)), each.category, stacklevel=4)


def renamed(text: str) -> str:
    """A text with arguments for its flags, and lists for what a flag has commas for."""
    text = re.sub(r"--(\w+)", r"\1", text)
    return re.sub(
        r"expected ([^,:]+) separated by commas", r"expected a list of \1", text
    )

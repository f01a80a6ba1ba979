"""Errors that name a flag, in words of whoever calls a function."""

import contextlib
import re
from collections.abc import Iterator

from fljax.data import DataError
from fljax.driver.config import ConfigError
from fljax.transcript import TranscriptError


@contextlib.contextmanager
def named(**other: str) -> Iterator[None]:
    """A block whose errors about a flag are about the argument of that name.

    Args:
      other: flag -> the argument, where names differ.

    Raises:
      TranscriptError: as it was.
      ValueError: in place of the errors of flags and data.
    """
    try:
        yield
    except (ConfigError, DataError, TranscriptError) as error:
        text = re.sub(r"--(\w+)", r"\1", str(error))
        for flag, argument in other.items():
            text = re.sub(rf"^{flag}:", f"{argument}:", text)
        kind = TranscriptError if isinstance(error, TranscriptError) else ValueError
        raise kind(text) from error

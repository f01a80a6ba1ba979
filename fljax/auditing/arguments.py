"""Flags as the arguments of a function: their settings, and what is said of them."""

import contextlib
import dataclasses
import difflib
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from absl import flags

from fljax.auditing import settings as settings_lib
from fljax.auditing.settings import Config
from fljax.data import DataError
from fljax.driver import config as config_lib
from fljax.driver.config import ConfigError
from fljax.driver.option import RunFlags
from fljax.transcript import TranscriptError

_OF_THE_PROGRAM = {"known", "fail_on", *(f.name for f in dataclasses.fields(RunFlags))}


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


def config(given: Mapping[str, Any], options: Mapping[str, Any]) -> Config:
    """Checked as flags are; options are those that have no argument of their own."""
    registry = flags.FlagValues()
    for group in settings_lib.GROUPS:
        config_lib.define(group, flag_values=registry)
    registry.mark_as_parsed()
    known = [name for name in registry if name not in _OF_THE_PROGRAM]
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            raise TypeError(f"audit() has no option {name!r}{meant}")
    for name, value in {**given, **options}.items():
        if isinstance(value, np.generic):
            value = value.item()
        elif isinstance(value, np.ndarray | pd.Index | pd.Series):
            value = value.tolist()
        elif isinstance(value, list | tuple | range):
            value = [v.item() if isinstance(v, np.generic) else v for v in value]
        many = isinstance(value, list)
        if isinstance(value, str) and isinstance(registry[name].value, tuple | list):
            raise ConfigError(f"--{name}: expected a list of names, got {value!r}")
        registry[name].value = tuple(value) if many else value
    return settings_lib.of_groups(
        lambda group: config_lib.read(group, flag_values=registry)
    )

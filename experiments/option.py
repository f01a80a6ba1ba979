"""A field of a configuration that becomes a flag."""

import dataclasses
from typing import Any


def option(default: Any, help_: str, **bounds: float) -> Any:
    """A dataclass field that becomes a flag with this help and these bounds.

    Args:
      default: value of the field.
      help_: text of the flag.
      **bounds: `min`, `max`, `above` or `below`, checked by `config`.
    """
    return dataclasses.field(default=default, metadata={"help": help_, **bounds})

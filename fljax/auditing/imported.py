"""The user's own code, named on the command line."""

import importlib
from typing import Any

from fljax.attacks.spec import AttackSpec
from fljax.driver.config import ConfigError


def attribute(flag: str, text: str) -> Any:
    """What `package.module:attribute` is.

    Raises:
      ConfigError: it is not of that form, or cannot be imported.
    """
    module, _, name = text.partition(":")
    if not (module and name):
        raise ConfigError(f"{flag}: expected package.module:attribute, got {text!r}")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{flag}: {text} cannot be imported: {error}") from error


def attack(flag: str, text: str) -> AttackSpec:
    """The attack that `package.module:attribute` is.

    Raises:
      ConfigError: as `attribute`, or it is no attack.
    """
    found = attribute(flag, text)
    if not isinstance(found, AttackSpec):
        raise ConfigError(
            f"{flag}: expected {text} to be a fljax.attacks.spec.AttackSpec, got "
            f"{type(found).__name__}"
        )
    return found

"""The user's own code, named on the command line."""

from typing import Any

from fljax import attack_names, imports
from fljax.attacks.needs import Needs
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
        return imports.attribute(text)
    except ImportError as error:
        raise ConfigError(f"{flag}: {text} cannot be imported: {error}") from error


def called(flag: str, text: str, found: Any) -> Any:
    """What a function of the user's returns.

    Raises:
      ConfigError: it stopped with an error.
    """
    try:
        return imports.called(found)
    except ImportError as error:
        raise ConfigError(f"{flag}: {text}: {error}") from error


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
    return judged(flag, found)


def judged(flag: str, found: AttackSpec) -> AttackSpec:
    """The same, if it can be run and its name does not say that no verdict is given.

    Raises:
      ConfigError: it cannot, or it does.
    """
    if not (isinstance(found.needs, Needs) and callable(found.run)):
        raise ConfigError(
            f"{flag}: {found.name!r}: expected needs to be a Needs and run a function"
        )
    try:
        attack_names.check(found.name)
    except ValueError as error:
        raise ConfigError(f"{flag}: {error}") from error
    return found

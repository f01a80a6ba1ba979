"""A command: settings that become flags, and what is done with them."""

import abc
import dataclasses
import functools
from typing import Any

from absl import flags

from fljax.data import DataError
from fljax.driver import config

flags.disclaim_key_flags()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command(abc.ABC):
    """What `launch.run` runs; who inherits it says what `run` does.

    Attributes:
      settings: NamedTuple of the dataclasses that become flags.
      unprefixed: fields of `settings` whose flags have no prefix; those of the others
        are prefixed by the field's name.
      first: flags that --help shows first.
      errors: exceptions that stand for a user's mistake, beside `ConfigError`.
    """

    settings: type
    unprefixed: tuple[str, ...] = ("run",)
    first: tuple[str, ...] = ()
    errors: tuple[type[Exception], ...] = ()

    @abc.abstractmethod
    def run(self, settings: Any) -> None:
        """Does what the settings say.

        Raises:
          ConfigError: they cannot be used.
        """

    def define(self, flag_values: flags.FlagValues = flags.FLAGS) -> None:
        """Registers the flags.

        Args:
          flag_values: registry, for tests.
        """
        for prefix, cls in self._groups:
            config.define(cls, prefix, flag_values=flag_values)

    def read(self, flag_values: flags.FlagValues = flags.FLAGS) -> Any:
        """Settings from the parsed flags.

        Raises:
          ConfigError: for a value that cannot be used.
        """
        return self.settings(
            *(
                config.read(cls, prefix, flag_values=flag_values)
                for prefix, cls in self._groups
            )
        )

    def main(self) -> None:
        """Does what the flags say."""
        self.run(self.read())

    def check(self, settings: Any) -> None:
        """Holds settings that were made by hand against the bounds of their fields.

        Raises:
          ConfigError: as `read` does.
        """
        for (prefix, _), group in zip(self._groups, settings, strict=True):
            config.check(group, prefix)

    def to_flags(self, settings: Any) -> dict[str, Any]:
        """Flag name -> value."""
        flat: dict[str, Any] = {}
        for (prefix, _), group in zip(self._groups, settings, strict=True):
            flat |= config.to_flags(group, prefix)
        return flat

    def sections(self) -> dict[str, list[str]]:
        """Heading -> names of flags, as --help shows them."""
        found = {
            name: list(config.names(cls, prefix))
            for name, (prefix, cls) in zip(
                self.settings.__annotations__, self._groups, strict=True
            )
        }
        return ({"first of all": list(self.first)} if self.first else {}) | found

    @property
    def mistakes(self) -> tuple[type[Exception], ...]:
        """Exceptions that are one line on standard error."""
        return (DataError, *self.errors)

    @functools.cached_property
    def _groups(self) -> list[tuple[str, type]]:
        """Prefix and dataclass of each field of the settings."""
        return [
            ("" if name in self.unprefixed else name, cls)
            for name, cls in self.settings.__annotations__.items()
        ]

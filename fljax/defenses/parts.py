"""One defense of a spec, its definition, and how it is read from text and printed."""

import dataclasses
import functools
import re

from fljax import imports
from fljax.defenses import effects
from fljax.defenses.definition import BUDGET, Definition, Parameter
from fljax.defenses.effects import Effects
from fljax.defenses.registry import DEFENSES

Value = float | str | tuple[float | str, ...]  # a tuple: alternatives

_PART = re.compile(r"([\w.]+(?::[\w.]+)?)\s*(?:\((.*)\))?", re.DOTALL)


class SpecError(ValueError):
    """A text is no defense; the message is one line: part, parameter, expectation."""


@dataclasses.dataclass(frozen=True)
class Part:
    """One defense of a spec.

    Attributes:
      name: in the registry, or `module:attribute`.
      given: parameters that differ from their defaults, in the definition's order.
    """

    name: str
    given: tuple[tuple[str, Value], ...] = ()

    @property
    def values(self) -> dict[str, Value | None]:
        """Every parameter, defaults filled in."""
        values = dict(self.given)
        parameters = definition(self.name).parameters
        return {each.name: values.get(each.name, each.default) for each in parameters}

    @property
    def has_budget(self) -> bool:
        """Whether its sigma is left to an epsilon."""
        return self.values.get("epsilon") is not None

    @property
    def effects(self) -> Effects | None:
        """What it does as data; None where its definition does not say.

        Raises:
          SpecError: it does not say what can be simulated, or cannot be asked.
        """
        say, values = definition(self.name).effects, self.values
        if say is None:
            return None
        asked = {name: v for name, v in values.items() if name not in BUDGET}
        try:
            return effects.checked(say(**asked))
        except Exception as error:  # of somebody's function
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            raise SpecError(f"{self.name}: effects: {kind}{error}") from error

    def __str__(self) -> str:
        values = ", ".join(f"{name}={_text(value)}" for name, value in self.given)
        return f"{self.name}({values})" if values else self.name


def parse(text: str) -> Part:
    """The part of a text.

    Raises:
      SpecError: for a name, parameter or value that is not known or out of bounds.
    """
    matched = _PART.fullmatch(text.strip())
    if matched is None:
        raise SpecError(
            f"{text.strip() or 'an empty text'}: expected NAME or NAME(number=value, ...)"
        )
    name, inside = matched.groups()
    parameters = {each.name: each for each in definition(name).parameters}
    values: dict[str, Value] = {}
    for assignment in filter(None, map(str.strip, (inside or "").split(","))):
        key, _, value = map(str.strip, assignment.partition("="))
        if key not in parameters:
            known = f"some of {', '.join(parameters)}" if parameters else "no parameter"
            raise SpecError(f"{name}: expected {known}, got {assignment!r}")
        if key in values:
            raise SpecError(f"{name}: {key}: expected once, got twice")
        values[key] = _value(name, parameters[key], value)
    _check(name, parameters, values)
    return trimmed(name, values)


def trimmed(name: str, values: dict[str, Value]) -> Part:
    """In the order of the parameters, without defaults."""
    parameters = definition(name).parameters
    return Part(
        name,
        tuple(
            (each.name, values[each.name])
            for each in parameters
            if each.name in values and values[each.name] != each.default
        ),
    )


@functools.cache
def definition(name: str) -> Definition:
    """Of a registered name, or of `module:attribute`.

    Raises:
      SpecError: there is none.
    """
    if name in DEFENSES:
        return DEFENSES[name]
    if ":" not in name:
        known = f"none, module:attribute, or one of {', '.join(DEFENSES)}"
        raise SpecError(f"{name}: expected {known}")
    try:
        found = imports.attribute(name)
    except ImportError as error:
        raise SpecError(f"{name}: cannot be imported: {error}") from error
    if not isinstance(found, Definition):
        raise SpecError(
            f"{name}: expected a fljax.defenses.definition.Definition, "
            f"got {type(found).__name__}"
        )
    return found


def _value(name: str, parameter: Parameter, text: str) -> Value:
    try:
        values = tuple(parameter.read(each.strip()) for each in text.split("|"))
    except ValueError:
        raise SpecError(
            f"{name}: {parameter.name}: expected {parameter.expected}, got {text!r}"
        ) from None
    if len(set(values)) < len(values):
        raise SpecError(
            f"{name}: {parameter.name}: expected distinct alternatives, got {text!r}"
        )
    first, *more = values
    return values if more else first


def _check(name: str, parameters, values) -> None:
    for key, parameter in parameters.items():
        if parameter.required and key not in values:
            raise SpecError(
                f"{name}: {key}: expected {parameter.expected}, got nothing"
            )
    if "epsilon" not in parameters:
        return
    if ("sigma" in values) == ("epsilon" in values):
        both = "both" if "sigma" in values else "neither"
        raise SpecError(f"{name}: expected one of sigma and epsilon, got {both}")
    if "accountant" in values and "epsilon" not in values:
        raise SpecError(f"{name}: accountant: expected beside epsilon, got sigma")


def _text(value: Value) -> str:
    if isinstance(value, tuple):
        return "|".join(map(_text, value))
    if isinstance(value, str):
        return value
    short = format(value, "g")
    return short if float(short) == value else repr(value)

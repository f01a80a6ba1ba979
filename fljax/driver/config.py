"""Flags from dataclasses: what an experiment can be told, typed and checked once.

`define` registers one absl flag per field of a frozen keyword-only dataclass, `read`
builds the checked object after parsing, `parse` reads one value as its flag would,
`to_flags` flattens an object for the manifest. The library itself never sees a flag.
Only what flags can say is supported:

    int, float, bool, str, Literal[...]   one value, a finite one
    tuple[int, ...] and the like          values separated by commas, or nothing; one
                                          with a comma in double quotes; of integers
                                          `0..9` is all from 0 to 9
    X | None                              the word "none" stands for None

A field's metadata holds "help" (required) and bounds: "min", "max" (inclusive), "above"
and "below" (exclusive); for a tuple they bound every entry. "distinct" asks a tuple for
one entry at least, and each at most once. "of" has the values of other fields beside which
alone it has an effect, none for all but their default; what differs from its own default
is refused beside others. It is not for what overriding one flag of a flagfile makes idle.

Example: `batch_size: int = field(default=32, metadata={"help": "rows", "min": 1})`.
"""

import csv
import io
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TypeVar

from absl import flags

from fljax.driver import fields

# Flags then belong to the module that calls `define`, which is where --help looks.
flags.disclaim_key_flags()

Config = TypeVar("Config")

_BOOLS = {"true": True, "1": True, "false": False, "0": False}
_LEAST, _MOST = 1e-37, 1e38  # of a number that is not 0
_MOST_WHOLE = 2**31 - 1  # of an integer without a bound of its own
_RUN = re.compile(r"(-?[0-9]+)\.\.(-?[0-9]+)")
_MOST_IN_A_RUN = 100_000
_MOST_LISTED = 5  # integers in a row that are typed each


class ConfigError(ValueError):
    """A value that the user gave cannot be used; the message is one line."""


def define(
    cls: type, prefix: str = "", *, flag_values: flags.FlagValues = flags.FLAGS
) -> None:
    """Registers one flag per field of `cls`, named `prefix_field` or just `field`.

    Args:
      cls: frozen keyword-only dataclass; a field without default is a required flag.
      prefix: put before every name.
      flag_values: registry, for tests.

    Raises:
      TypeError: for another kind of class, an annotation that no flag can express, a
        field without help, or metadata that is not known.
      ConfigError: for a default that its own bounds refuse.
    """
    for spec in fields.specs(cls, prefix):
        if spec.default is not None:
            _check(spec, spec.default)
        flag = flags.Flag(
            _Parser(spec),
            _Serializer() if spec.many else flags.ArgumentSerializer(),
            spec.flag,
            spec.default,
            f"{spec.help} ({_expected(spec)}{_hint(spec)})",
            boolean=spec.kind is bool and not spec.many,
        )
        flags.DEFINE_flag(flag, flag_values)


def read(
    cls: type[Config], prefix: str = "", *, flag_values: flags.FlagValues = flags.FLAGS
) -> Config:
    """Builds `cls` from the parsed flags.

    Raises:
      ConfigError: for a value outside its bounds, a required flag that was not given,
        or a combination that the class itself refuses in `__post_init__`: with a
        ConfigError that names the flags, or a ValueError.
    """
    values = {}
    for spec in fields.specs(cls, prefix):
        values[spec.name] = getattr(flag_values, spec.flag)
        _check(spec, values[spec.name])
    try:
        found = cls(**values)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"--{prefix or cls.__name__}: {error}") from error
    _check_effects(found, prefix)
    return found


def check(config: Any, prefix: str = "") -> None:
    """Holds an object that was built by hand against the bounds of its fields.

    Raises:
      ConfigError: as `read` does.
    """
    for spec in fields.specs(type(config), prefix):
        _check(spec, fields.exact(spec.kind, getattr(config, spec.name)))
    _check_effects(config, prefix)


def parse(cls: type, prefix: str, name: str, text: str) -> Any:
    """Value of the field `name` from the text of its flag.

    Raises:
      ConfigError: for what `define` and `read` together would refuse.
    """
    spec = next(spec for spec in fields.specs(cls, prefix) if spec.name == name)
    value = _Parser(spec).parse(text)
    _check(spec, value)
    return value


def names(cls: type, prefix: str = "") -> list[str]:
    """Names of its flags."""
    return [spec.flag for spec in fields.specs(cls, prefix)]


def to_flags(config: Any, prefix: str = "") -> dict[str, Any]:
    """Flattens a config to flag name -> JSON value; inf becomes the text "inf"."""
    return {
        spec.flag: _plain(fields.exact(spec.kind, getattr(config, spec.name)))
        for spec in fields.specs(type(config), prefix)
    }


def to_text(value: Any) -> str:
    """A value of `to_flags` as it is typed behind its flag; commas inside are quoted."""
    if isinstance(value, list | tuple):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(_shortened(value))
        return line.getvalue()
    return str(value).lower() if isinstance(value, bool | None) else str(value)


class _Serializer(flags.ArgumentSerializer):
    """Writes several values as `_Parser` reads them."""

    def serialize(self, value: Any) -> str:
        return to_text(value)


class _Parser(flags.ArgumentParser):
    """Turns the text of one flag into its value; bounds are left to `read`."""

    def __init__(self, spec: fields.Spec):
        self._spec = spec

    def parse(self, argument: Any) -> Any:
        if not isinstance(argument, str):  # absl sends defaults through here too
            return argument
        if self._spec.optional and argument.lower() == "none":
            return None
        try:
            if not self._spec.many:
                return _one(self._spec, argument)
            each = (_several(self._spec, part) for part in _parts(argument))
            return tuple(itertools.chain.from_iterable(each))
        except (KeyError, ValueError, csv.Error):
            _refuse(self._spec, argument)


def _hint(spec: fields.Spec) -> str:
    return "; 0..9: all from 0 to 9" if _has_runs(spec) else ""


def _has_runs(spec: fields.Spec) -> bool:
    return spec.many and spec.kind is int and not spec.choices


def _several(spec: fields.Spec, text: str) -> Iterable[Any]:
    """One value, or all of `0..9`."""
    ends = _RUN.fullmatch(text) if _has_runs(spec) else None
    if ends is None:
        return [_one(spec, text)]
    first, last = map(int, ends.groups())
    if not 0 <= last - first < _MOST_IN_A_RUN:
        raise ValueError
    return range(first, last + 1)


def _shortened(values: Sequence[Any]) -> list[str]:
    """Texts, with `0..9` in place of many integers, each one more than that before it."""
    if any(type(value) is not int for value in values):
        return [*map(to_text, values)]
    found, numbered = [], enumerate(values)
    for _, run in itertools.groupby(numbered, lambda each: each[1] - each[0]):
        own = [number for _, number in run]
        is_long = len(own) > _MOST_LISTED
        found += [f"{own[0]}..{own[-1]}"] if is_long else map(str, own)
    return found


def _parts(argument: str) -> list[str]:
    """Values between commas, which quotes keep together as in a CSV file."""
    if not argument.strip():
        return []
    (parts,) = csv.reader([argument], skipinitialspace=True, strict=True)
    return [part.strip() for part in parts]


def _one(spec: fields.Spec, text: str) -> Any:
    if spec.choices:
        return {str(choice): choice for choice in spec.choices}[text]
    return _BOOLS[text.lower()] if spec.kind is bool else spec.kind(text)


def _check(spec: fields.Spec, value: Any) -> None:
    if value is None and spec.optional:
        return
    if value is None or spec.many != isinstance(value, tuple):
        _refuse(spec, value)
    for item in value if spec.many else [value]:
        fits = type(item) is spec.kind and (not spec.choices or item in spec.choices)
        fits = fits and not (spec.kind is float and not math.isfinite(item))
        if not fits or not all(
            fields.BOUNDS[key][1](item, b) for key, b in spec.bounds
        ):
            _refuse(spec, item)
        if spec.kind is float and item and not _LEAST <= abs(item) <= _MOST:
            raise ConfigError(
                f"--{spec.flag}: expected a number of size {_LEAST:g} to {_MOST:g}, "
                f"which float32 holds, got {item!r}"
            )
        bounded = {"max", "below"} & {key for key, _ in spec.bounds}
        if spec.kind is int and not bounded and abs(item) > _MOST_WHOLE:
            raise ConfigError(
                f"--{spec.flag}: expected an integer of a size below 2^31, got {item!r}"
            )
    if spec.distinct and (not value or len(set(value)) < len(value)):
        raise ConfigError(
            f"--{spec.flag}: expected each at most once, and one at least, got {value}"
        )


def _check_effects(config: Any, prefix: str) -> None:
    """Refuses what would change nothing."""
    specs = {spec.name: spec for spec in fields.specs(type(config), prefix)}
    for spec in specs.values():
        value = getattr(config, spec.name)
        for name, wanted in spec.of.items() if value != spec.default else ():
            other, told = specs[name], getattr(config, name)
            some = set(told or ()) if other.many else {told}
            if not some & set(wanted) if wanted else told == other.default:
                usual = " or ".join(map(to_text, wanted))
                raise ConfigError(
                    f"--{spec.flag}={to_text(_plain(value))}: is of --{other.flag}"
                    f"{'=' if wanted else ''}{usual}, got {to_text(_plain(told))}"
                )


def _refuse(spec: fields.Spec, value: Any) -> NoReturn:
    got = "nothing" if value is None else repr(value)
    raise ConfigError(f"--{spec.flag}: expected {_expected(spec)}, got {got}")


def _expected(spec: fields.Spec) -> str:
    text = fields.NOUNS[spec.kind][spec.many]
    if spec.choices:
        text = ("one of ", "some of ")[spec.many] + ", ".join(map(str, spec.choices))
    if spec.bounds:
        bounds = (f"{fields.BOUNDS[key][0]} {bound}" for key, bound in spec.bounds)
        text += " " + " and ".join(bounds)
    text += " separated by commas" if spec.many else ""
    return f"{text} or none" if spec.optional else text


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if type(value) is not float or math.isfinite(value) else str(value)

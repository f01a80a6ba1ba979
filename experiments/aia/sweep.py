"""Points of a sweep: the same run with a few flags changed, one after another."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from experiments import defense_options
from fljax.defenses.specs import Spec
from fljax.driver import config
from fljax.driver.config import ConfigError

_MOST = 1000  # characters of a label; a report takes no longer ones
_FIXED = ("data", "run")  # loaded and decided once for all points
_UNPREFIXED = ("train", "defense", "adversary")
# Where a defense may have spaces: beside a plus, and in parentheses.
_SPACES = re.compile(r"\s*\+\s*|\s+(?=[^()]*\))")


def points(settings: Any, text: str) -> Iterator[tuple[str, Any]]:
    """Yields `(label, settings)` for every point of `--sweep`.

    `"batch_size=64 learning_rate=0.1; batch_size=128 learning_rate=0.2"` has two
    points, labelled by their first assignment. Names and values are those of the flags
    of everything but the data and the run itself. Every point is checked before the first
    is yielded. Without a sweep there is one point with an empty label.

    Args:
      settings: NamedTuple of frozen dataclasses.
      text: value of the flag.

    Raises:
      ConfigError: for an unknown flag, a value that the flag itself would refuse, a
        flag given twice in a point, or two points with the same label.
    """
    if not text.strip():
        yield "", settings
        return
    found: dict[str, Any] = {}
    for part in text.split(";"):
        assignments = _SPACES.sub(lambda m: m[0].strip(), part).split()
        if not assignments:
            raise ConfigError("--sweep: expected 'flag=value' between semicolons")
        label = _label(assignments[0])
        if len(label) > _MOST:
            raise ConfigError(
                f"--sweep: expected a first assignment of at most {_MOST} characters, "
                f"for it is the point's label, got {label[:60]}..."
            )
        if label in found:
            raise ConfigError(f"--sweep: two points begin with {label!r}, their label")
        found[label] = _point(settings, assignments)
    yield from found.items()


def _label(assignment: str) -> str:
    """A defense is written as the result rows have it."""
    name, equals, value = assignment.partition("=")
    return name + equals + (str(_spec(value)) if name == "defense" else value)


def _spec(text: str) -> Spec:
    with _naming():
        return defense_options.parse(text)


def _point(settings: Any, assignments: list[str]) -> Any:
    """All flags of a point at once, for some are only valid beside others."""
    told: dict[tuple[str, str], dict[str, Any]] = {}
    seen = set()
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise ConfigError(f"--sweep: expected flag=value, got {assignment!r}")
        if name in seen:
            raise ConfigError(f"--sweep: one point gives {name!r} twice")
        seen.add(name)
        group, prefix, field = _place(settings, name)
        kind = type(getattr(settings, group))
        with _naming():
            parsed = config.parse(kind, prefix, field, value)
        told.setdefault((group, prefix), {})[field] = parsed
    for (group, prefix), values in told.items():
        with _naming():
            changed = dataclasses.replace(getattr(settings, group), **values)
            config.check(changed, prefix)
        settings = settings._replace(**{group: changed})
    return settings


def _place(settings: Any, name: str) -> tuple[str, str, str]:
    """Group of a flag, the group's prefix, and the flag's field in it."""
    for group, part in settings._asdict().items():
        if group in _FIXED:
            continue
        prefix = "" if group in _UNPREFIXED else group
        lead = f"{prefix}_" if prefix else ""
        for field in dataclasses.fields(part):
            if name == lead + field.name:
                return group, prefix, field.name
    raise ConfigError(f"--sweep: {name!r} is no flag that can be swept")


@contextlib.contextmanager
def _naming() -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"--sweep: {error}") from error

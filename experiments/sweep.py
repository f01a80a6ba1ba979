"""Points of a sweep: the same run with a few flags changed, one after another."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from experiments.config import ConfigError

_SWEPT = ("partition", "model", "train", "attack")


def points(told: Any, text: str) -> Iterator[tuple[str, Any]]:
    """Yields `(label, settings)` for every point of `--sweep`.

    `"batch_size=64 learning_rate=0.1; batch_size=128 learning_rate=0.2"` has two
    points, labelled by their first assignment. Names are those of the flags; only
    flags of partition, model, training and attack that hold one value can be swept.
    Without a sweep there is one point with an empty label.

    Args:
      told: NamedTuple of frozen dataclasses.
      text: value of the flag.

    Raises:
      ConfigError: for an unknown flag or a value of another type.
    """
    if not text.strip():
        yield "", told
        return
    for part in text.split(";"):
        assignments = part.split()
        if not assignments:
            raise ConfigError("--sweep: expected 'flag=value' between semicolons")
        at = told
        for assignment in assignments:
            name, equals, value = assignment.partition("=")
            if not equals:
                raise ConfigError(f"--sweep: expected flag=value, got {assignment!r}")
            at = _changed(at, name, value)
        yield assignments[0], at


def _changed(told: Any, name: str, value: str) -> Any:
    for group in _SWEPT:
        prefix = "" if group == "train" else f"{group}_"
        field = name.removeprefix(prefix)
        part = getattr(told, group)
        if name.startswith(prefix) and hasattr(part, field):
            parsed = _parsed(name, getattr(part, field), value)
            changed = dataclasses.replace(part, **{field: parsed})
            return told._replace(**{group: changed})
    raise ConfigError(f"--sweep: {name!r} is no flag that can be swept")


def _parsed(name: str, current: Any, value: str) -> Any:
    kind = type(current)
    if kind not in (int, float, str):
        raise ConfigError(
            f"--sweep: {name} must hold one number or word, not {current}"
        )
    try:
        return kind(value)
    except ValueError:
        raise ConfigError(f"--sweep: {name} expects {kind.__name__}, got {value!r}")

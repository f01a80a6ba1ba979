"""The description of a recording, `about`: free, though attacks read some of its names."""

import difflib
import json
import pathlib
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from fljax import files
from fljax.transcript import archive, told
from fljax.transcript.views import TranscriptError

_SHORT = {"lr": "learning_rate", "bs": "batch_size", "steps": "local_steps"}
_NEAR = 0.8


def meant(names: Iterable[str]) -> dict[str, str]:
    """Names that nothing reads -> the one that may be meant and is not there, if near."""
    there, found = set(names), {}
    for name in there - set(told.FIELDS):
        simple = name.lower().replace("-", "_").replace(" ", "_")
        near = difflib.get_close_matches(simple, told.FIELDS, n=1, cutoff=_NEAR)
        known = _SHORT.get(simple) or next(iter(near), None)
        if known is not None and known not in there:
            found[name] = known
    return dict(sorted(found.items()))


def given(about: Any) -> dict[str, Any]:
    """A description as a caller gives it; empty for None.

    Raises:
      TranscriptError: it is no mapping of names.
    """
    if about is None:
        return {}
    if not isinstance(about, Mapping) or not all(isinstance(n, str) for n in about):
        raise TranscriptError(
            f"about: expected a mapping such as {{'batch_size': 32}}, got {about!r:.40}"
        )
    return dict(about)


def read(path: pathlib.Path) -> dict[str, Any]:
    """The description so far, empty before the first."""
    if not path.exists():
        return {}
    with archive.blaming(path):
        return dict(**json.loads(path.read_text(encoding="utf-8")))


def check_open(folder: pathlib.Path) -> None:
    """Raises unless there is the folder of a recording that is not finished."""
    if not folder.is_dir():
        raise TranscriptError(
            f"{folder} is not there any more: the recording is finished, and nothing can "
            "be added to it"
        )


def written(path: pathlib.Path, about: dict[str, Any]) -> dict[str, Any]:
    """Writes it, and gives it back as JSON has it; warns of names that are nearly right.

    Raises:
      TranscriptError: the recording is finished, JSON cannot hold it, or a field is not
        what attacks read; nothing is written then.
    """
    check_open(path.parent)
    try:
        text = json.dumps(about, default=archive.plain)
    except (TypeError, ValueError) as error:
        raise TranscriptError(f"about: {error}") from error
    told.check(json.loads(text))
    for name, known in meant(about).items():
        warnings.warn(f"about: nothing reads {name!r}; {known}?", stacklevel=3)
    files.write_text(path, text + "\n")
    return json.loads(text)


def warn_of_changes(
    before: Mapping[str, Any], given: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
    """Says what attacks would read of a recording that goes on otherwise than before.

    Args:
      before: the description that is there.
      given: what is said of the training that goes on.
      now: both together.
    """
    for name in sorted(before.keys() & now.keys() & set(told.FIELDS)):
        if name not in given and name != "client_names":  # which recorders add
            warnings.warn(
                f"about: {name} was {before[name]!r:.40} when rounds were recorded, is not "
                "said now, and counts of all rounds",
                stacklevel=3,
            )
        if before[name] != now[name]:
            warnings.warn(
                f"about: {name} was {before[name]!r:.40} when rounds were recorded and is "
                f"{now[name]!r:.40} now, of all rounds",
                stacklevel=3,
            )

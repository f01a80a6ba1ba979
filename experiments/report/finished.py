"""Finished runs: where they are, and their rows, manifests and figures, checked.

A run is a folder with `rows.jsonl` and `manifest.json`. Both may come from anyone, so
their form is checked before anything is made of them.
"""

import json
import math
import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from experiments.report import svg
from fljax.driver.config import ConfigError
from fljax.results import Row

_ROWS, _MANIFEST = "rows.jsonl", "manifest.json"
_MOST_BYTES, _MOST_CHARACTERS = 2**28, 2000
_MOST_PICTURE_BYTES, _MOST_PICTURES = 2**24, 200
_PNG = b"\x89PNG\r\n\x1a\n"
_TEXTS = (
    "experiment", "data", "model", "defense", "attack", "setting", "point", "metric"
)  # fmt: skip


class Run(NamedTuple):
    """One finished run."""

    folder: pathlib.Path
    rows: list[Row]
    manifest: dict[str, Any]
    pictures: dict[str, bytes]


def find(
    places: Sequence[str], experiments: Sequence[str], flag: str
) -> tuple[list[pathlib.Path], list[pathlib.Path]]:
    """Folders of finished runs, in the order given, each once; and those left out.

    A run of another experiment is left out if it was not named but met below a folder.

    Args:
      places: run folders, folders above them, or patterns with `*`, `?` or `[`.
      experiments: names of the experiments that are looked for.
      flag: name of the flag that said so, for messages.

    Raises:
      ConfigError: if a place does not exist or has no finished run.
    """
    found: dict[pathlib.Path, pathlib.Path] = {}
    others: list[pathlib.Path] = []
    for place in places:
        starts = _starts(place, flag)
        folders = [run for start in starts for run in _below(start)]
        left_out = [
            run
            for run in folders
            if run != pathlib.Path(place).expanduser() and _is_other(run, experiments)
        ]
        if len(folders) == len(left_out):
            raise ConfigError(
                f"--{flag}: {place} holds no finished run of {_either(experiments)} "
                f"(a folder with {_ROWS} and {_MANIFEST})"
            )
        for folder in folders:
            if folder not in left_out:
                found.setdefault(folder.resolve(), folder)
        others += left_out
    if not found:
        raise ConfigError(f"--{flag}: expected at least one folder")
    return list(found.values()), others


def read(folder: pathlib.Path, experiments: Sequence[str]) -> Run:
    """Reads one run.

    Args:
      folder: of the run.
      experiments: of which one it must be.

    Raises:
      ConfigError: naming the file, and the line of a row, that is not as expected, or
        if the run is one of another experiment.
    """
    manifest = _object(_text(folder / _MANIFEST), str(folder / _MANIFEST))
    experiment = _experiment(manifest)
    if experiment is None or experiment not in experiments:
        raise ConfigError(
            f"{folder}: expected a run of {_either(experiments)}, got one of "
            f"{manifest.get('experiment')!r:.80}"
        )
    if not isinstance(manifest.get("flags"), dict):
        raise ConfigError(f"{folder / _MANIFEST}: expected flags, got none")
    path = folder / _ROWS
    rows = [
        _row(line, experiment, f"{path}:{number}")
        for number, line in enumerate(_text(path).splitlines(), 1)
    ]
    if not rows:
        raise ConfigError(f"{path}: expected rows, got an empty file")
    seen: dict[Row, int] = {}
    for number, row in enumerate(rows, 1):
        earlier = seen.setdefault(row._replace(value=0.0, n=0), number)
        if earlier != number:
            raise ConfigError(f"{path}:{number}: repeats what line {earlier} says")
    return Run(folder, rows, manifest, _pictures(folder, manifest))


def _pictures(folder: pathlib.Path, manifest: dict[str, Any]) -> dict[str, bytes]:
    """The figures that a manifest names and the folder holds, by file.

    Figures are SVG files; earlier runs have PNG files.
    """
    names = manifest.get("figures", [])
    plain = isinstance(names, list) and all(
        isinstance(name, str) and re.fullmatch(r"\w[\w.-]{0,99}", name)
        for name in names
    )
    if not plain or len(names) > _MOST_PICTURES:
        raise ConfigError(f"{folder / _MANIFEST}: expected figures as a list of names")
    found = {}
    for name in names:
        for path in (folder / f"{name}.svg", folder / f"{name}.png"):
            try:
                if path.is_file():
                    found[path.name] = _picture(path)
                    break
            except OSError as error:
                raise ConfigError(_unreadable(path, error)) from error
    return found


def _picture(path: pathlib.Path) -> bytes:
    if path.stat().st_size > _MOST_PICTURE_BYTES:
        raise ConfigError(f"{path}: expected at most {_MOST_PICTURE_BYTES} bytes")
    content = path.read_bytes()
    if path.suffix == ".png":
        if not content.startswith(_PNG):
            raise ConfigError(f"{path}: expected a PNG file")
    elif wrong := svg.wrong(content):
        raise ConfigError(f"{path}: expected an SVG file that only draws, {wrong}")
    return content


def _is_other(folder: pathlib.Path, experiments: Sequence[str]) -> bool:
    """Whether a manifest names another experiment; a broken one is left to `read`."""
    try:
        manifest = _object(_text(folder / _MANIFEST), str(folder))
    except ConfigError:
        return False
    return "experiment" in manifest and _experiment(manifest) not in experiments


def _experiment(manifest: dict[str, Any]) -> str | None:
    """Its name; a stranger's manifest may have anything there, which is none."""
    name = manifest.get("experiment")
    return name if isinstance(name, str) else None


def _either(experiments: Sequence[str]) -> str:
    return " or ".join(f"experiments.{name}" for name in experiments)


def _starts(place: str, flag: str) -> list[pathlib.Path]:
    try:
        path = pathlib.Path(place).expanduser()
        if path.is_dir():
            return [path]
        is_file, matching = path.exists(), _matching(path)
    except (OSError, RuntimeError, ValueError) as error:  # of a long name, `~x`, `**x`
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"--{flag}: {place:.80}: {reason}") from error
    if is_file:
        raise ConfigError(f"--{flag}: expected a folder, {place} is a file")
    if matching is None:
        raise ConfigError(f"--{flag}: no folder {place}")
    return matching


def _matching(path: pathlib.Path) -> list[pathlib.Path] | None:
    """Folders that a pattern names; None of a path that is no pattern."""
    anchor = pathlib.Path(path.anchor)
    pattern = str(path.relative_to(anchor))
    if not any(sign in pattern for sign in "*?["):
        return None
    return sorted(found for found in anchor.glob(pattern) if found.is_dir())


def _below(start: pathlib.Path) -> Iterator[pathlib.Path]:
    """The folder itself if it is a run, else all runs below it, in order of name."""

    def refuse(error: OSError) -> None:
        raise ConfigError(_unreadable(error.filename, error)) from error

    for folder, below, files in os.walk(start, onerror=refuse):
        below.sort()
        if {_ROWS, _MANIFEST} <= set(files):
            below.clear()
            yield pathlib.Path(folder)


def _text(path: pathlib.Path) -> str:
    try:
        if not path.is_file():  # a pipe would never end
            raise ConfigError(f"{path}: expected a file")
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ConfigError(f"{path}: is longer than {_MOST_BYTES} bytes")
        return content.decode()
    except OSError as error:
        raise ConfigError(_unreadable(path, error)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is no UTF-8 text") from error


def _unreadable(path: str | os.PathLike, error: OSError) -> str:
    return f"{path}: cannot be read ({error.strerror})"


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: is no JSON") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: expected a JSON object")
    return value


def _row(line: str, experiment: str, where: str) -> Row:
    fields = _object(line, where)
    if fields.keys() != set(Row._fields):
        raise ConfigError(f"{where}: expected the fields {', '.join(Row._fields)}")
    for name in _TEXTS:
        if not isinstance(fields[name], str):
            raise ConfigError(f"{where}: {name} must be text")
        if len(fields[name]) > _MOST_CHARACTERS:
            raise ConfigError(f"{where}: {name} is too long")
    if fields["experiment"] != experiment:
        raise ConfigError(f"{where}: is no row of experiments.{experiment}")
    for name in ("seed", "n"):
        if not _is_count(fields[name], 2**53):
            raise ConfigError(f"{where}: {name} must be a whole number")
    if fields["client"] != "all" and not _is_count(fields["client"], 2**63):
        raise ConfigError(f"{where}: client must be a whole number or all")
    return Row(**fields | {"value": _value(fields["value"], where)})


def _is_count(value: Any, bound: int) -> bool:
    return type(value) is int and 0 <= value < bound


def _value(value: Any, where: str) -> float:
    """Null, and whatever else is not finite, becomes NaN."""
    if value is None:
        return math.nan
    if type(value) not in (int, float):
        raise ConfigError(f"{where}: value must be a number or null")
    # Sums and squares of larger numbers would not be finite.
    return float(value) if abs(value) < 1e100 else math.nan

"""Renders finished runs beside the published numbers; keeps them and documents them.

    python -m experiments.report --runs=runs
    python -m experiments.report --runs=runs/aia.medical.mlp-1234abcd --out=report
    python -m experiments.report --runs=runs/lmra.small --keep=lmra.small
    python -m experiments.report --runs=runs/lmra.small --compare=lmra.small
    python -m experiments.report --docs

The first two write `report.html`, one file that needs no other, and `report.md` with
its pictures in `figures/`; with `--tensorboard` also the numbers of each run for TensorBoard, into
`tensorboard/`. `--keep` makes a run a result of the repository, in experiments/results/;
`--compare` says whether a run is the kept result (exit code 1: it is not); `--docs`
writes the numbers of the kept results into README.md and docs/.
"""

import dataclasses
import os
import pathlib
import sys
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from experiments.report import (
    agreement,
    documents,
    finished,
    kept,
    page,
    rendering,
    scalars,
)
from experiments.report.cards import Card, card
from experiments.report.programs import PROGRAMS
from fljax import files
from fljax.driver.command import Command
from fljax.driver.config import ConfigError
from fljax.driver.option import option

_FIGURES, _SCALARS = "figures", "tensorboard"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportConfig:
    """No prefix."""

    runs: tuple[str, ...] = option(
        ("runs",), "run folders, folders above them, or patterns such as 'runs/aia.*'"
    )
    out: str | None = option(
        None, "folder for report.md and report.html; default: report, beside the runs"
    )
    tensorboard: bool = option(
        False,
        "also write scalars that TensorBoard reads, into tensorboard/ of the folder",
    )
    keep: str | None = option(
        None, "name under which the one run becomes a result of the repository"
    )
    compare: str | None = option(
        None, "name of a kept result that the one run is compared with"
    )
    docs: bool = option(
        False, "write the numbers of the kept results into README.md and docs/"
    )

    def __post_init__(self):
        if (self.keep is not None) + (self.compare is not None) + self.docs > 1:
            raise ConfigError("--keep, --compare, --docs: expected one of them at most")
        reports = self.keep is None and self.compare is None and not self.docs
        if not reports and (self.out is not None or self.tensorboard):
            raise ConfigError(
                "--out, --tensorboard: expected neither with --keep, --compare or --docs"
            )


class Settings(NamedTuple):
    """All that the program can be told."""

    run: ReportConfig


def run(asked: ReportConfig) -> int:
    """Does what was asked for; returns the exit code.

    Raises:
      ConfigError: naming a run that cannot be read, a result that is none, or a folder
        that is no good.
    """
    if asked.docs:
        changed = [_shown(path) for path in documents.write()]
        print("\n".join(f"{path} is written" for path in changed) or "all up to date")
    elif asked.keep is not None:
        print(f"kept as {_shown(kept.keep(_only(asked.runs), asked.keep))}")
    elif asked.compare is not None:
        return _compare(asked)
    else:
        _report(asked)
    return 0


def _only(places: Sequence[str]) -> finished.Run:
    """The run that is there."""
    folders, _ = finished.find(places, PROGRAMS, "runs")
    if len(folders) > 1:
        raise ConfigError(f"--runs: expected one run, found {len(folders)}")
    return finished.read(folders[0], PROGRAMS)


def _compare(asked: ReportConfig) -> int:
    fresh = kept.of_rows(_only(asked.runs).rows)
    try:
        result = kept.read(asked.compare)
    except ConfigError as error:
        raise ConfigError(f"--compare: {error}") from error
    found = agreement.compare(fresh, result.rows)
    print("\n".join(found.lines))
    return int(found.verdict == agreement.DIFFERS)


def _report(asked: ReportConfig) -> None:
    """Reads all runs, then writes both files.

    Raises:
      ConfigError: naming a run that cannot be read, or a folder that is no good.
    """
    if asked.tensorboard:
        scalars.check()
    folders, others = finished.find(asked.runs, PROGRAMS, "runs")
    for folder in others:
        print(f"left out: {folder}, a run of another experiment", file=sys.stderr)
    usual = folders[0].absolute().parent / "report"
    out = pathlib.Path(os.path.expanduser(asked.out or usual))
    _check_writable(out)
    cards = [
        _card(finished.read(folder, PROGRAMS), name)
        for folder, name in zip(folders, _names(folders), strict=True)
    ]
    content = page.content(cards)
    _write(out, content, cards if asked.tensorboard else ())
    if said := page.counts(cards):
        print(said)
    print(f"{_shown(out / 'report.md')} and {_shown(out / 'report.html')} are written")


def _card(run: finished.Run, name: str) -> Card:
    flags, data = run.manifest["flags"], run.rows[0].data
    try:
        beside = PROGRAMS[run.manifest["experiment"]].reference(flags, data)
    except ConfigError as error:
        raise ConfigError(f"{run.folder / 'manifest.json'}: {error}") from error
    return card(name, run.rows, run.manifest, beside, run.pictures)


def _names(folders: Sequence[pathlib.Path]) -> list[str]:
    """Names of the folders, numbered where several have the same."""
    names = [folder.resolve().name for folder in folders]
    total, used = Counter(names), Counter()
    unique = []
    for name in names:
        used[name] += 1
        unique.append(f"{name} ({used[name]})" if total[name] > 1 else name)
    return unique


def _check_writable(out: pathlib.Path) -> None:
    """Looks at the folder or, before it is created, at the nearest one above it."""
    full = out.absolute()
    nearest = next(p for p in (full, *full.parents) if os.path.lexists(p))
    if not nearest.is_dir():
        raise ConfigError(f"--out: expected a folder, {nearest} is no folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(f"--out: {out} cannot be written")


def _write(out: pathlib.Path, content, traced: Sequence[Card]) -> None:
    """All is rendered before the first file is touched; the reports come last."""
    html = rendering.to_html(content)
    text = rendering.to_markdown(content, folder=_FIGURES)
    try:
        for picture in page.pictures(content):
            with files.replacing(out / _FIGURES / picture.name) as file:
                file.write(picture.content)
        for each in traced:
            scalars.write(out / _SCALARS / each.name, each.rows)
        files.write_text(out / "report.md", text)
        files.write_text(out / "report.html", html)
    except OSError as error:
        raise ConfigError(
            f"--out: {out} cannot be written: {error.strerror}"
        ) from error


def _shown(path: pathlib.Path) -> pathlib.Path:
    """As the user would name it."""
    here = pathlib.Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


class _Report(Command):
    """The report as a command."""

    def main(self) -> int:
        """Does what the flags say; returns the exit code."""
        return run(self.read().run)

    def run(self, settings: Settings) -> None:
        """Does what the settings say."""
        run(settings.run)


PROGRAM = _Report(settings=Settings)

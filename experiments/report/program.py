"""Renders finished runs beside the published numbers, as Markdown and HTML.

    python -m experiments.report --runs=runs
    python -m experiments.report --runs=runs/aia.medical.mlp-1234abcd --out=report

Writes `report.html`, one file that needs no other, and `report.md` with its pictures in
`figures/`; with `--tensorboard` also the numbers of each run for TensorBoard, into
`tensorboard/`.
"""

import dataclasses
import os
import pathlib
import sys
from collections import Counter
from collections.abc import Sequence

from experiments import report
from experiments.fed_cdp import published as of_fed_cdp
from experiments.gradient_leakage import published as of_leakage
from experiments.lmra import published as of_lmra
from experiments.report import finished, published, scalars
from fljax import files
from fljax.driver import config
from fljax.driver.config import ConfigError
from fljax.driver.option import option

_EXPERIMENTS = (
    "aia", "accounting", "audit", "fed_cdp", "gradient_leakage", "label_distribution",
    "lmra",
)  # fmt: skip
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


def main() -> None:
    """Reads all runs, then writes both files."""
    told = config.read(ReportConfig)
    if told.tensorboard:
        scalars.check()
    folders, others = finished.find(told.runs, _EXPERIMENTS, "runs")
    for folder in others:
        print(f"left out: {folder}, a run of another experiment", file=sys.stderr)
    out = pathlib.Path(told.out or folders[0].absolute().parent / "report")
    _check_writable(out)
    cards = [
        _card(finished.read(folder, _EXPERIMENTS), name)
        for folder, name in zip(folders, _names(folders), strict=True)
    ]
    blocks = report.compose_blocks(cards)
    _write(out, blocks, cards if told.tensorboard else ())
    if said := report.counts(cards):
        print(said)
    print(f"{_shown(out / 'report.md')} and {_shown(out / 'report.html')} are written")


def _card(run: finished.Run, name: str) -> report.Card:
    flags = run.manifest["flags"]
    try:
        match run.manifest["experiment"]:
            case "accounting":
                beside = published.printed_epsilons(flags)
            case "gradient_leakage":
                beside = of_leakage.reference(flags, run.rows[0].data)
            case "fed_cdp":
                beside = of_fed_cdp.reference(flags, run.rows[0].data)
            case "lmra":
                beside = of_lmra.reference(flags, run.rows[0].data)
            case _:
                table, data = flags.get("paper_table"), run.rows[0].data
                beside = published.reference(table, data, flags)
    except ConfigError as error:
        raise ConfigError(f"{run.folder / 'manifest.json'}: {error}") from error
    return report.card(name, run.rows, run.manifest, beside, run.pictures)


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


def _write(out: pathlib.Path, blocks, traced: Sequence[report.Card]) -> None:
    """All is rendered before the first file is touched; the reports come last."""
    page = report.to_html(blocks)
    text = report.to_markdown(blocks, folder=_FIGURES)
    try:
        for picture in report.pictures(blocks):
            with files.replacing(out / _FIGURES / picture.name) as file:
                file.write(picture.content)
        for card in traced:
            scalars.write(out / _SCALARS / card.name, card.rows)
        files.write_text(out / "report.md", text)
        files.write_text(out / "report.html", page)
    except OSError as error:
        raise ConfigError(
            f"--out: {out} cannot be written: {error.strerror}"
        ) from error


def _shown(path: pathlib.Path) -> pathlib.Path:
    """As the user would name it."""
    here = pathlib.Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


config.define(ReportConfig)

"""Results that the repository keeps: the one source of the numbers in its documents.

`experiments/results/NAME/` holds what is kept of a finished run. Its `rows.csv`, a line
for each metric (`kept_rows`), has only what summaries need:

* numbers over all clients, for every seed, and slopes;
* each client's, with half widths, where there is a single seed and an attack is judged
  by its clients;
* of a curve over rounds its first and its last round;
* no times, and nothing else that the program's report leaves; eight significant digits;
* no column of texts that are the same in every line, such as the name of the data: these
  stand once in the manifest, under `alike`.

Its `manifest.json` has the command and the flags, versions and hashes of the code, the
packages, and the machine in general words. Flagfiles without a result stand in
`experiments/results/not_kept.toml`, which says why.
"""

import difflib
import functools
import json
import pathlib
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.report import commands, finished, kept_rows
from experiments.report.cards import Card, card
from experiments.report.figures import selection
from experiments.report.programs import PROGRAMS
from fljax import certainty, files, results, shrinkage
from fljax.driver.config import ConfigError
from fljax.driver.option import FILES, PLACES
from fljax.metrics import Estimate
from fljax.results import HALF_WIDTH, PAIRED_HALF_WIDTH, Row, summarise

FOLDER = pathlib.Path(__file__).parents[1] / "results"
_ROWS, _MANIFEST, _NOT_KEPT = "rows.csv", "manifest.json", "not_kept.toml"
_TEXTS = ("data", "model", "defense", "point")
_ASIS = ("experiment", "code", "python", "packages", "verdicts", "not_run")
_TIMES, _SLOPE = "seconds", "_slope"  # milliseconds, too


def names() -> list[str]:
    """Of all results."""
    return [*_names(FOLDER)]


@functools.cache  # documents ask for them, and for one result, many times
def _names(folder: pathlib.Path) -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in folder.glob(f"*/{_MANIFEST}")))


def reasons() -> dict[str, str]:
    """Of each flagfile without a result: why."""
    return tomllib.loads((FOLDER / _NOT_KEPT).read_text())


def keep(run: finished.Run, name: str) -> pathlib.Path:
    """Keeps what is to be kept of a finished run; returns its folder.

    Raises:
      ConfigError: the name is none of a flagfile, or the run none of its program.
    """
    try:
        kept = of_manifest(name, run.manifest)
    except ConfigError as error:
        raise ConfigError(f"--keep: {error}") from error
    folder, rows = FOLDER / name, of_rows(run.rows)
    alike = _alike(rows)
    files.write_text(folder / _ROWS, kept_rows.written(rows, alike))
    results.write_manifest(folder / _MANIFEST, kept | {"alike": alike})
    for cached in (_names, _of_folder, _card):
        cached.cache_clear()
    return folder


def read(name: str) -> finished.Run:
    """A result.

    Raises:
      ConfigError: there is none of this name.
    """
    known = names()
    if name not in known:
        near = " or ".join(difflib.get_close_matches(name, known))
        raise ConfigError(
            f"expected the name of a folder in experiments/results{near and ', '}{near}, "
            f"got {name!r}"
        )
    return _of_folder(FOLDER / name)


@functools.cache
def _of_folder(folder: pathlib.Path) -> finished.Run:
    manifest = json.loads((folder / _MANIFEST).read_text())
    table = (folder / _ROWS).read_text()
    rows = kept_rows.read(table, manifest["experiment"], manifest["alike"])
    return finished.Run(folder, rows, manifest, {})


def shown(name: str) -> Card:
    """A result beside the published numbers."""
    return _card(read(name).folder)


@functools.cache
def _card(folder: pathlib.Path) -> Card:
    run = _of_folder(folder)
    program = PROGRAMS[run.manifest["experiment"]]
    reference = program.reference(run.manifest["flags"], run.rows[0].data)
    return card(folder.name, run.rows, run.manifest, reference)


def accuracy(name: str, attack: str, setting: str, defense: str = "none") -> Estimate:
    """Share of all rows on which an attack of a result names the right value, percent.

    Raises:
      ConfigError: there is none.
    """
    wanted = attack, setting, defense, selection.ACCURACY, "all"
    for each in summarise(read(name).rows):
        row = each.row
        if (row.attack, row.setting, row.defense, row.metric, row.client) == wanted:
            return each.shown
    raise ConfigError(f"{name} has no {attack} ({setting}, {defense})")


def of_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows that are kept, in their order."""
    ends = _ends(rows)
    judged = _judged_by_client(rows) | _drawn_by_client(rows)
    program = PROGRAMS.get(rows[0].experiment)
    wanted = ("",) if program is None else program.kept
    left = () if program is None else program.unkept
    return [
        row._replace(value=float(f"{row.value:.8g}"))
        for row in rows
        if (row.client == "all" or row.metric in judged or row.metric.endswith(_SLOPE))
        and selection.round_number(row) in ends.get(_curve(row), (None,))
        and not row.metric.endswith(_TIMES)
        and row.metric.startswith(wanted)
        and not row.setting.startswith(left)
        and certainty.confidence_of(row.metric) is None  # counts of rows may differ
    ]


def _alike(rows: Sequence[Row]) -> dict[str, str]:
    """Columns of texts that are the same in every row."""
    texts = {name: {getattr(row, name) for row in rows} for name in _TEXTS}
    return {name: min(found) for name, found in texts.items() if len(found) == 1}


def of_manifest(name: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest that is kept.

    Args:
      name: of the result.
      manifest: of the run.
    """
    flags = {
        key: value for key, value in manifest["flags"].items() if key not in PLACES
    }
    return {
        "command": commands.of_run(name, manifest["flags"]),
        **{key: manifest[key] for key in _ASIS if key in manifest},
        "machine": _machine(manifest),
        "data": [
            {key: file.get(key) for key in ("name", "sha256")}
            for file in manifest.get("data", [])
        ],
        "flags": flags | {key: None for key in FILES if key in flags},
    }


def _machine(manifest: Mapping[str, Any]) -> str:
    count = manifest.get("cpus")
    cores = f"{count} CPU core{'' if count == 1 else 's'}"
    if manifest.get("platform") == "cpu":
        return cores
    return f"{manifest.get('devices')} x {manifest.get('device')}, {cores}"


def _curve(row: Row) -> Row:
    """What the rows of a curve have in common."""
    return row._replace(setting="", value=0.0, n=0)


def _ends(rows: Sequence[Row]) -> dict[Row, tuple[int, int]]:
    """Curve over rounds -> its first and its last round."""
    found: dict[Row, tuple[int, int]] = {}
    for row in rows:
        number = selection.round_number(row)
        if number is not None:
            low, high = found.get(_curve(row), (number, number))
            found[_curve(row)] = min(low, number), max(high, number)
    return found


def _drawn_by_client(rows: Sequence[Row]) -> set[str]:
    """Metrics that a figure shows by the clients' sizes."""
    sizes: dict[str, set[int]] = {}
    for row in rows:
        if row.client != "all" and row.metric == selection.ACCURACY:
            sizes.setdefault(row.point, set()).add(row.n)
    unlike = any(map(selection.are_unlike, sizes.values()))
    return {selection.ACCURACY} if unlike else set()


def _judged_by_client(rows: Sequence[Row]) -> set[str]:
    """Metrics by whose clients an attack is judged: of a single seed alone."""
    program = PROGRAMS.get(rows[0].experiment)
    if program is None or len({row.seed for row in rows}) > 1:
        return set()
    measures = [gain.measure.metric for gain in program.gains]
    beside = {m + half for m in measures for half in (HALF_WIDTH, PAIRED_HALF_WIDTH)}
    return {*measures, *beside, shrinkage.CORRELATION, shrinkage.PARTIAL}

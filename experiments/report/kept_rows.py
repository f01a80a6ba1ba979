"""The table of a kept result: a line for each metric, its seeds beside one another.

A line has the texts of a `Row`; its seeds stand with spaces between them, as `0 1 2`, and in
their order the values and the numbers of rows that these were measured on, once where all
are alike. A value that is not finite is `nan`. A half width stands in the line of what it is
of, where their seeds and rows are the same. Texts that are the same in every line are left
to the manifest.
"""

import csv
import io
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from fljax.results import HALF_WIDTH, Row

_COLUMNS = tuple(name for name in Row._fields if name != "experiment")
_HALF = "half_width"


def written(rows: Iterable[Row], alike: Collection[str]) -> str:
    """Rows of one program as a table, without the columns that are `alike`."""
    lines: dict[Row, list[Row]] = {}
    for row in rows:
        lines.setdefault(row.repeated, []).append(row)
    halves = _halves(lines)
    columns = [name for name in _COLUMNS if name not in alike]
    if halves:
        columns.insert(columns.index("value") + 1, _HALF)
    file = io.StringIO()
    table = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    beside = {_of_half(line) for line in halves}
    for line, found in lines.items():
        if line not in beside:
            table.writerow(
                line._asdict()
                | {
                    "seed": " ".join(str(row.seed) for row in found),
                    "value": _values(found),
                    _HALF: _values(halves.get(line, [])),
                    "n": _once([row.n for row in found]),
                }
            )
    return file.getvalue()


def read(text: str, experiment: str, alike: Mapping[str, str]) -> list[Row]:
    """The rows of a table that was `written`, those of a line after one another."""
    lines = csv.DictReader(io.StringIO(text))
    return [row for line in lines for row in _rows(experiment, {**alike, **line})]


def _halves(lines: Mapping[Row, Sequence[Row]]) -> dict[Row, Sequence[Row]]:
    """Of lines with a half width of the same seeds and rows: its rows."""
    found = {}
    for line, rows in lines.items():
        half = lines.get(_of_half(line), [])
        if [(row.seed, row.n) for row in half] == [(row.seed, row.n) for row in rows]:
            found[line] = half
    return found


def _of_half(line: Row) -> Row:
    return line._replace(metric=line.metric + HALF_WIDTH)


def _values(rows: Iterable[Row]) -> str:
    return _once([row.value if math.isfinite(row.value) else math.nan for row in rows])


def _once(found: Sequence[float]) -> str:
    """All of them, or one where all are alike."""
    texts = [str(each) for each in found]
    return " ".join(texts[:1] if len(set(texts)) == 1 else texts)


def _rows(experiment: str, line: Mapping[str, str]) -> Iterator[Row]:
    client = line["client"]
    texts = {**line, "client": client if client == "all" else int(client)}
    seeds = line["seed"].split()
    rows = _each(line["n"], len(seeds))
    cells = {line["metric"]: line["value"]}
    if half := texts.pop(_HALF, ""):
        cells[line["metric"] + HALF_WIDTH] = half
    for metric, cell in cells.items():
        for seed, value, n in zip(seeds, _each(cell, len(seeds)), rows, strict=True):
            numbers = {"seed": int(seed), "value": float(value), "n": int(n)}
            yield Row(experiment, **texts | {"metric": metric} | numbers)


def _each(cell: str, count: int) -> list[str]:
    found = cell.split()
    return found * count if len(found) == 1 else found

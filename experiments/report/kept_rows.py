"""The table of a kept result: a line for each metric, its seeds beside one another.

A line has the texts of a `Row`; its seeds stand with spaces between them, as `0 1 2`, and in
their order the values and the numbers of rows that these were measured on, once where all
are alike. A value that is not finite is `nan`. Texts that are the same in every line are
left to the manifest.
"""

import csv
import io
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from fljax.results import Row

_COLUMNS = tuple(name for name in Row._fields if name != "experiment")


def written(rows: Iterable[Row], alike: Collection[str]) -> str:
    """Rows of one program as a table, without the columns that are `alike`."""
    lines: dict[Row, list[Row]] = {}
    for row in rows:
        lines.setdefault(row._replace(seed=0, value=0.0, n=0), []).append(row)
    columns = [name for name in _COLUMNS if name not in alike]
    file = io.StringIO()
    table = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    for line, found in lines.items():
        values = [row.value if math.isfinite(row.value) else math.nan for row in found]
        table.writerow(
            line._asdict()
            | {
                "seed": " ".join(str(row.seed) for row in found),
                "value": _once(values),
                "n": _once([row.n for row in found]),
            }
        )
    return file.getvalue()


def read(text: str, experiment: str, alike: Mapping[str, str]) -> list[Row]:
    """The rows of a table that was `written`, those of a line after one another."""
    lines = csv.DictReader(io.StringIO(text))
    return [row for line in lines for row in _rows(experiment, {**alike, **line})]


def _once(found: Sequence[float]) -> str:
    """All of them, or one where all are alike."""
    texts = [str(each) for each in found]
    return " ".join(texts[:1] if len(set(texts)) == 1 else texts)


def _rows(experiment: str, line: Mapping[str, str]) -> Iterator[Row]:
    client = line["client"]
    texts = {**line, "client": client if client == "all" else int(client)}
    seeds = line["seed"].split()
    values, rows = (_each(line[name], len(seeds)) for name in ("value", "n"))
    for seed, value, n in zip(seeds, values, rows, strict=True):
        numbers = {"seed": int(seed), "value": float(value), "n": int(n)}
        yield Row(experiment, **texts | numbers)


def _each(cell: str, count: int) -> list[str]:
    found = cell.split()
    return found * count if len(found) == 1 else found

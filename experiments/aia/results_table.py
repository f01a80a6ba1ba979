"""The table of a run's results on a screen, beside references and paper."""

import types
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from experiments.aia import published
from experiments.report import cards, reproduction, tables
from fljax import verdicts
from fljax.driver import screen_tables
from fljax.results import Row

# Name of a reference -> its column.
_REFERENCES = {
    verdicts.MAJORITY: "major-\nity",
    verdicts.IMPUTATION: "impu-\ntation",
    verdicts.STRANGERS: "stran-\ngers",
}


def of_results(
    rows: Sequence[Row],
    paper_table: str | None,
    flags: Mapping[str, Any] = types.MappingProxyType({}),
) -> list[Table]:
    """Means over clients and seeds beside references and paper; one table per point.

    Curves and diagnostics stay in `rows.jsonl`; Proposition 1's bound and the most that
    any adversary can have, where there are such, stand beside the accuracies that they
    bound, and the score of a reconstruction
    that the messages of some client do not determine says so. Published numbers of
    other data, another model or another defense are not shown.

    Args:
      rows: of one run.
      paper_table: as `published.check_table`.
      flags: what the run was told.
    """
    if not rows:
        return []
    found = cards.card(
        "", rows, {}, published.reference(paper_table, rows[0].data, flags)
    )
    labels = list(dict.fromkeys(row.point for row in rows))
    first = {row.point: row for row in reversed(rows)}
    return [
        _of_point(first[p], [each for each in found.judged if each.line.row.point == p])
        for p in labels
    ]


def _of_point(first: Row, judged: Sequence[cards.Judged]) -> Table:
    """Narrow enough for a terminal of 120 characters."""
    bounded = any(each.line.bound is not None for each in judged)
    capped = any(each.line.ceiling is not None for each in judged)
    title = " ".join(filter(None, [first.data, first.model, first.point]))
    seeds = max((each.line.estimate.repetitions for each in judged), default=0)
    rows = max((each.line.row.n for each in judged), default=0)
    over = f"{seeds} seed{'s' * (seeds != 1)}, {rows} rows"
    table = screen_tables.empty(f"{first.experiment}: {title}, {over}")
    screen_tables.add_texts(table, "attack")
    table.add_column("setting", overflow="fold", min_width=8)
    table.add_column("metric", overflow="fold", min_width=len("optimum distance"))
    screen_tables.add_numbers(table, "mean [95 % interval]", *_REFERENCES.values())
    more = [*(["bound"] if bounded else []), *(["at\nmost"] if capped else [])]
    compared = any(_published(each) for each in judged)
    screen_tables.add_numbers(table, *more, *(["paper"] if compared else []))
    for each in judged:
        line, row = each.line, each.line.row
        cells = [
            "" if row.attack == "none" else row.attack, row.setting, line.metric,
            screen_tables.interval(line.shown, ".2f"),
            *(tables.number(line.references.get(name)) for name in _REFERENCES),
        ]  # fmt: skip
        bound = [tables.number(line.bound)] if bounded else []
        most = [tables.number(line.ceiling)] if capped else []
        table.add_row(*cells, *bound, *most, *([_published(each)] if compared else []))
    return table


def _published(judged: cards.Judged) -> str:
    """The paper's number, where there is one to compare with."""
    known = judged.number is not None
    comparable = known and judged.verdict.kind != reproduction.NOT_COMPARABLE
    return str(judged.number) if comparable else ""

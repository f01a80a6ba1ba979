"""Results whose numbers stand beside one another: a line per case, a column per metric.

Beside the column of a metric stands the paper's, if it prints one; what is not comparable
is in brackets. The verdicts stand with every number that was printed, on top of a page.
"""

from collections.abc import Sequence

from experiments.report import lines, reproduction
from experiments.report.cards import Judged
from experiments.report.documents import writing

_PAPER = ", paper"
_SIZE = "seeds x rows"
_APART = (
    "In brackets is what the paper prints of other data, or of another end of a search."
)


def text(judged: Sequence[Judged]) -> str:
    """A table of what was measured under each defense by each attack."""
    metrics = list(dict.fromkeys(each.line.metric for each in judged))
    cases: dict[tuple[str, ...], dict[str, str]] = {}
    for each in judged:
        row = each.line.row
        case = row.attack, row.setting, row.point, row.model, row.defense
        cells = cases.setdefault(case, {})
        cells[each.line.metric] = lines.interval(each.line.shown)
        cells[each.line.metric + _PAPER] = _printed(each)
        cells[_SIZE] = f"{each.line.estimate.repetitions} x {row.n}"
    told = zip(*cases, strict=True)  # what is the same in all cases is not
    varies = [len(set(column)) > 1 for column in told]
    names = ["attack", "setting", "point", "model", "defense"]
    columns = [m + part for m in metrics for part in ("", _PAPER)] + [_SIZE]
    header = [name for name, kept in zip(names, varies, strict=True) if kept]
    body = [
        [
            *(part for part, kept in zip(case, varies, strict=True) if kept),
            *(cells.get(name, "") for name in columns),
        ]
        for case, cells in cases.items()
    ]
    table = writing.table([*header, *columns], body, columns)
    shown = [writing.folded(table, "attacks and defenses")]
    if any(_is_apart(each) for each in judged):
        shown.append(_APART)
    return "\n\n".join(shown)


def _is_apart(each: Judged) -> bool:
    return each.verdict.kind == reproduction.NOT_COMPARABLE


def _printed(each: Judged) -> str:
    if each.number is None:
        return ""
    return f"({each.number})" if _is_apart(each) else str(each.number)

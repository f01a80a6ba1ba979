"""Public columns that are made of the sensitive one, by the look of them.

A file with both dummies of one column, `smoker_yes` beside `smoker_no`, has the answer
among what is public: every guess is right without any message, and nothing can be shown
to leak.
"""

from collections.abc import Sequence

from fljax.data.table import Table

_ROWS = 5  # of each value, at least on average: a column of names tells everything, too


def telling(table: Table) -> list[str]:
    """Public columns each of whose values stands beside one sensitive value alone."""
    concealed = table.frame[list(table.concealed)]
    codes = concealed.groupby(list(table.concealed), sort=False).ngroup()
    if codes.nunique() < 2:
        return []
    found = []
    for name in table.kinds:
        if name in table.concealed:
            continue
        beside = codes.groupby(table.frame[name])
        if len(beside) * _ROWS <= len(codes) and (beside.nunique() == 1).all():
            found.append(name)
    return found


def notes(table: Table) -> list[str]:
    """What to say of them; nothing where there are none."""
    return [_note(name, table.concealed) for name in telling(table)]


def _note(name: str, sensitive: Sequence[str]) -> str:
    return (
        f"{name}: tells {' and '.join(sensitive)} by itself in every row of the file; as "
        "long as it is public, there is nothing left to leak. If it is made of it, as one "
        "dummy is of another, give the one column of texts that both are made of "
        "(--binary_text, --input_order)."
    )

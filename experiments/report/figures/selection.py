"""Which rows mean what: totals, rounds, active rounds, points of a sweep.

Rows may come from a file that anyone wrote, so nothing is assumed about their texts.
"""

import math
from collections.abc import Collection, Sequence

from fljax import fit, verdicts
from fljax.results import Row, Summary, summarise

ACCURACY, ERROR = verdicts.ACCURACY.metric, verdicts.ERROR.metric
LOSSES = ("test_loss", "train_loss")
EXPLAINED = (f"train_{fit.METRIC}", f"test_{fit.METRIC}")
RIGHT = (f"train_{fit.RIGHT}", f"test_{fit.RIGHT}")
STRANGERS = f"_{verdicts.STRANGERS}"  # end of the names of attacks on them
_CURVE = "rows_"  # settings of imputation from fewer rows
_UNLIKE = 1.5  # sizes, the largest over the smallest


def totals(rows: Sequence[Row]) -> list[Row]:
    """Rows over all clients; every row where a run has none, as of a single client."""
    return [row for row in rows if row.client == "all"] or list(rows)


def is_total(s: Summary, metric: str) -> bool:
    """Whether it is this metric, over all clients, and to be drawn."""
    return s.row.client == "all" and s.row.metric == metric and is_drawn(s.row)


def is_of_strangers(row: Row) -> bool:
    """Whether an attack was run on rows that never met the messages."""
    return row.attack.endswith(STRANGERS)


def is_drawn(row: Row) -> bool:
    """Whether a figure has room: no strangers, no imputation from fewer rows."""
    return not is_of_strangers(row) and not row.setting.startswith(_CURVE)


def are_unlike(sizes: Collection[int]) -> bool:
    """Whether clients' numbers of rows are so unlike that they are worth a look."""
    return bool(sizes) and max(sizes) >= _UNLIKE * min(sizes)


def round_number(row: Row) -> int | None:
    """`t` of the setting `round_t`, None for another setting."""
    return _counted(row.setting, "round_")


def active_rounds(row: Row) -> int | None:
    """`k` of the setting `active_k`, 0 if it is `passive`, None for another."""
    return 0 if row.setting == "passive" else _counted(row.setting, "active_")


def swept(row: Row) -> tuple[str, str] | None:
    """Name and value of the point `name=value`, None for another label."""
    name, equals, value = row.point.partition("=")
    return (name, value) if equals and name else None


def defense_label(defense: str, point: str) -> str:
    """A defense, and what was swept where that is something else."""
    name, equals, value = point.partition("=")
    return f"{defense} {name}={value}" if equals and value != defense else defense


def places(values: Collection[str]) -> tuple[dict[str, float], bool]:
    """Where values stand on an axis, and whether they stand there as numbers.

    If one is no finite number all stand side by side, in the given order.
    """
    try:
        numbers = {value: float(value) for value in values}
    except ValueError:
        numbers = {}
    if numbers and all(abs(number) < 1e300 for number in numbers.values()):
        return numbers, True
    return {value: float(index) for index, value in enumerate(values)}, False


def last_losses(rows: Sequence[Row], metric: str) -> list[Summary]:
    """One loss in the last recorded round of every defense, model and point."""
    found: dict[tuple[str, str, str], tuple[int, Summary]] = {}
    for s in summarise([row for row in rows if row.metric == metric]):
        number = round_number(s.row)
        key = s.row.defense, s.row.model, s.row.point
        if number is not None and number >= found.get(key, (-1,))[0]:
            found[key] = number, s
    return [s for _, s in found.values()]


def utility(rows: Sequence[Row]) -> dict[tuple[str, str], Summary]:
    """`(defense, point)` -> last test loss; the training loss where there is none."""
    found: dict[tuple[str, str], Summary] = {}
    for metric in LOSSES:
        for s in last_losses(rows, metric):
            if math.isfinite(s.estimate.mean):
                found.setdefault((s.row.defense, s.row.point), s)
    return found


def explained(rows: Sequence[Row]) -> dict[tuple[str, str], dict[str, float]]:
    """`(defense, point)` -> `EXPLAINED`, `RIGHT` of classes -> percent."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for s in summarise([row for row in rows if row.metric in EXPLAINED + RIGHT]):
        at = s.row.defense, s.row.point
        found.setdefault(at, {})[s.row.metric] = s.estimate.mean
    return found


def _counted(setting: str, prefix: str) -> int | None:
    number = setting.removeprefix(prefix)
    known = number != setting and number.isascii() and number.isdecimal()
    return int(number) if known and len(number) < 10 else None

"""Where an attack stops being better than the last model, as less is known of the rows.

And than imputation, without which it shows no leak: from exact columns, and from what is
known of them. Each point is compared by itself, at 95 %: corrected for their number, three
seeds would show nothing.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from experiments.report.figures import selection
from fljax import attack_names, metrics, verdicts
from fljax.metrics import Estimate
from fljax.results import Row

MODEL = "model"
_SETTINGS = "passive", "baseline"
AS_KNOWN = f"{verdicts.IMPUTATION}, as known"  # from what is known of the rows
_SWEPT = ("knowledge_", "trajectory_scale_error")  # how their flags begin


class Point(NamedTuple):
    """One point of a sweep over what an adversary knows.

    Attributes:
      name: of the flag.
      value: of it.
      accuracy: attack or baseline -> percent, over the seeds.
      better: attacks that are right for more rows than `model`, by more than chance.
      beyond: likewise than imputation; None where that was not run.
      beyond_known: likewise than imputation from what is known of the rows.
    """

    name: str
    value: str
    accuracy: dict[str, Estimate]
    better: tuple[str, ...]
    beyond: tuple[str, ...] | None
    beyond_known: tuple[str, ...] | None


def points(rows: Sequence[Row]) -> list[Point]:
    """In order of appearance; those that the last model was attacked in."""
    found: dict[tuple[str, str], dict[str, dict[int, Row]]] = {}
    for row in rows:
        at = selection.swept(row)
        if at is None or not at[0].startswith(_SWEPT):
            continue
        name = row.attack if row.setting in _SETTINGS else None
        if (row.attack, row.setting) == (verdicts.IMPUTATION, verdicts.AS_KNOWN):
            name = AS_KNOWN
        if name and (row.metric, row.client) == (selection.ACCURACY, "all"):
            of_attack = found.setdefault(at, {}).setdefault(name, {})
            of_attack[row.seed] = row
    return [
        Point(
            *at,
            {attack: _estimate(each) for attack, each in measured.items()},
            _better(measured, MODEL),
            *(
                _better(measured, than) if than in measured else None
                for than in (verdicts.IMPUTATION, AS_KNOWN)
            ),
        )
        for at, measured in found.items()
        if MODEL in measured
    ]


def sentences(rows: Sequence[Row]) -> Iterator[str]:
    """One for each flag and each attack that is ever better than the last model."""
    found = points(rows)
    for name in dict.fromkeys(point.name for point in found):
        own = [point for point in found if point.name == name]
        for attack in dict.fromkeys(a for point in own for a in point.better):
            above = [p.value for p in own if attack in p.better]
            rest = [
                p.value for p in own if attack in p.accuracy and p.value not in above
            ]
            ends = f"; it is not shown to with {', '.join(rest)}" if rest else ""
            yield (
                f"{attack} reads more than the last model that was returned with {name} "
                f"{', '.join(above)}{ends}.{_beyond(attack, own)}"
            )


def _beyond(attack: str, own: Sequence[Point]) -> str:
    """Where it reads more than imputation, and so may be a leak."""
    own = [point for point in own if attack in point.accuracy]
    exact = _where(attack, {p.value: p.beyond for p in own})
    known = _where(attack, {p.value: p.beyond_known for p in own})
    more = f"; from the columns as they are known {known}" if known else ""
    return f" More than imputation from exact columns {exact}{more}." if exact else ""


def _where(attack: str, beyond: dict[str, tuple[str, ...] | None]) -> str:
    """At which values it is among those beyond; empty if nobody looked."""
    looked = {
        value: attacks for value, attacks in beyond.items() if attacks is not None
    }
    values = [value for value, attacks in looked.items() if attack in attacks]
    if looked and len(values) == len(looked):
        return "with all of these"
    if not looked:
        return ""
    return f"with {', '.join(values)} only" if values else "with none of these"


def _better(measured: dict[str, dict[int, Row]], than: str) -> tuple[str, ...]:
    """Attacks that are above another."""
    return tuple(
        attack
        for attack, each in measured.items()
        if _is_attack(each) and _above(each, measured[than])
    )


def _is_attack(each: dict[int, Row]) -> bool:
    row = next(iter(each.values()))
    return attack_names.is_judged(row.attack, row.setting)


def _estimate(each: dict[int, Row]) -> Estimate:
    found = metrics.interval([row.value for row in each.values()])
    if len(each) == 1:
        (row,) = each.values()
        low, high = metrics.of_rows(row.value, row.n)
        found = found._replace(low=low, high=high)
    return found


def _above(ours: dict[int, Row], theirs: dict[int, Row]) -> bool:
    """By the interval of the gain over seeds; of a single one by both intervals."""
    seeds = sorted(ours.keys() & theirs.keys())
    if len(seeds) > 1:
        gains = [ours[seed].value - theirs[seed].value for seed in seeds]
        return metrics.interval(gains).low > 0
    if not seeds:
        return False
    low, high = _estimate(ours).low, _estimate(theirs).high
    return low > high

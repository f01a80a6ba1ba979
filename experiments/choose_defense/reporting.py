"""What is said of a grid: a table, a recommendation, and what both rest on."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from experiments.choose_defense.rule import POINTS, RULE, Candidate, Choice, Wishes
from fljax.driver import screen_tables
from fljax.metrics import Estimate
from fljax.results import Row

_TUNING = (
    "tuned: epsilon that charges every clip that was tried with the same noise, once; "
    "trainings of further seeds, and which epsilon of the grid is taken, are not charged: "
    "the attacks' scores need the truth, so choose on data that stand for the clients' own"
)
_FEW = 100  # held-out rows
_MUCH = 0.5  # of what the model explains without a defense
_LARGE = 10  # an epsilon above which little is promised
_WIDE = 5.0  # points that an attack may have for all that is shown
_TWO = 2  # seeds, whose interval hardly ever ends above 0
_OF_CLIENT = {"record": "", "client": " of a client"}


def tables(
    found: Sequence[Candidate],
    choice: Choice,
    wishes: Wishes,
    failed: Mapping[str, str],
    seeds: int,
    proven: Sequence[Row] = (),
) -> list[Table | Text]:
    """For the screen; `proven` are lower bounds of epsilon, if there are any."""
    least = {row.defense: row.value for row in proven if row.setting == "messages"}
    table = screen_tables.empty(
        f"smallest epsilon first; attacks: {_gained(found)} what sees no message"
    )
    table.add_column("defense")
    screen_tables.add_numbers(
        table, "epsilon", "tuned", *(["audited"] if least else []), "expl. %",
        "strongest attack", "anyone",
    )  # fmt: skip
    table.add_column("verdict")
    for each in sorted(found, key=lambda c: c.epsilon):
        table.add_row(
            Text(each.defense),
            number(each.epsilon, ".3g") + _OF_CLIENT[each.unit],
            number(each.tuned, ".3g"),
            *([number(least.get(each.defense, math.nan), ".2f")] if least else []),
            number(each.utility.mean, ".1f"),
            _gain(each),
            number(each.most, ".1f"),
            choice.why_not.get(each.defense, "RECOMMENDED"),
        )
    about = [recommendation(found, choice, wishes, seeds), f"rule: {RULE}", _TUNING]
    said = [*(f"{name}: {why}" for name, why in failed.items()), *about]
    return [table, *map(Text, said)]


def audited(rows: Sequence[Row]) -> list[Text]:
    """Lower bounds of each audited defense's epsilon, in a line."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.defense, []).append(row)
    return [Text(_proven(defense, own)) for defense, own in found.items()]


def _proven(defense: str, rows: Sequence[Row]) -> str:
    each = ", ".join(f"{row.value:.3g} by {row.setting}" for row in rows)
    about = f"of {rows[0].n} trainings with and without a gradient canary"
    return f"{defense}: audited epsilon, at least (95 %), {about}: {each}"


def recommendation(
    found: Sequence[Candidate], choice: Choice, wishes: Wishes, seeds: int
) -> str:
    """In words, with its numbers."""
    bare = next((each for each in found if each.defense == "none"), None)
    asked = "" if wishes.most is None else f" and --most_beyond={wishes.most:g}"
    under = f"(--tolerance={wishes.tolerance:g}{asked}, {seeds} seed{'s'[: seeds > 1]})"
    if choice.chosen is None:
        return f"Recommended: none of this grid {under}. See why in the last column."
    each = choice.chosen
    against = "" if bare is None else f" (without a defense {bare.utility.mean:.1f} %)"
    whose = _OF_CLIENT[each.unit]
    explained = f"{_interval(each.utility)} % of the variation of {_targets(each)}"
    if math.isfinite(each.right):
        explained += f", names {each.right:.1f} % of their classes"
    parts = [
        f"Recommended: {each.defense} {under}: epsilon {each.epsilon:.3g}{whose}",
        f"{each.tuned:.3g} with the choice of the clip charged",
        f"explains {explained}{against}",
    ]
    if each.attack:
        parts.append(
            f"the strongest attack, {each.attack}, has {_gain(each)} "
            f"{each.gained} {each.beyond}"
            + ("" if bare is None else f" (without a defense {_gain(bare)})")
        )
    if math.isfinite(each.most):
        parts.append(f"no adversary can have more than {each.most:.1f} points")
    units = {c.unit for c in found if math.isfinite(c.epsilon)}
    said = *_warnings(each, bare), *_unsure(each, units, seeds)
    return " ".join(["; ".join(parts) + ".", *said])


def _targets(each: Candidate) -> str:
    return (
        f"{each.held_out} held-out targets" if each.held_out else "the training targets"
    )


def _warnings(each: Candidate, bare: Candidate | None) -> Iterator[str]:
    """What speaks against the recommended one, though it is the best of the grid."""
    if each.attack and each.not_run:
        yield f"A stronger one, {each.not_run}, was not run: nothing is known of it."
    if 0 < each.held_out < _FEW:
        yield "So few held-out rows hardly tell neighbours of the grid apart."
    if bare is None:
        return
    if bare.attack and not bare.leaks:
        yield "Without a defense no attack shows a leak here, either."
    if each.utility.mean < _MUCH * bare.utility.mean:
        yield (
            "It costs more than half of what the model explains: other clips, more rounds "
            "or a larger epsilon may cost less."
        )


def _unsure(each: Candidate, units: Collection[str], seeds: int) -> Iterator[str]:
    """What the rule takes as it is, and a reader should not."""
    high = each.gain.high
    if seeds == _TWO:
        yield (
            "Two seeds can hardly show a leak, with or without a defense: expected three "
            "or more, or one, which is judged by its rows."
        )
    elif high >= _WIDE or (high > 0 and each.gained != POINTS):
        yield (
            f"Not shown is not safe: the interval reaches {high:{_form(each)}}; seeds "
            "narrow it."
        )
    elif not math.isfinite(high):
        yield "That gain has no interval: nothing is known of its chance."
    if each.epsilon > _LARGE:
        yield (
            f"An epsilon above {_LARGE} promises little: that the attacks which were run "
            "fail is all there is."
        )
    if len(units) > 1:
        yield (
            "The grid has epsilons of a record and of a client, which promises more: try "
            "them apart, for the rule compares the numbers alone."
        )


def _form(each: Candidate) -> str:
    """Of a gain: points, or an error in the column's own unit."""
    return ".1f" if each.gained == POINTS else ".3g"


def _gain(each: Candidate) -> str:
    return _interval(each.gain, _form(each))


def _gained(found: Sequence[Candidate]) -> str:
    return next((each.gained for each in found if each.attack), POINTS)


def manifest(
    found: Sequence[Candidate],
    choice: Choice,
    wishes: Wishes,
    failed: Mapping[str, str],
    seeds: int,
) -> dict[str, Any]:
    """The same for programs."""
    return {
        "recommended": None if choice.chosen is None else choice.chosen.defense,
        "recommendation": recommendation(found, choice, wishes, seeds),
        "why_not": choice.why_not,
        "diverged": dict(failed),
        "rule": RULE,
        "tuning": _TUNING,
    }


def number(value: float, form: str) -> str:
    """Empty for what is infinite or not known."""
    return f"{value:{form}}" if math.isfinite(value) else ""


def _interval(e: Estimate, form: str = ".1f") -> str:
    return screen_tables.interval(e, form) if math.isfinite(e.mean) else ""

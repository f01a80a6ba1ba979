"""In short, of experiments whose numbers have no baseline to gain over."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from experiments.report import facts
from experiments.report import lines as lines_lib
from experiments.report.cards import Card
from fljax.metrics import Estimate
from fljax.results import Row, summarise

_SUCCESS, _ACCURACY, _EPSILON = "attack_success", "accuracy_percent", "epsilon"
_DRAWN = "the noise that is drawn"
_BARE = "non_private"
_MOST = 6


def sentences(experiment: str, cards: Sequence[Card]) -> list[str]:
    """Of runs of one experiment with the same data and model."""
    say = {
        "gradient_leakage": _rebuilt,
        "fed_cdp": _trained,
        "accounting": _promised,
        "audit": _audited,
    }.get(experiment)
    return say(cards) if say else []


def _rows(cards: Sequence[Card]) -> list[Row]:
    return [row for card in cards for row in card.rows]


def _rebuilt(cards: Sequence[Card]) -> list[str]:
    """How many clients' images an attack rebuilt, by what was seen and method."""
    counts: dict[str, dict[str, list[float]]] = {}
    for row in _rows(cards):
        if row.metric == _SUCCESS and row.client != "all" and not row.point:
            found = counts.setdefault(row.setting, {}).setdefault(row.attack, [])
            found.append(row.value)
    said = []
    for setting, methods in _first(counts.items()):
        shown = ", ".join(
            f"{method} {sum(v > 0 for v in values)} of {len(values)}"
            for method, values in _first(methods.items())
        )
        types = setting.partition("=")[2].replace("_", ", ")
        said.append(f"type {types}: {shown}" if types else shown)
    if not said:
        return []
    least = min(len(v) for methods in counts.values() for v in methods.values())
    bound = 100 * (1 - 0.025 ** (1 / least))
    seeds = len({row.seed for row in _rows(cards)})
    shown = f"Clients whose images an attack rebuilt ({_BARE}: without a defense)"
    still = f"None of {least} still allows for {bound:.0f} % (95 %)"
    over = "One seed" if seeds == 1 else f"{seeds} seeds"
    return [
        f"{shown}: {'; '.join(said)}.",
        f"{still}, so a difference of few clients is no result.",
        f"{over}. Not measured: better attacks, and what a defense costs in accuracy.",
    ]


def _trained(cards: Sequence[Card]) -> list[str]:
    """What each method costs in accuracy, against training without a defense."""
    found: dict[str, Estimate] = {}
    epsilons: dict[str, float] = {}
    for s in summarise(_rows(cards)):
        name = " ".join(filter(None, [s.row.attack, s.row.point]))
        if s.row.attack == s.row.defense and s.row.metric == _ACCURACY:
            found[name] = s.shown
        elif s.row.metric == _EPSILON and s.row.setting == _DRAWN:
            epsilons[name] = s.estimate.mean
    bare = next((e for name, e in found.items() if name.startswith(_BARE)), None)
    if not found:
        return []
    shown = []
    for name, e in _first(found.items()):
        told = epsilons.get(name, math.nan)
        promise = f", epsilon {told:.3g}" if math.isfinite(told) else ""
        compared = "" if e is bare else _against(e, bare)
        shown.append(f"{name} {lines_lib.interval(e)} %{promise}{compared}")
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    seeds = min(e.repetitions for e in found.values())
    alone = " One seed: no interval and no claim." if seeds == 1 else ""
    return [
        f"Accuracy on test rows: {'; '.join(shown)}{more}.{alone}",
        "Epsilon is that of the noise that is drawn. Not measured: any attack.",
    ]


def _against(e: Estimate, bare: Estimate | None) -> str:
    if bare is None or not math.isfinite(e.high - e.low + bare.high - bare.low):
        return ""
    if e.high < bare.low:
        return f" (less than without a defense by {bare.mean - e.mean:.1f} points)"
    if e.low > bare.high:
        return f" (more than without a defense by {e.mean - bare.mean:.1f} points)"
    return " (not clearly less than without a defense)"


def _promised(cards: Sequence[Card]) -> list[str]:
    """Epsilons as printed, of what is done, and of what is recommended."""
    ways: dict[str, list[float]] = {}
    for row in _rows(cards):
        if row.metric == _EPSILON:
            ways.setdefault(row.setting, []).append(row.value)
    said = [f"{way} {_span(values)}" for way, values in ways.items()]
    if not said:
        return []
    none = "Nothing was trained and no attack was run"
    return [
        f"Epsilon over all cases: {'; '.join(said)}.",
        f"{none}: these are promises under the assumptions that the card states.",
    ]


def _span(values: Sequence[float]) -> str:
    known = sorted(value for value in values if math.isfinite(value))
    without = len(values) - len(known)
    also = f" ({without} without a finite number)" if without else ""
    if not known:
        return f"no finite number in {without} cases"
    low, high = f"{known[0]:.3g}", f"{known[-1]:.3g}"
    return (low if low == high else f"{low} to {high}") + also


def _audited(cards: Sequence[Card]) -> list[str]:
    """The verdicts that the audit itself gave."""
    said = []
    for card in cards:
        verdicts = facts.mapping(card.manifest.get("verdicts"))
        leaks = [facts.text(n) for n, v in verdicts.items() if _begins(v, "leaks")]
        ran = [v for v in verdicts.values() if not _begins(v, "not applicable")]
        if ran:
            names = f": {', '.join(leaks[:_MOST])}" if leaks else ""
            run = f"In run {card.name}, " if len(cards) > 1 else ""
            shown = f"{len(leaks)} of {len(ran)} attacks show a leak"
            said.append(f"{run}{shown}{names}.")
    return [*said, "No leak shown is no proof that there is none."] if said else []


def _begins(value: Any, word: str) -> bool:
    return isinstance(value, str) and value.startswith(word)


def _first(items: Iterable[Any]) -> list[Any]:
    return list(items)[:_MOST]

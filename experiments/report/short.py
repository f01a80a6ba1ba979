"""A report in short: a few sentences in plain language, made from the rows by a rule."""

import itertools
import math
from collections.abc import Iterable, Sequence

from experiments.report import facts, gains, outcomes
from experiments.report import lines as lines_lib
from experiments.report.cards import Card
from experiments.report.document import Block, Bullets, Details, Heading
from experiments.report.gains import Case, Score

_MOST = 3  # names in a sentence
_RULE = (
    (
        "A leak",
        (
            "an attack's 95 % interval lies on the leaking side of its baseline's; the "
            "tables of defenses ask less, namely of the baseline's mean"
        ),
    ),
    ("Leaks most", "its interval overlaps that of no other attack"),
    (
        "Stopped",
        (
            "even the end of the interval that leaks most gains less than one point "
            "(0.01 of a distance, nothing of an error) over the baseline's mean"
        ),
    ),
    ("Gain", "distance from the baseline's mean, with the attack's interval"),
    (
        "Not clear",
        "everything else; of a single seed without an interval nothing is claimed",
    ),
    (
        "Left out",
        (
            "baselines, controls, and what knows more than an adversary. Runs with the "
            "same data, model and inferred column are read together, also where other "
            "flags differ"
        ),
    ),
)


def blocks(cards: Sequence[Card]) -> list[Block]:
    """Heading, an item per subject of the runs, and the rule; nothing without items."""
    groups: dict[tuple[str, str], list[Card]] = {}
    for card in cards:
        for row in card.rows:
            promised = row.experiment == "accounting"  # of no data in particular
            about = "" if promised else facts.subject(card, row)
            of = groups.setdefault((row.experiment, about), [])
            if not any(each is card for each in of):
                of.append(card)
    items = []
    for (experiment, about), some in groups.items():
        own = [_part(card, about) for card in some]
        said = " ".join(_sentences(experiment, own))
        if said:
            items.append((about, said))
    if not items:
        return []
    rule = Details("How these sentences are made", [Bullets(_RULE)])
    return [Heading(2, "In short", "short"), Bullets(items), rule]


def _part(card: Card, about: str) -> Card:
    if not about:
        return card
    rows = [row for row in card.rows if facts.subject(card, row) == about]
    return card._replace(rows=rows)


def _sentences(experiment: str, cards: Sequence[Card]) -> Iterable[str]:
    if experiment in gains.MEASURES:
        return _of_attacks(experiment, [c for card in cards for c in gains.cases(card)])
    return outcomes.sentences(experiment, cards)


def _of_attacks(experiment: str, cases: Sequence[Case]) -> Iterable[str]:
    bare = [case for case in cases if not case.defended]
    defended = [case for case in cases if case.defended]
    scored = [(case, score) for case in bare or cases for score in case.scores]
    if not scored:
        return ["No attack with a baseline was run."]
    several = len({case.run for case in cases}) > 1
    said = [] if bare else ["All of it was measured under a defense."]
    top = _top(scored)
    where = "Without a defense" if bare else f"Under {top[0].label}"
    said += _strongest(where, scored, top, several)
    if bare and top[1].outcome == gains.LEAKS and defended:
        said += _defenses(top, defended, several)
    if missing := _missing(experiment, scored, defended):
        said.append(f"Not measured: {', '.join(missing)}.")
    return said


def _top(scored: Sequence[tuple[Case, Score]]) -> tuple[Case, Score]:
    """The largest gain, of those that leak where some do."""
    leaking = [each for each in scored if each[1].outcome == gains.LEAKS]
    return max(leaking or scored, key=lambda each: each[1].gain)


def _strongest(
    where: str, scored: Sequence[tuple[Case, Score]], top, several: bool
) -> list[str]:
    case, score = top
    at = _at(case, several)
    shown = f"{score.name}{at}: {_value(score)}, {_gain(score)}"
    seeds = score.estimate.repetitions
    if score.outcome == gains.ALONE:
        claim = "One seed and so no interval: nothing is claimed."
        return [claim, f"{where}, the largest gain is that of {shown}."]
    over = f"mean over {seeds} seeds" if seeds > 1 else "one seed, over its clients"
    kinds = {score.outcome for _, score in scored}
    if score.outcome != gains.LEAKS:
        none = "no attack gains" if kinds == {gains.NO_GAIN} else "no leak is clear"
        return [f"{where}, {none}. The largest gain is that of {shown} ({over})."]
    said = [f"{where}, this training leaks to {shown} ({over})."]
    others = [each for each in scored if each[1] is not score]
    rivals = [each for each in others if score.overlaps(each[1])]
    if rivals:
        names = _names(f"{s.name}{_at(c, several)}" for c, s in rivals)
        said.append(
            f"Whether it is the attack that leaks most is not settled: its interval "
            f"overlaps that of {names}."
        )
    elif others:
        said.append("No other attack that was run leaks as much.")
    rest = [(c, s) for c, s in others if s.outcome != gains.LEAKS]
    if rest:
        names = _names(f"{s.name}{_at(c, several)}" for c, s in rest)
        said.append(f"No clear leak to {names}.")
    return said


def _defenses(top: tuple[Case, Score], cases: Sequence[Case], several: bool) -> list:
    """Which stop the strongest attack, at what cost and with what promise."""
    bare, score = top
    found: dict[str, list[Case]] = {}
    for case in cases:
        for each in case.scores:
            if each.name == score.name and each.measure == score.measure:
                found.setdefault(each.outcome, []).append(case)
    total = sum(map(len, found.values()))
    if not total:
        return [f"No defense was measured against {score.name}."]
    stopped = sorted(found.get(gains.NO_GAIN, []), key=lambda case: case.loss)
    shown = _names(_cost(case, bare, several) for case in stopped)
    which = f"{len(stopped)} of {total}" if stopped else f"None of {total}"
    plural = "s" if total > 1 else ""
    said = f"{which} defense{plural} measured against it stop{'s' * (len(stopped) <= 1)} it"
    parts = [f"{said}: {shown}" if stopped else said]
    for kind, words in (
        (gains.LEAKS, "it still leaks"),
        (gains.UNCLEAR, "it is not clear"),
    ):
        if kind in found:
            names = _names(_label(case, several) for case in found[kind])
            parts.append(f"{words} under {names}")
    if gains.ALONE in found:
        parts.append("those of a single seed are not judged")
    return ["; ".join(parts) + "."]


def _cost(case: Case, bare: Case, several: bool) -> str:
    parts = [case.epsilon or "no epsilon"]
    if math.isfinite(case.loss):
        parts.append(f"loss {case.loss:.3g}")
        if case.run == bare.run and bare.loss > 0:
            parts[-1] += f", {case.loss / bare.loss:.2f} times that without"
    else:
        parts.append("its cost was not measured")
    return f"{_label(case, several)} ({', '.join(parts)})"


def _missing(experiment: str, scored, defended: Sequence[Case]) -> list[str]:
    names = {score.name for _, score in scored}
    missing = [] if defended else ["any defense"]
    if experiment == "aia":
        wanted = {
            "the gradient-based attack": "grad",
            "trajectory matching": "trajectory",
        }
        missing += [
            words
            for words, attack in wanted.items()
            if not any(name.split(" ")[0] == attack for name in names)
        ]
        if not any("(active_" in name for name in names):
            missing.append("an active server")
    return [*missing, "attacks that this project does not have"]


def _at(case: Case, several: bool) -> str:
    swept = case.point if not case.point.startswith("defense") else ""
    parts = [swept, f"run {case.run}" if several else ""]
    return "".join(f", {part}" for part in parts if part)


def _label(case: Case, several: bool) -> str:
    return f"{case.label}, run {case.run}" if several else case.label


def _value(score: Score) -> str:
    return f"{lines_lib.interval(score.shown)} {score.measure.words}"


def _gain(score: Score) -> str:
    low, high = score.gain_interval
    shown = lines_lib.interval(
        score.estimate._replace(mean=score.gain, low=low, high=high)
    )
    words = "more than" if score.measure.unit == "points" else "than"
    return f"{shown} {score.measure.unit} {words} {score.measure.base_words}"


def _names(names: Iterable[str]) -> str:
    """A few of them and how many more."""
    unique = list(dict.fromkeys(names))
    shown = list(itertools.islice(unique, _MOST))
    more = len(unique) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")

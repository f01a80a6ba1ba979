"""A few sentences for each subject of a report, made from the rows by a rule."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

from experiments.report import facts, gains
from experiments.report import lines as lines_lib
from experiments.report.cards import Card
from experiments.report.gains import Case, Score
from experiments.report.programs import PROGRAMS
from fljax import verdicts

_MOST = 3  # names in a sentence
_STOPPED = "stopped"
_REFERENCES = {
    verdicts.MAJORITY: "the majority",
    verdicts.IMPUTATION: "imputation",
    "mean_distribution": "the mean distribution of the shadow clients",
    "last_returned": "the model that the client returned last",
}


def sentences(cards: Sequence[Card]) -> list[tuple[str, str]]:
    """Subject (data, model, inferred column) and what there is to say of it."""
    groups: dict[tuple[str, str], list[Card]] = {}
    for card in cards:
        for row in card.rows:
            # An account is of no data in particular.
            about = "" if row.experiment == "accounting" else facts.subject(card, row)
            of = groups.setdefault((row.experiment, about), [])
            if not any(each is card for each in of):
                of.append(card)
    found = []
    for (experiment, about), some in groups.items():
        own = [_part(card, about) for card in some]
        program = PROGRAMS.get(experiment)
        if program is not None:
            judged = program.gains and list(_of_attacks(own))
            if said := " ".join(judged or program.sentences(own)):
                found.append((about, said))
    return found


def _part(card: Card, about: str) -> Card:
    rows = [row for row in card.rows if about in ("", facts.subject(card, row))]
    return card._replace(rows=rows)


def _of_attacks(cards: Sequence[Card]) -> Iterator[str]:
    cases = [case for card in cards for case in gains.cases(card)]
    bare = [case for case in cases if not case.defended]
    defended = [case for case in cases if case.defended]
    scored = [(case, score) for case in bare or cases for score in case.scores]
    if not scored:
        yield "No attack with a baseline was run."
        return
    several = len({case.run for case in cases}) > 1
    leaks = [each for each in scored if each[1].verdict.kind == verdicts.LEAKS]
    case, score = max(leaks or scored, key=lambda each: _largest(each[1]))
    where = "Without a defense" if bare else "Under a defense in every run"
    if leaks:
        claim = f"{len(leaks)} of {len(scored)} attacks show a leak"
    else:
        claim = _no_leak([score for _, score in scored])
    name = f"{score.name}{_at(case, several)}"
    yield f"{where}, {claim}."
    if leaks:
        comma = "," * name.count(", ")  # that closes the first
        yield f"{name}{comma} leaks through messages: {_gain(score)}; {_value(score)}."
    else:
        yield f"The largest gain is that of {name}: {_gain(score)}; {_value(score)}."
    rest = sorted(leaks, key=lambda each: -_largest(each[1]))[1:]
    if rest:
        yield f"Also {_names(f'{s.name}{_at(c, several)}' for c, s in rest)}."
    if leaks and bare:
        yield _defenses(case, score, defended, several)


def _largest(score: Score) -> float:
    return score.verdict.beyond.mean


def _no_leak(scores: Sequence[Score]) -> str:
    if any(score.verdict.kind == verdicts.PREDICTABLE for score in scores):
        return "no leak is shown: the column is predictable without messages"
    if not any(score.verdict.has_interval for score in scores):
        return "nothing is claimed: one seed and no interval"
    return "no leak is shown, which is no proof that there is none"


def _defenses(bare: Case, top: Score, cases: Sequence[Case], several: bool) -> str:
    """Which stop the attack that gains most, at what cost and with what promise."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        for each in case.scores:
            if (each.name, each.gain) == (top.name, top.gain):
                kind = _STOPPED if each.is_stopped else each.verdict.kind
                found.setdefault(kind, []).append(case)
    if not found:
        return f"No defense was measured against {top.name}."
    parts = []
    if stopped := found.pop(_STOPPED, []):
        stopped.sort(key=lambda case: case.loss)
        costs = _names(_cost(case, bare, several) for case in stopped)
        parts = [f"{_STOPPED} by {costs}"]
    for kind, some in found.items():
        parts.append(f"{kind} under {_names(_label(case, several) for case in some)}")
    return f"With a defense: {'; '.join(parts)}."


def _cost(case: Case, bare: Case, several: bool) -> str:
    parts = [case.epsilon or "no epsilon"]
    if math.isfinite(case.loss):
        parts.append(f"loss {case.loss:.3g}")
        if case.run == bare.run and bare.loss > 0:
            parts.append(f"{case.loss / bare.loss:.2f} times that without")
    return f"{_label(case, several)} ({', '.join(parts)})"


def _at(case: Case, several: bool) -> str:
    swept = case.point if not case.point.startswith("defense") else ""
    parts = [swept, f"run {case.run}" if several else ""]
    return "".join(f", {part}" for part in parts if part)


def _label(case: Case, several: bool) -> str:
    return f"{case.label}, run {case.run}" if several else case.label


def _value(score: Score) -> str:
    return f"{lines_lib.interval(score.shown)} {score.gain.measure.text}"


def _gain(score: Score) -> str:
    beyond, of = score.verdict.beyond, score.gain
    units = f"{score.verdict.units} {'seeds' if score.is_by_seed else 'clients'}"
    over = f" (over {units})" if score.verdict.units > 1 else ""
    sign, words = (1, of.better) if beyond.mean >= 0 else (-1, of.worse)
    low, high = sorted((sign * beyond.low, sign * beyond.high))
    e = score.estimate._replace(mean=sign * beyond.mean, low=low, high=high)
    return f"{lines_lib.interval(e)} {words} {_REFERENCES[beyond.name]}{over}"


def _names(names: Iterable[str]) -> str:
    """A few of them and how many more."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - _MOST
    shown = "; ".join(itertools.islice(unique, _MOST))
    return shown + (f"; and {more} more" if more > 0 else "")

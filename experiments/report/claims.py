"""What is claimed of attacks, and above all what is not: sentences made by a rule."""

import itertools
import math
import shlex
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from experiments.report import cases as cases_lib
from experiments.report import correlations, curves, facts
from experiments.report import lines as lines_lib
from experiments.report.cards import Card
from experiments.report.cases import Case
from experiments.report.gains import Score
from experiments.report.programs import PROGRAMS
from fljax import fit, verdicts
from fljax.verdicts import Gain

_MOST = 3  # names in a sentence
_STOPPED = "stopped"
_REFERENCES = {
    verdicts.MAJORITY: "the majority",
    verdicts.IMPUTATION: "imputation",
    verdicts.STRANGERS: "the same attack on strangers",
    "mean_distribution": "the mean distribution of the shadow clients",
    "last_returned": "the model that the client returned last",
}


def of_attacks(cards: Sequence[Card]) -> Iterator[str]:
    """Sentences about runs with the same subject, the strongest leak first."""
    cases = [case for card in cards for case in cases_lib.of_run(card)]
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
        claim = _no_leak(scored)
    at = _at(case, several)
    name = f"{score.name}{at}"
    yield f"{where}, {claim}."
    if leaks:
        comma = "," if at else ""  # that closes the first
        yield f"{name}{comma} leaks through messages: {_gains(score)}; {_value(score, case, cards)}."
    else:
        yield f"The furthest is {name}: {_gains(score)}; {_value(score, case, cards)}."
    rest = sorted(leaks, key=lambda each: -_largest(each[1]))[1:]
    if rest:
        yield f"Also {_names(f'{s.name}{_at(c, several)}' for c, s in rest)}."
    told = {s.row.setting for _, s in leaks}
    if leaks and (quiet := [e for e in scored if e[1].row.setting not in told]):
        names = _names(f"{s.name}{_at(c, several)}" for c, s in quiet)
        yield f"No leak is shown by {names}, which is no proof that there is none."
    yield from _to_whom(cards, case, score)
    yield from _not_run(cards, [score for _, score in scored])
    if leaks and bare:
        own = next(card for card in cards if card.name == case.run)
        alike = {card.name for card in cards if facts.trained_alike(card, own)}
        defended = [each for each in defended if each.run in alike]
        yield from _defenses(case, score, defended, several)
    yield from _unknown(cards)
    yield from _impossible(cards)
    for card in cards:
        yield from curves.sentences(card.rows)


def _unknown(cards: Sequence[Card]) -> Iterator[str]:
    found = dict.fromkeys(name for c in cards for name in facts.unknown_defenses(c))
    if found:
        yield (
            f"Attacks do not know what {_names(found)} does to messages: what they read "
            "under it is a lower bound."
        )


def _largest(score: Score) -> float:
    return score.verdict.beyond.mean


def _no_leak(scored: Sequence[tuple[Case, Score]]) -> str:
    unlearnt = [case.explained for case, _ in scored if not case.has_learnt]
    if unlearnt:
        return f"{fit.UNLEARNT}: {fit.said(min(unlearnt))}"
    found = [score.verdict for _, score in scored]
    if not any(verdict.has_interval for verdict in found):
        return "nothing is claimed: one seed and no interval"
    two = all(score.is_by_seed and score.verdict.units == 2 for _, score in scored)
    blind = all(score.is_blind for _, score in scored)
    if blind and not two:
        return f"nothing is claimed: {verdicts.BLIND}"
    if not blind and any(verdict.kind == verdicts.PREDICTABLE for verdict in found):
        return "no leak is shown: what is inferred is predictable without messages"
    if two:
        return (
            "no leak is shown, but two seeds can hardly show one: expected three or more, "
            "or one, which is judged by its rows"
        )
    return "no leak is shown, which is no proof that there is none"


def _to_whom(cards: Sequence[Card], case: Case, score: Score) -> Iterator[str]:
    """The clients of whom an attack names least and most."""
    card = next(card for card in cards if card.name == case.run)
    found: dict[int, list[tuple[float, int]]] = {}
    for row in card.rows:
        if score.is_of(row) and isinstance(row.client, int):
            found.setdefault(row.client, []).append((row.value, row.n))
    if len(found) < 2 or not score.gain.own_rows:
        return
    means = {client: np.mean(each, axis=0) for client, each in found.items()}
    order = sorted(means, key=lambda client: means[client][0])
    names = facts.clients(card)
    lowest, highest = (means[order[at]][0] for at in (0, -1))
    if lowest == highest:
        yield f"Of each of the {len(means)} clients {highest:.1f} %."
        return
    low, high = (
        f"{means[client][0]:.1f} % in {names.get(client, f'client {client}')} "
        f"({means[client][1]:.0f} rows)"
        for client in (order[0], order[-1])
    )
    yield f"By client from {low} to {high}."


def _not_run(cards: Sequence[Card], scores: Sequence[Score]) -> Iterator[str]:
    """Says so where the strongest attack is missing, and why."""
    strongest = PROGRAMS[cards[0].rows[0].experiment].strongest
    if not strongest or any(score.row.attack in strongest for score in scores):
        return
    reasons = [facts.not_run(card).get(strongest[0], "") for card in cards]
    why = next(filter(None, reasons), "")
    yield f"The strongest attack, {strongest[0]}, was not run{why and f': {why}'}."


def _impossible(cards: Sequence[Card]) -> Iterator[str]:
    """Accuracies that the noise of a defense does not allow to anyone."""
    for line in (each.line for card in cards for each in card.judged):
        if line.is_impossible:
            yield (
                f"{line.row.attack} ({line.row.setting}) under {line.row.defense} is "
                f"{verdicts.IMPOSSIBLE}: {line.estimate.mean:.1f} % where at most "
                f"{line.ceiling:.1f} % can be. This is a bug in the noise, the "
                "accountant or the attack, or imputation is not the best guess."
            )


def command(cards: Sequence[Card]) -> str:
    """What measures a defense, where a run without any leaks and names it; or empty."""
    cases = [case for card in cards for case in cases_lib.of_run(card)]
    kinds = {score.verdict.kind for case in cases for score in case.scores}
    if verdicts.LEAKS not in kinds or any(case.defended for case in cases):
        return ""
    commands = [facts.text(card.manifest.get("what_to_do") or "") for card in cards]
    return next(filter(_is_ours, commands), "")


def _is_ours(command: str) -> bool:
    """Whether a manifest, which anybody may have written, names a program and flags."""
    try:
        python, dash, module, *flags = shlex.split(command)
    except ValueError:
        return False
    ours = (python, dash) == ("python", "-m") and module.startswith("experiments.")
    plain = shlex.join([python, dash, module, *flags]) == command
    return ours and plain and all(flag.startswith("--") for flag in flags)


def _defenses(
    bare: Case, top: Score, cases: Sequence[Case], several: bool
) -> Iterator[str]:
    """Which stop the attack that gains most, at what cost and with what promise."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        for each in case.scores:
            if (each.name, each.gain) == (top.name, top.gain):
                kind = _STOPPED if each.is_stopped else each.verdict.kind
                if each.is_stopped and not case.has_learnt:
                    kind = fit.UNLEARNT
                found.setdefault(kind, []).append(case)
    if not found:
        yield f"No defense was measured against {top.name}."
        return
    parts = []
    if stopped := found.pop(_STOPPED, []):
        stopped.sort(key=lambda case: case.loss)
        costs = _names(_cost(case, bare, top, several) for case in stopped)
        parts = [f"no leak shown under {costs}, a lower bound on what leaks"]
    for kind, some in found.items():
        names = _names(_with_bound(case, top, several) for case in some)
        parts.append(f"{kind} under {names}")
    yield f"With a defense: {'; '.join(parts)}."


def _cost(case: Case, bare: Case, top: Score, several: bool) -> str:
    parts = [f"epsilon {case.epsilon.text}" if case.epsilon else "no epsilon"]
    if math.isfinite(case.loss):
        parts.append(f"loss {case.loss:.3g}")
        if case.run == bare.run and bare.loss > 0:
            parts.append(f"{case.loss / bare.loss:.2f} times that without")
    return f"{_label(case, several)} ({', '.join([*parts, *_bound(case, top)])})"


def _with_bound(case: Case, top: Score, several: bool) -> str:
    bound = "".join(f" ({said})" for said in _bound(case, top))
    return f"{_label(case, several)}{bound}"


def _bound(case: Case, top: Score) -> Iterator[str]:
    """What a defense promises, beside what is read without it."""
    if math.isfinite(case.ceiling) and top.gain.own_rows:
        high = case.ceiling >= top.shown.mean
        more = ", more than is read without it" if high else ""
        yield f"nobody can be above {case.ceiling:.1f} %{more}"


def _at(case: Case, several: bool) -> str:
    swept = case.point if not case.point.startswith("defense") else ""
    parts = [swept, f"run {case.run}" if several else ""]
    return "".join(f", {part}" for part in parts if part)


def _label(case: Case, several: bool) -> str:
    return f"{case.label}, run {case.run}" if several else case.label


def _value(score: Score, case: Case, cards: Sequence[Card]) -> str:
    card = next(card for card in cards if card.name == case.run)
    value = f"{lines_lib.interval(score.shown)} {score.gain.measure.text}"
    return "; ".join(filter(None, (value, correlations.said(card.rows, score))))


def _gains(score: Score) -> str:
    units = f"{score.verdict.units} {'seeds' if score.is_by_seed else 'clients'}"
    each = "" if score.is_by_seed else ", each alike"
    over = f" (over {units}{each})" if score.verdict.units > 1 else ""
    gains = "; ".join(_gain(gain, score) for gain in score.verdict.to_report)
    return f"{gains}{over}"


def _gain(gain: Gain, score: Score) -> str:
    of = score.gain
    sign, words = (1, of.better) if gain.mean >= 0 else (-1, of.worse)
    low, high = sorted((sign * gain.low, sign * gain.high))
    e = score.estimate._replace(mean=sign * gain.mean, low=low, high=high)
    name = _REFERENCES[gain.name]
    if gain.name == verdicts.MAJORITY and of.measure is verdicts.ERROR:
        name = "the median"
    return f"{lines_lib.interval(e)} {words} {name}"


def _names(names: Iterable[str]) -> str:
    """A few of them and how many more."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - _MOST
    shown = "; ".join(itertools.islice(unique, _MOST))
    return shown + (f"; and {more} more" if more > 0 else "")

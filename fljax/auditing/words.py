"""What an audit found, in sentences for whoever has to decide."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from fljax import attack_names, verdicts
from fljax.auditing import doubts, unusual
from fljax.auditing.fits import Fit
from fljax.auditing.lines import MISFIT, Line
from fljax.fit import UNLEARNT
from fljax.verdicts import (
    ACCURACY,
    DISTANCE,
    ERROR,
    IMPUTATION,
    OTHERS,
    STRANGERS,
    Gain,
)

Outcome = Literal["leaks", "no_conclusion", "no_leak_shown"]
_REFERENCES = {
    IMPUTATION: "the other columns alone, learned from other people's rows, name {}",
    STRANGERS: "on people who never met these messages the attack names {}",
    OTHERS: "with other clients' messages in place of its own the attack names {}",
}


def summary(
    sensitive: str,
    lines: Sequence[Line],
    clients: Sequence[str],
    rows: Fit,
    categories: Sequence[str],
) -> list[str]:
    """What leaks, to whom and how surely; what does not.

    Args:
      sensitive: name of the inferred column.
      lines: of all attacks.
      clients: names of the clients.
      rows: how the messages fit them.
      categories: values of the column; none of a number.
    """
    leaks, top = _leaks(lines), foremost(lines)
    sensitive, found = _subject(sensitive, lines), []
    if leaks and top is not None:
        found.append(_leak(sensitive, top, clients))
        rest = [line.attack for line in leaks if line is not top]
        if rest:
            found[0] += f" {', '.join(rest)} {'leak' if rest[1:] else 'leaks'}, too."
    else:
        found.append(_nothing(sensitive, lines, rows))
    if _are_few(lines) or (not leaks and _are_blind(lines)):
        spoken = [top] if leaks and top is not None else lines
        if not (leaks and len(categories) > 2):  # a leak may be of other values
            found += unusual.said(sensitive, spoken, categories)
    if leaks or all(line.verdict != MISFIT for line in lines):
        found += _doubts(lines, rows)
    if any(doubts.STRONGEST in line.doubts for line in lines):
        found.append(
            "The strongest attacks, which simulate the clients' training, were not run: "
            + _reasons(lines)
        )
    return found


def outcome(lines: Sequence[Line]) -> Outcome:
    """All verdicts in one.

    No conclusion where nothing was run, fits or was learnt, the strongest was not run, or
    nothing could have been shown.
    """
    kinds = {line.verdict for line in lines}
    if verdicts.LEAKS in kinds:
        return "leaks"
    nothing = all(line.total is None for line in lines)
    weak = any(doubts.STRONGEST in line.doubts for line in lines)
    if nothing or weak or _are_blind(lines) or kinds & {MISFIT, UNLEARNT}:
        return "no_conclusion"
    return "no_leak_shown"


def _are_blind(lines: Sequence[Line]) -> bool:
    """Whether a perfect attack would have been shown by none of them.

    Of shares of labels, by the best of them.
    """
    quiet = [line for line in lines if line.verdict in doubts.QUIET]
    blind = [verdicts.BLIND in line.doubts for line in quiet]
    best = foremost(quiet)
    if best is not None and best.metric == DISTANCE.metric:
        return verdicts.BLIND in best.doubts
    return bool(blind) and all(blind)


def _are_few(lines: Sequence[Line]) -> bool:
    """Whether something was judged, and accuracies tell little of it."""
    kinds = {verdicts.LEAKS, *doubts.QUIET}
    judged = any(line.verdict in kinds for line in lines)
    return judged and any(line.rarest and line.rarest.is_unusual for line in lines)


def foremost(lines: Sequence[Line]) -> Line | None:
    """The strongest leak; without one the attack that comes nearest to it.

    Of equally strong ones that with the most beyond what needs no message.
    """
    found = _leaks(lines) or [
        line
        for line in lines
        if line.total is not None and attack_names.is_judged(line.attack, line.setting)
    ]
    return max(found, key=_strength) if found else None


def _subject(sensitive: str, lines: Sequence[Line]) -> str:
    """What attacks were on that could be run: the column, or else something of all rows."""
    metrics = {line.metric for line in lines if line.total is not None}
    if metrics & {ACCURACY.metric, ERROR.metric} or not metrics:
        return sensitive
    shares = DISTANCE.metric in metrics
    return "the clients' shares of labels" if shares else "whole rows"


def _leaks(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.verdict == verdicts.LEAKS]


def _strength(line: Line) -> tuple[bool, float, float]:
    """What speaks of the column first, then what is furthest: errors are small."""
    value = line.total.value if line.total else 0.0
    errs = line.metric in (ERROR.metric, DISTANCE.metric)
    beyond = np.min([gain.mean for gain in line.gains], initial=np.inf)
    of_column = line.metric in (ACCURACY.metric, ERROR.metric)
    return of_column, -value if errs else value, np.nan_to_num(beyond, nan=-np.inf)


def _leak(sensitive: str, line: Line, clients) -> str:
    total = line.total
    assert total is not None
    hidden = alone(line.gains)
    if line.unusual:
        said = f"Messages leak unusual values of {sensitive} ({line.attack})"
        return f"{said}: {line.unusual}."
    if line.metric != ACCURACY.metric:
        said = f"Messages leak: {line.attack} has a {_measure(line)} ({line.detail})."
        return f"{said} {hidden}".strip()
    parts = [
        text.format(f"{total.references[name]:.1f} %")
        for name, text in _REFERENCES.items()
        if name in total.references
    ]
    parts.append(f"the most frequent value is right for {total.baseline:.1f} %")
    return (
        f"{who(line.setting)} names {sensitive} of {total.value:.1f} % "
        f"[{total.low:.1f}, {total.high:.1f}] of {whose(line.setting)} rows "
        f"({line.attack}). Without them: {'; '.join(parts)}. {_range(line, clients)}"
        f" {hidden}"
    ).strip()


def alone(gains: Sequence[Gain]) -> str:
    """Says so where only some clients leak and the mean hides them; else nothing."""
    if all(gain.mean > 0 for gain in gains):
        return ""
    who = np.logical_and.reduce([gain.alone for gain in gains])
    return f"{who.sum()} of {who.size} clients leak, which the mean over all does not show."


def who(setting: str) -> str:
    """An adversary by the setting of its attack, as the beginning of a sentence."""
    view, _, number = setting.partition("_of_")
    return {
        "sum": _of_sums(number.replace("_", " ")),
        "models": "Who sees only the global models, as every client does,",
        "final": "Who has only the last global model",
    }.get(view, "Who sees a client's messages")


def _of_sums(number: str) -> str:
    if number == "1":
        return "Who sees sums of single clients, which are their messages,"
    some = ", some a single client's," if number.startswith("1 ") else ""
    said = f"Who sees only sums of {number or 'all'} clients' messages"
    return f"{said}{some or ', as a server under secure aggregation does,'}"


def whose(setting: str) -> str:
    """The rows that such an adversary speaks of."""
    return "the clients'" if setting.startswith(("sum", "models", "final")) else "its"


def _measure(line: Line) -> str:
    total = line.total
    assert total is not None
    names = {each.metric: each.text for each in (ERROR, DISTANCE)}
    text = names.get(line.metric, line.metric.replace("_", " "))
    return f"{text} of {total.value:.4g} where {total.baseline:.4g} needs no message"


def _range(line: Line, clients) -> str:
    """The clients with the least and the most."""
    if len(line.clients) < 2:
        return ""
    values = [each.value for each in line.clients]
    low, high = int(np.argmin(values)), int(np.argmax(values))
    if values[low] == values[high]:
        return f"Of each of the {len(values)} clients {values[low]:.1f} %."

    def one(at: int) -> str:
        return f"{values[at]:.1f} % of {clients[at]} ({line.clients[at].n} rows)"

    return f"From {one(low)} to {one(high)}."


def _nothing(sensitive: str, lines: Sequence[Line], rows: Fit) -> str:
    kinds = {line.verdict for line in lines}
    if all(line.total is None for line in lines):
        why = "; ".join(f"{line.attack}: {line.detail}" for line in lines)
        return f"No conclusion about {sensitive}: no attack could be run: {why}."
    if MISFIT in kinds and rows.contradicted:
        slip = f": {rows.slip}" if rows.slip else ""
        return f"No conclusion about {sensitive}: {rows.contradicted}{slip}."
    if MISFIT in kinds:
        why = (
            f"{rows.slip[0].upper()}{rows.slip[1:]}."
            if rows.slip
            else "The rows may be other people's, or encoded in another way than the "
            "model was trained on, or the training was not as it was declared."
        )
        return f"No conclusion about {sensitive}: the messages do not fit these rows. {why}"
    if UNLEARNT in kinds:
        return (
            f"No conclusion about {sensitive}: the model has hardly learnt anything "
            "from these rows."
        )
    if _are_blind(lines):
        return (
            f"No conclusion about {sensitive}: not even an attack that is always right "
            "would be shown, for rows or clients are too few, or what is known without "
            "messages tells nearly all of it."
        )
    if outcome(lines) == "no_conclusion":
        return (
            f"No conclusion about {sensitive}: no attack that was run shows a leak, and "
            "the strongest were not run."
        )
    if verdicts.PREDICTABLE in kinds:
        return (
            f"Much of {sensitive} can be predicted without anyone's messages; no attack "
            "that was run shows more than that."
        )
    return (
        f"No attack that was run shows a leak of {sensitive}. That is no proof: another "
        "attack may succeed."
    )


def _doubts(lines: Sequence[Line], rows: Fit) -> list[str]:
    """What takes from the certainty of what was found."""
    found = []
    if off := "" if rows.misfit is None else doubts.bad(rows.misfit, rows.by_chance):
        slip = f"; {rows.slip}" if rows.slip else ""
        found.append(f"That is less than sure: {off}, where about 1 is expected{slip}.")
    if rows.lacking and _leaks(lines):
        found.append(f"The declared noise was not all there: {rows.lacking}.")
    if rows.unlike and _leaks(lines):
        found.append(f"Messages may tell more than was found: {rows.unlike}.")
    short = [line.attack for line in lines if doubts.SHORT in line.doubts]
    if short and not _leaks(lines):
        found.append(
            f"The search of {' and '.join(short)} stopped short of what the true rows "
            "explain: a better one may find more."
        )
    return found


def _reasons(lines: Sequence[Line]) -> str:
    why = {line.attack: line.detail for line in lines}
    found = [
        f"{name}: {why[name]}" if name in why else f"{name} was not asked for"
        for name in doubts.SIMULATING
    ]
    return "; ".join(found) + "."

"""The rule by which one defense of a grid is recommended; pure."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sklearn.isotonic import isotonic_regression

from fljax import fit, verdicts
from fljax.metrics import Estimate

POINTS = "points beyond"
RULE = (
    "of the defenses that promise an epsilon, under which no attack that knows them is "
    "shown to have more than who sees no message, nor under more of the same noise, whose "
    "bound allows no more than was "
    "asked for, and whose model explains something of the held-out rows: the smallest "
    "epsilon among those that explain nearly as much as the best, where less of the same "
    "noise is taken to explain no less"
)


class Candidate(NamedTuple):
    """One defense of the grid as it was measured.

    Attributes:
      defense: its text.
      epsilon: of a record, or of a client where only that is promised; inf without one
        against who attacks.
      tuned: epsilon if the choice of the clip is charged, too.
      utility: percent of the held-out targets' variation that the model explains.
      attack: the strongest that was run; empty without any.
      gain: what it has beyond the best of what sees no message, in `gained`.
      leaks: whether some attack is shown to have more than that.
      most: points that any adversary can have beyond that; NaN where it is not known.
      beyond: what that best is, by which an attack is judged.
      unit: whose the epsilon is, `record` or `client`.
      held_out: rows of a seed that utility is of; 0 where it is of the training rows.
      right: percent of these rows whose class the model names; NaN of numbers.
      gained: what a gain is, in words before what it is beyond.
      not_run: a stronger attack than all that were run.
    """

    defense: str
    epsilon: float
    tuned: float
    utility: Estimate
    attack: str
    gain: Estimate
    leaks: bool
    most: float
    beyond: str = verdicts.IMPUTATION
    unit: str = "record"
    held_out: int = 0
    right: float = math.nan
    gained: str = POINTS
    not_run: str = ""


class Wishes(NamedTuple):
    """What a defense is asked for.

    Attributes:
      tolerance: points of utility below the best that do not matter.
      most: points that any adversary may have beyond who sees no message; None: any.
    """

    tolerance: float = 2.0
    most: float | None = None


class Choice(NamedTuple):
    """What the rule says.

    Attributes:
      chosen: the recommended one, None where no defense of the grid is one.
      why_not: the defense of every other candidate -> why it is not.
    """

    chosen: Candidate | None
    why_not: dict[str, str]


def choose(candidates: Sequence[Candidate], wishes: Wishes) -> Choice:
    """Applies `RULE`.

    Args:
      candidates: with distinct defenses, in any order.
      wishes: of the user.
    """
    leaky = _leaky(candidates)
    why_not = {each.defense: _refused(each, wishes, leaky) for each in candidates}
    left = [each for each in candidates if not why_not[each.defense]]
    if not left:
        return Choice(None, why_not)
    explained = _explained(candidates)
    best = max(explained[each.defense] for each in left)
    for each in left:
        less = best - explained[each.defense]
        if less > wishes.tolerance:
            why_not[each.defense] = f"explains {less:.1f} points less than the best"
    left = [each for each in left if not why_not[each.defense]]
    chosen = min(left, key=lambda each: (each.epsilon, -explained[each.defense]))
    for each in left:
        larger = each.epsilon > chosen.epsilon
        why_not[each.defense] = "a larger epsilon" if larger else "explains less"
    del why_not[chosen.defense]
    return Choice(chosen, why_not)


def _alike(defense: str) -> str:
    """Its text without the strength of its noise."""
    return re.sub(r"\b(epsilon|sigma)=[^,()]*", "", defense)


def _explained(candidates: Sequence[Candidate]) -> dict[str, float]:
    """Utility that does not fall where only noise does: what does so is chance.

    The best of many that scatter is mostly luck; isotonic regression over the epsilons of
    one clip pools it with those that have less noise. A training that learnt nothing, or
    ran away, says nothing of its neighbours.
    """
    groups: dict[str, list[Candidate]] = {}
    known = [each for each in candidates if each.utility.mean >= fit.LEARNT]
    for each in sorted(known, key=lambda each: each.epsilon):
        groups.setdefault(_alike(each.defense), []).append(each)
    return {
        each.defense: float(value)
        for group in groups.values()
        for each, value in zip(
            group,
            isotonic_regression([e.utility.mean for e in group]),
            strict=True,
        )
    }


def _leaky(candidates: Sequence[Candidate]) -> dict[str, float]:
    """Defense but for the strength of its noise -> smallest epsilon that leaks."""
    found: dict[str, float] = {}
    for each in candidates:
        if each.leaks:
            name = _alike(each.defense)
            found[name] = min(each.epsilon, found.get(name, math.inf))
    return found


def _refused(each: Candidate, wishes: Wishes, leaky: Mapping[str, float]) -> str:
    """Why it is none for anybody; empty if it may be.

    What reads through more noise reads through less: that it is not shown to is chance.
    """
    if not math.isfinite(each.epsilon):
        return "promises nothing"
    if not each.attack or math.isnan(each.gain.mean):
        return "no attack was judged"
    if each.leaks:
        return "leaks"
    if each.epsilon >= (known := leaky.get(_alike(each.defense), math.inf)):
        return f"leaks with epsilon {known:.3g} already"
    if wishes.most is not None and not each.most <= wishes.most:
        allowed = "unknown" if math.isnan(each.most) else f"{each.most:.1f} points"
        return f"its bound is {allowed}"
    if not each.utility.mean >= fit.LEARNT:
        return "the model has hardly learnt"
    return ""
